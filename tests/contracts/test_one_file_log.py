from __future__ import annotations

from pathlib import Path

import pytest

from headwater.log import TopicLog
from headwater.store import SqliteStore
from tests.contracts.log import LogContract, Open
from tests.one_file_log import OneFileLog


class TestOneFileLog(LogContract):
    """The contract asks for nothing that only the embedded log could do."""

    @pytest.fixture
    def open_log(self, tmp_path: Path, topics: list[TopicLog]) -> Open:
        def open_one() -> OneFileLog:
            log = OneFileLog(str(tmp_path / "log.db"), SqliteStore(str(tmp_path / "headwater.db")))
            for topic in topics:
                log.declare(topic)
            return log

        return open_one
