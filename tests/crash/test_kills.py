"""Processes die at any moment; the log keeps its promises. `make soak` does the same a thousand times."""

from __future__ import annotations

import os
import random
import shutil

import pytest

from headwater.crashpoint import CRASH_POINTS
from tests.crash import kills


@pytest.mark.slow
def test_a_hundred_killed_writers_lose_nothing_and_store_nothing_twice() -> None:
    seed = int(os.environ.get("HEADWATER_SEED") or random.SystemRandom().randrange(1_000_000))
    report = kills.run(kills.quick_folder(), kills=100, seed=seed)
    assert not report.violations, f"HEADWATER_SEED={seed}\n{report}"
    assert report.kills >= 100
    assert report.numbers["acknowledged"] > 100, f"the writers hardly came to write: {report}"
    assert len(report.points.keys() & set(CRASH_POINTS)) >= 8, f"few crash points were met: {report}"
    shutil.rmtree(report.folder)
