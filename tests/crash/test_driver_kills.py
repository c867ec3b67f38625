"""Drivers die at any moment; views keep their promises. `make soak` does the same two hundred times."""

from __future__ import annotations

import shutil

import pytest

from tests.crash import driver_kills
from tests.crash.driver import HAND, SHARED
from tests.crash.kills import quick_folder
from tests.seed import SEED


def killed(engine: str, kills: int) -> driver_kills.Report:
    report = driver_kills.run(quick_folder(), kills=kills, seed=SEED, engine=engine)
    assert not report.broken, f"SEED={report.seed}\n{report}"
    assert report.kills >= kills
    assert report.during_recovery >= kills // 4
    assert report.ticks > kills // 4, f"the drivers hardly came to tick: {report}"
    assert report.numbers["compared"] > 10, f"the reader hardly came to read: {report}"
    assert len(report.slow) <= max(1, len(report.takeovers) // 10), f"takeovers took too long: {report}"
    shutil.rmtree(report.folder)
    return report


@pytest.mark.own_spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_eight_killed_drivers_leave_views_equal_to_batch() -> None:
    killed(SHARED, 8)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_killed_drivers_whose_views_are_planned_by_hand() -> None:
    report = killed(HAND, 20)
    assert len(report.points) >= 5, f"few crash points were met: {report}"
