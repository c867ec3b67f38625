"""Derived state is lost while nobody drives: it is built again from the log, or what is missing is named."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import headwater as hw
from headwater import crashpoint
from headwater.state.manifest import Manifest
from headwater.testing import assert_same_as_batch
from tests.crash import expected, shop
from tests.crash.driver import OWN, prepare
from tests.crash.hand_engine import drive
from tests.inside import engine_of, lease_of, log_of, store_of
from tests.read.hand import rows_of, summed


@contextmanager
def driven(path: Path, *, large: bool = False) -> Iterator[hw.Pipeline]:
    with shop.opened(str(path), views=False) as pipeline:
        drive(pipeline, large=large)
        shop.declare_views(pipeline)
        yield pipeline


def some_ticks(pipeline: hw.Pipeline, count: int, seed: object = 0) -> int:
    """Ticks with something in each; the number of the last."""
    traffic = shop.Traffic(pipeline, seed)
    for _ in range(count):
        for _ in range(5):
            traffic.step()
        pipeline.tick()
    last = store_of(pipeline).last_tick()
    assert last is not None
    return last.number


def files_of_the_last_tick(pipeline: hw.Pipeline) -> list[Path]:
    last = store_of(pipeline).last_tick()
    assert last is not None
    found = store_of(pipeline).arrangements(last.number)
    names = {run.file for name, detail in found.items() for run in Manifest.from_dict(detail).runs if name}
    return [Path(pipeline.path, "state", name) for name in sorted(names)]


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_deleted_state_is_built_again_from_the_log(tmp_path: Path, large: bool) -> None:
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 5)
    shutil.rmtree(tmp_path / "state")
    assert not (tmp_path / "scratch").exists()  # nothing went to executors
    with driven(tmp_path, large=large) as pipeline:
        tick = pipeline.tick()
        assert tick is not None
        assert tick.number == last + 1
        expected.check(pipeline)
        assert pipeline.tick() is None
        assert some_ticks(pipeline, 3, "again") == last + 4
        expected.check(pipeline)


@pytest.mark.parametrize("point", ["tick.computed", "tick.synced", "tick.committed", "tick.expired"])
def test_a_rebuild_that_is_interrupted_is_as_if_it_had_not_begun_or_is_whole(tmp_path: Path, point: str) -> None:
    """Whoever followed before is told to begin again; nobody gets the whole view a second time as changes."""
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 5)
    shutil.rmtree(tmp_path / "state")
    with driven(tmp_path) as pipeline, pytest.raises(Interrupted), interrupted_at(point):
        pipeline.tick()
    with driven(tmp_path) as pipeline:
        committed = store_of(pipeline).last_tick()
        assert committed is not None
        with pytest.raises((hw.VersionExpired, hw.Unavailable)):  # never the view's rows as if they were new
            list(pipeline.changes("dear", since=last) if committed.number > last else pipeline.changes("dear"))
        pipeline.tick()
        expected.check(pipeline)
        assert summed(pipeline.changes("dear")) == rows_of(pipeline.read("dear"))
        assert [number for number, _ in store_of(pipeline).ticks()] == [last + 1]


class Interrupted(Exception):
    pass


@contextmanager
def interrupted_at(point: str) -> Iterator[None]:
    def interrupt() -> None:
        raise Interrupted

    crashpoint.arm(point, action=interrupt)
    try:
        yield
    finally:
        crashpoint.arm(None)


def test_one_deleted_file_of_the_newest_version_is_enough_to_build_all_again(tmp_path: Path) -> None:
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 5)
        files_of_the_last_tick(pipeline)[0].unlink()
    with driven(tmp_path) as pipeline:
        assert some_ticks(pipeline, 1, "again") == last + 1
        expected.check(pipeline)


def test_a_driver_that_begins_with_a_missing_file_builds_again_though_nothing_came(tmp_path: Path) -> None:
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 5)
        files_of_the_last_tick(pipeline)[0].unlink()
    with driven(tmp_path) as pipeline:
        tick = pipeline.tick()
        assert tick is not None
        assert (tick.number, tick.rows_in) == (last + 1, 0)
        expected.check(pipeline)


def test_when_the_same_sql_has_an_other_meaning_everything_is_built_again(tmp_path: Path) -> None:
    with driven(tmp_path) as pipeline:
        engine_of(pipeline).meaning = {"time zone": "UTC"}
        last = some_ticks(pipeline, 5)
        assert pipeline.tick() is None
    with driven(tmp_path) as pipeline:
        engine_of(pipeline).meaning = {"time zone": "Asia/Tokyo"}
        tick = pipeline.tick()
        assert tick is not None
        assert tick.number == last + 1
        assert [number for number, _ in store_of(pipeline).ticks()] == [tick.number]
        expected.check(pipeline)
        assert pipeline.tick() is None


def test_without_the_beginning_of_the_log_the_missing_offsets_are_named_and_nothing_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_SEGMENT_BYTES", "2000")
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 5)
        start = log_of(pipeline).trim("orders", 0, 1 << 40)
        assert start > 0
    shutil.rmtree(tmp_path / "state")
    with driven(tmp_path) as pipeline:
        for _ in range(2):
            with pytest.raises(hw.HeadwaterError, match=f"orders, partition 0, offsets 0 to {start - 1}") as caught:
                pipeline.tick()
            assert "backup" in caught.value.hint
        committed = store_of(pipeline).last_tick()
        assert committed is not None
        assert committed.number == last


def garbled(data: bytes) -> bytes:
    return b"\xa5" * len(data)


def cut_short(data: bytes) -> bytes:
    return data[: len(data) // 3]


def emptied(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("harm", [garbled, cut_short, emptied])
def test_damaged_files_are_told_to_readers_and_built_again_by_the_next_tick(tmp_path: Path, harm: object) -> None:
    assert callable(harm)
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 5)
        for path in files_of_the_last_tick(pipeline):
            path.write_bytes(harm(path.read_bytes()))
    with driven(tmp_path) as pipeline:
        for name in ("revenue", "dear", "orders"):
            with pytest.raises(hw.Unavailable, match="the folder `state`"):
                pipeline.read(name)
        assert some_ticks(pipeline, 1, "again") == last + 1
        expected.check(pipeline)
        assert pipeline.tick() is None
        assert some_ticks(pipeline, 2, "more") == last + 3
        expected.check(pipeline)


@pytest.mark.spark
@pytest.mark.slow
def test_deleted_state_is_built_again_by_spark_and_equals_batch(tmp_path: Path) -> None:
    with shop.opened(str(tmp_path), views=False) as pipeline:
        prepare(pipeline, OWN)
        some_ticks(pipeline, 3)
        shutil.rmtree(tmp_path / "state")
        shutil.rmtree(tmp_path / "scratch", ignore_errors=True)  # which only large ticks make
        lease_of(pipeline).release()  # as if this process had ended
        for _ in range(2):
            pipeline.tick()
            assert_same_as_batch(pipeline)
            some_ticks(pipeline, 1, "again")
