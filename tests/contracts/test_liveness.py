from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater.liveness import LockedFiles
from tests.contracts.liveness import LivenessContract, Open


class TestLockedFiles(LivenessContract):
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Open:
        return lambda: LockedFiles(str(tmp_path))

    def test_asking_makes_no_files(self, tmp_path: Path) -> None:
        liveness = LockedFiles(str(tmp_path))
        assert not liveness.is_alive("driver")
        assert liveness.who("driver") is None
        assert os.listdir(tmp_path) == []
