"""Large runs are merged beside the ticks: nothing of it shows but that there are few runs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.change import HASH, WEIGHT
from headwater.errors import Unavailable
from headwater.state.files import LocalStateFiles
from headwater.state.manifest import Manifest
from headwater.state.merge import CROWD, Crowd, tier
from headwater.state.run import HIGHEST, LOWEST
from headwater.tick import merging, state
from headwater.tick.driver import Driver
from tests.crash import expected, shop
from tests.crash.hand_engine import drive
from tests.inside import merging_of, store_of


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
    last = store_of(pipeline).last_tick()
    assert last is not None
    assert expected.check(pipeline) == last.number
    return last


def settled(driver: Driver) -> None:
    thread = merging_of(driver)._thread
    if thread is not None:
        thread.join()


def deepest(pipeline: hw.Pipeline, number: int) -> int:
    """The most runs of one tier that cover the same hash, in any arrangement."""
    runs = [Manifest.from_dict(detail).runs for detail in store_of(pipeline).arrangements(number).values()]
    tiers = [[run for run in each if tier(run) == size] for each in runs for size in set(map(tier, each))]
    return max(sum(run.low <= at <= run.high for run in each) for each in tiers for at in {r.low for r in each})


def files(pipeline: hw.Pipeline) -> set[str]:
    return {name for name in os.listdir(os.path.join(pipeline.path, "state")) if name.endswith(".runs")}


def used(pipeline: hw.Pipeline) -> set[str]:
    return {run.file for detail in store_of(pipeline).files() for run in Manifest.from_dict(detail).runs}


def check_swept(pipeline: hw.Pipeline, driver: Driver, number: int) -> None:
    """No file is left that nobody needs."""
    driver._keep_house(store_of(pipeline).lease().epoch, number, forced=True)
    assert files(pipeline) <= used(pipeline) | set(merging_of(driver).files)


def test_a_merge_that_ends_while_a_tick_is_written_waits_for_the_next(
    driven: tuple[hw.Pipeline, Driver, shop.Traffic],
) -> None:
    pipeline, driver, traffic = driven
    while merging_of(driver)._thread is None:
        ticked(pipeline, traffic)
    settled(driver)
    done = merging_of(driver).done
    assert done is not None
    merging_of(driver).committed([], None, "of a tick that began before it was done")
    assert merging_of(driver).done is done
    merging_of(driver).committed([], done, "of one that has seen it")
    assert merging_of(driver).done is None


@pytest.mark.slow
def test_what_a_thread_merged_takes_its_place_and_all_views_stay_right(
    driven: tuple[hw.Pipeline, Driver, shop.Traffic],
) -> None:
    pipeline, driver, traffic = driven
    taken = 0
    for _ in range(50):
        last = ticked(pipeline, traffic)
        settled(driver)
        taken += merging_of(driver).done is not None
    assert taken > 20
    assert deepest(pipeline, last.number) <= 3 * CROWD  # four in the thread, eight not yet; else fifty
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
    for _ in range(30):
        rewritten += ticked(pipeline, traffic).detail["rewritten"]
        settled(driver)
        assert merging_of(driver).done is None
    assert rewritten


@pytest.mark.slow
def test_what_was_dropped_meanwhile_is_not_taken_over(
    driven: tuple[hw.Pipeline, Driver, shop.Traffic], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver, traffic = driven
    go = threading.Event()
    monkeypatch.setattr(merging_of(driver), "_pause", lambda: go.wait(60))
    merging = merging_of(driver)
    while merging._now is None or not merging._now.arrangement.startswith("v"):
        go.set()
        settled(driver)
        go.clear()
        ticked(pipeline, traffic)
    arrangement = merging._now.arrangement.partition("/")[0]
    name = next(n for n, each in store_of(pipeline).declarations().items() if f"v{each.number}" == arrangement)
    pipeline.drop(name)
    shop.declare_views(pipeline)
    ticked(pipeline, traffic)
    go.set()
    settled(driver)
    last = ticked(pipeline, traffic)
    assert arrangement not in {each.partition("/")[0] for each in store_of(pipeline).arrangements(last.number)}
    for _ in range(12):
        last = ticked(pipeline, traffic)
        settled(driver)
    check_swept(pipeline, driver, last.number)


def test_a_pipeline_closes_in_the_middle_of_a_merge(
    driven: tuple[hw.Pipeline, Driver, shop.Traffic], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver, traffic = driven
    begun = threading.Event()
    pause = merging_of(driver)._pause

    def waits() -> None:
        begun.set()
        merging_of(driver)._stop.wait(60)
        pause()

    monkeypatch.setattr(merging_of(driver), "_pause", waits)
    while not begun.is_set():
        ticked(pipeline, traffic)
        if merging_of(driver)._thread is not None:
            assert begun.wait(60)
    (name,) = merging_of(driver).files
    pipeline.close()
    assert name not in files(pipeline)
    with shop.opened(pipeline.path, views=False, retain_ticks=2) as again:
        drive(again)
        ticked(again, shop.Traffic(again, 7))


@dataclass(frozen=True)
class Noting(LocalStateFiles):
    """Files that note which of them are written steadily."""

    steady: dict[str, bool] = field(default_factory=dict, compare=False)

    def create(self, name: str, *, steadily: bool = False) -> Any:
        self.steady[name] = steadily
        return super().create(name, steadily=steadily)


def test_what_is_merged_beside_the_ticks_is_put_on_disk_steadily(tmp_path: Path) -> None:
    files = Noting(str(tmp_path))
    made = state.TickState(files, "1-1-a", {})
    table = pa.table({"x": [1], HASH: [1], WEIGHT: [1]})
    for _ in range(CROWD):
        made.add("v", table)
    made.finish()
    runs = made.after("v", table.schema).runs
    beside = merging.Merging(files)
    beside.committed([merging.Merge("v", table.schema, Crowd(runs, LOWEST, HIGHEST))], None, "1-1")
    (name,) = beside.files
    deadline = time.monotonic() + 60
    while beside.done is None and time.monotonic() < deadline:
        time.sleep(0.001)
    assert beside.done is not None
    assert files.steady == {"1-1-a.runs": False, name: True}
    beside.close()


@pytest.mark.parametrize("grows", [True, False])
def test_large_runs_of_what_only_grows_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grows: bool
) -> None:
    monkeypatch.setattr(state, "_LARGE", 10_000)
    made = state.TickState(LocalStateFiles(str(tmp_path)), "t1", {})
    rows = {size: pa.table({"x": range(size), HASH: range(size), WEIGHT: [1] * size}) for size in (10, 2_000)}
    for table in rows.values():
        for _ in range(6):
            made.add("v", table)
    if grows:
        made.grows("v")
    made.merge(merging.Merging(LocalStateFiles(str(tmp_path))))
    runs = made.after("v", rows[10].schema).runs
    assert len([run for run in runs if run.rows >= 2_000]) == (6 if grows else 1)
    assert len([run for run in runs if run.rows < 2_000]) < 4
