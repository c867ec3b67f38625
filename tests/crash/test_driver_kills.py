"""Drivers die at any moment; views keep their promises. `make soak` does the same two hundred times."""

from __future__ import annotations

import os
import random
import shutil

import pytest

from tests.crash import driver_kills
from tests.crash.driver import HAND, SHARED
from tests.crash.kills import quick_folder


def seed() -> int:
    return int(os.environ.get("HEADWATER_SEED") or random.SystemRandom().randrange(1_000_000))


def killed(engine: str, kills: int) -> driver_kills.Report:
    report = driver_kills.run(quick_folder(), kills=kills, seed=seed(), engine=engine)
    assert not report.broken, f"HEADWATER_SEED={report.seed}\n{report}"
    assert report.kills >= kills
    assert report.during_recovery >= kills // 4
    assert report.ticks > kills // 4, f"the drivers hardly came to tick: {report}"
    assert report.numbers["compared"] > 10, f"the reader hardly came to read: {report}"
    assert len(report.slow) <= len(report.takeovers) // 10, f"takeovers took too long: {report}"
    shutil.rmtree(report.folder)
    return report


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_killed_drivers_leave_views_equal_to_batch() -> None:
    killed(SHARED, 20)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_forty_killed_drivers_whose_views_are_planned_by_hand() -> None:
    report = killed(HAND, 40)
    assert len(report.points) >= 5, f"few crash points were met: {report}"
