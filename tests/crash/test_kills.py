"""Processes die at any moment; the log keeps its promises. `make soak` does the same a thousand times."""

from __future__ import annotations

import shutil

import pytest

from headwater.crashpoint import CRASH_POINTS
from tests.crash import kills
from tests.seed import SEED


@pytest.mark.slow
def test_fifty_killed_writers_lose_nothing_and_store_nothing_twice() -> None:
    report = kills.run(kills.quick_folder(), kills=50, seed=SEED)
    assert not report.violations, f"SEED={SEED}\n{report}"
    assert report.kills >= 50
    assert report.numbers["acknowledged"] > 50, f"the writers hardly came to write: {report}"
    assert len(report.points.keys() & set(CRASH_POINTS)) >= 5, f"few crash points were met: {report}"
    shutil.rmtree(report.folder)
