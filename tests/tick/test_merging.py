"""Large runs are merged beside the ticks: nothing of it shows but that there are few runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.change import HASH, WEIGHT
from headwater.errors import Unavailable
from headwater.files import Files
from headwater.state.manifest import Manifest
from headwater.state.merge import CROWD, tier
from headwater.tick import merging, state
from headwater.tick.driver import Driver
from tests.crash import expected, shop
from tests.crash.hand_engine import drive


@pytest.fixture
def driven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[hw.Pipeline, Driver, shop.Traffic]]:
    """A shop where most of what is to be merged is too large for a tick."""
    monkeypatch.setattr(state, "_LEAST_MERGED", 1)
    monkeypatch.setattr(state, "_MERGED_PER_CHANGED", 3)
    with shop.opened(str(tmp_path), views=False, retain_ticks=2) as pipeline:
        driver = drive(pipeline)
        shop.declare_views(pipeline)
        yield pipeline, driver, shop.Traffic(pipeline, 20261116)


def ticked(pipeline: hw.Pipeline, traffic: shop.Traffic) -> Any:
    for _ in range(4):
        traffic.step()
    assert pipeline.tick() is not None
    last = pipeline._store.last_tick()
    assert last is not None
    assert expected.check(pipeline) == last.number
    return last


def settled(driver: Driver) -> None:
    if driver._merging._thread is not None:
        driver._merging._thread.join()


def deepest(pipeline: hw.Pipeline, number: int) -> int:
    """The most runs of one tier that cover the same hash, in any arrangement."""
    runs = [Manifest.from_dict(detail).runs for detail in pipeline._store.arrangements(number).values()]
    tiers = [[run for run in each if tier(run) == size] for each in runs for size in set(map(tier, each))]
    return max(sum(run.low <= at <= run.high for run in each) for each in tiers for at in {r.low for r in each})


def files(pipeline: hw.Pipeline) -> set[str]:
    return {name for name in os.listdir(os.path.join(pipeline.path, "state")) if name.endswith(".runs")}


def used(pipeline: hw.Pipeline) -> set[str]:
    return {run.file for detail in pipeline._store.files() for run in Manifest.from_dict(detail).runs}


def check_swept(pipeline: hw.Pipeline, driver: Driver, number: int) -> None:
    """No file is left that nobody needs."""
    driver._keep_house(pipeline._store.lease().epoch, number, forced=True)
    assert files(pipeline) <= used(pipeline) | set(driver._merging.files)


def test_a_merge_that_ends_while_a_tick_is_written_waits_for_the_next(
    driven: tuple[hw.Pipeline, Driver, shop.Traffic],
) -> None:
    pipeline, driver, traffic = driven
    while driver._merging._thread is None:
        ticked(pipeline, traffic)
    settled(driver)
    done = driver._merging.done
    assert done is not None
    driver._merging.committed([], None, "of a tick that began before it was done")
    assert driver._merging.done is done
    driver._merging.committed([], done, "of one that has seen it")
    assert driver._merging.done is None


@pytest.mark.slow
def test_what_a_thread_merged_takes_its_place_and_all_views_stay_right(
    driven: tuple[hw.Pipeline, Driver, shop.Traffic],
) -> None:
    pipeline, driver, traffic = driven
    taken = 0
    for _ in range(120):
        last = ticked(pipeline, traffic)
        settled(driver)
        taken += driver._merging.done is not None
    assert taken > 50
    assert deepest(pipeline, last.number) <= 3 * CROWD  # four in the thread, eight not yet; else a hundred
    settled(driver)
    check_swept(pipeline, driver, last.number)


@pytest.mark.slow
def test_a_thread_that_fails_leaves_it_to_the_ticks(
    driven: tuple[hw.Pipeline, Driver, shop.Traffic], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver, traffic = driven

    def fails(*_: Any) -> None:
        msg = "no space"
        raise Unavailable(msg)

    monkeypatch.setattr(merging, "merge_crowd", fails)
    rewritten = 0
    for _ in range(60):
        rewritten += ticked(pipeline, traffic).detail["rewritten"]
        settled(driver)
        assert driver._merging.done is None
    assert rewritten


@pytest.mark.slow
def test_what_was_dropped_meanwhile_is_not_taken_over(
    driven: tuple[hw.Pipeline, Driver, shop.Traffic], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver, traffic = driven
    go = threading.Event()
    monkeypatch.setattr(driver._merging, "_pause", lambda: go.wait(60))
    while driver._merging._now is None or not driver._merging._now.arrangement.startswith("v"):
        go.set()
        settled(driver)
        go.clear()
        ticked(pipeline, traffic)
    arrangement = driver._merging._now.arrangement.partition("/")[0]
    name = next(n for n, each in pipeline._store.declarations().items() if f"v{each.number}" == arrangement)
    pipeline.drop(name)
    shop.declare_views(pipeline)
    ticked(pipeline, traffic)
    go.set()
    settled(driver)
    last = ticked(pipeline, traffic)
    assert arrangement not in {each.partition("/")[0] for each in pipeline._store.arrangements(last.number)}
    for _ in range(12):
        last = ticked(pipeline, traffic)
        settled(driver)
    check_swept(pipeline, driver, last.number)


def test_a_pipeline_closes_in_the_middle_of_a_merge(
    driven: tuple[hw.Pipeline, Driver, shop.Traffic], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver, traffic = driven
    begun = threading.Event()
    pause = driver._merging._pause

    def waits() -> None:
        begun.set()
        driver._merging._stop.wait(60)
        pause()

    monkeypatch.setattr(driver._merging, "_pause", waits)
    while not begun.is_set():
        ticked(pipeline, traffic)
        if driver._merging._thread is not None:
            assert begun.wait(60)
    (name,) = driver._merging.files
    pipeline.close()
    assert name not in files(pipeline)
    with shop.opened(pipeline.path, views=False, retain_ticks=2) as again:
        drive(again)
        ticked(again, shop.Traffic(again, 7))


@pytest.mark.parametrize("grows", [True, False])
def test_large_runs_of_what_only_grows_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grows: bool
) -> None:
    monkeypatch.setattr(state, "_LARGE", 10_000)
    made = state.TickState(Files(), str(tmp_path), "t1", {})
    rows = {size: pa.table({"x": range(size), HASH: range(size), WEIGHT: [1] * size}) for size in (10, 2_000)}
    for table in rows.values():
        for _ in range(6):
            made.add("v", table)
    if grows:
        made.grows("v")
    made.merge(merging.Merging(Files(), str(tmp_path)))
    runs = made.after("v", rows[10].schema).runs
    assert len([run for run in runs if run.rows >= 2_000]) == (6 if grows else 1)
    assert len([run for run in runs if run.rows < 2_000]) < 4
