from __future__ import annotations

from pathlib import Path

import pytest

from headwater.log import EmbeddedLog, TopicLog
from headwater.store import SqliteStore
from tests.contracts.log import LogContract, Open


class TestEmbeddedLogWithManySegments(LogContract):
    segment_bytes = 4096

    @pytest.fixture
    def open_log(self, tmp_path: Path, topics: list[TopicLog]) -> Open:
        def open_one() -> EmbeddedLog:
            store = SqliteStore(str(tmp_path / "headwater.db"))
            log = EmbeddedLog(str(tmp_path / "log"), store, segment_bytes=self.segment_bytes)
            for topic in topics:
                log.declare(topic)
            return log

        return open_one


class TestEmbeddedLogWithOneSegment(TestEmbeddedLogWithManySegments):
    """The active segment is never trimmed, so what is about trimming does not apply."""

    segment_bytes = 64 * 1024 * 1024
    test_trimming_keeps_what_comes_after_and_is_never_undone = None  # type: ignore[assignment]
    test_producers_are_remembered_over_trimming = None  # type: ignore[assignment]
    test_a_reader_that_lost_the_segment_it_reads_goes_on_behind_it = None  # type: ignore[assignment]
