"""A driver is stopped in the middle of a tick, replaced, and continued: it is fenced, and deletes nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater import crashpoint
from headwater.state.manifest import Manifest
from headwater.testing import assert_same_as_batch
from tests.crash import expected, shop
from tests.crash.children import child, told, wait_until_stopped
from tests.crash.driver import HAND, SHARED, prepare
from tests.crash.hand_engine import drive
from tests.crash.shared_java import SharedJava, stop
from tests.inside import driver_of, store_of

POINTS = [point for point in crashpoint.CRASH_POINTS if point.startswith("tick.")]
TICKS_BEFORE = 9
"""The tenth forgets versions and sweeps."""


def stop_yourself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def drive_and_stop(pipe: Connection, path: str, point: str, java: SharedJava | None, *, large: bool) -> None:
    """Tick until a tenth tick reaches the point; stop there; tell what became of that tick and of another one."""
    if java is not None:
        java.attach()
    with shop.opened(path, views=False) as pipeline:
        prepare(pipeline, HAND if java is None else SHARED)
        pipeline.tick()
        traffic = shop.Traffic(pipeline, "before")
        for _ in range(TICKS_BEFORE - 1):
            some(traffic)
            pipeline.tick()
        some(traffic)
        if large:
            driver_of(pipeline).small_rows = 0
        crashpoint.arm(point, action=stop_yourself)
        for _ in range(2):
            pipe.send(outcome(pipeline))
    pipe.send("closed")
    pipe.recv()


def some(traffic: shop.Traffic) -> None:
    for _ in range(5):
        traffic.step()


def outcome(pipeline: hw.Pipeline) -> str:
    try:
        return str(pipeline.tick())
    except hw.Fenced as error:
        return f"fenced: {error}"


def named_files(pipeline: hw.Pipeline) -> set[str]:
    """The files that committed ticks name."""
    return {run.file for detail in store_of(pipeline).files() for run in Manifest.from_dict(detail).runs}


def state_files(pipeline: hw.Pipeline) -> set[str]:
    return {path.name for path in Path(pipeline.path, "state").glob("*.runs")}


def replaced(path: str, point: str, java: SharedJava | None = None, *, large: bool = False) -> list[str]:
    """Stop a driver at a point, replace it for some ticks, continue it; what it said then.

    Whatever the successor's ticks name is there afterwards, and views are what the log says.
    """
    with child(partial(drive_and_stop, large=large), path, point, java) as (process, pipe):
        wait_until_stopped(process)
        with shop.opened(path, views=False) as pipeline:
            prepare(pipeline, HAND if java is None else SHARED)
            pipeline.take_over()
            traffic = shop.Traffic(pipeline, "after")
            for _ in range(4):
                some(traffic)
                pipeline.tick()
            some(traffic)
            said: list[str] = []

            def wake() -> None:
                os.kill(process.pid or 0, signal.SIGCONT)
                said.append(told(pipe))

            crashpoint.arm("tick.synced", action=wake)
            pipeline.tick()  # in the middle of it the other one wakes up, and fails
            crashpoint.arm(None)
            said.append(told(pipe))
            assert told(pipe) == "closed"
            assert named_files(pipeline) <= state_files(pipeline)
            some(traffic)
            pipeline.tick()
            expected.check(pipeline)
            if java is not None:
                assert_same_as_batch(pipeline)
    return said


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("point", POINTS)
def test_a_stopped_driver_that_was_replaced_is_fenced_and_deletes_nothing(
    tmp_path: Path, point: str, large: bool
) -> None:
    said = replaced(str(tmp_path), point, large=large)
    if point in {"tick.committed", "tick.expired"}:
        assert said[0].startswith(("Tick(number=10", "fenced"))  # what it had committed was committed
    else:
        assert said[0].startswith("fenced")
    assert said[1].startswith(("fenced", "None"))  # None: its successor had left it nothing to do


def test_a_driver_stopped_before_it_looked_at_the_state_harms_nothing_of_its_successors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It became the driver and stopped; when it goes on, it clears up behind those who were there before it."""
    with shop.opened(str(tmp_path), views=False) as old, shop.opened(str(tmp_path), views=False) as new:
        for pipeline in (old, new):
            drive(pipeline)
            shop.declare_views(pipeline)
        traffic = shop.Traffic(new, 1)
        some(traffic)
        old.tick()
        driver_of(old)._checked = 0
        new.take_over()
        some(traffic)
        driver_of(new).small_rows = 0
        stages, calls = driver_of(new).engine.stages, []

        def each(function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
            calls.append(items)
            if len(calls) == 2:  # the first one left something for this one
                fenced_tick(old)
            return spool(function, items)

        spool = stages.each
        monkeypatch.setattr(stages, "each", each)
        new.tick()
        assert len(calls) > 2
        assert named_files(new) <= state_files(new)
        expected.check(new)


def fenced_tick(pipeline: hw.Pipeline) -> None:
    with pytest.raises(hw.Fenced):
        pipeline.tick()


def test_a_driver_that_misses_a_file_because_it_was_replaced_is_told_so(tmp_path: Path) -> None:
    with shop.opened(str(tmp_path), views=False) as old, shop.opened(str(tmp_path), views=False) as new:
        for pipeline in (old, new):
            drive(pipeline)
            shop.declare_views(pipeline)
        traffic = shop.Traffic(new, 1)
        some(traffic)
        old.tick()
        new.take_over()

        def twenty_ticks() -> None:
            crashpoint.arm(None)
            for _ in range(20):
                some(traffic)
                new.tick()

        some(traffic)
        crashpoint.arm("tick.tables", action=twenty_ticks)
        with pytest.raises(hw.Fenced, match="was replaced by 2"):
            old.tick()
        assert named_files(new) <= state_files(new)
        expected.check(new)


def test_a_driver_that_was_replaced_is_told_so_though_it_has_nothing_to_do(tmp_path: Path) -> None:
    with shop.opened(str(tmp_path), views=False) as old, shop.opened(str(tmp_path), views=False) as new:
        for pipeline in (old, new):
            drive(pipeline)
            shop.declare_views(pipeline)
        some(shop.Traffic(new, 1))
        old.tick()
        assert old.tick() is None
        new.take_over()
        fenced_tick(old)
        assert new.tick() is None


@pytest.mark.own_spark
@pytest.mark.slow
def test_a_stopped_spark_driver_that_was_replaced_is_fenced_and_views_equal_batch(tmp_path: Path) -> None:
    java = SharedJava.started()
    try:
        said = replaced(str(tmp_path), "tick.computed", java)
    finally:
        stop()
    assert said[0].startswith("fenced")
    assert said[1].startswith(("fenced", "None"))
