"""What is dropped, by this or another process, while a tick is under way."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater import crashpoint
from headwater.tick.driver import Driver
from tests.crash import expected
from tests.inside import log_of, store_of, topic_of
from tests.tick.moving import move

Driven = tuple[hw.Pipeline, Driver]


def reopened(pipeline: hw.Pipeline) -> hw.Pipeline:
    """The same folder, as another process has it."""
    return hw.Pipeline(pipeline.name, pipeline.path)


def passing(pipeline: hw.Pipeline) -> hw.Table:
    """A topic that no view reads, with a row that no tick has taken in."""
    table = pipeline.table("passing", "id BIGINT", key="id", partitions=2)
    table.upsert([{"id": 1}, {"id": 2}])
    return table


def before(
    monkeypatch: pytest.MonkeyPatch, pipeline: hw.Pipeline, methods: Sequence[str], act: Callable[[], None]
) -> None:
    """Have something done once, just before the log is asked for one of these of that topic."""
    log, left = log_of(pipeline), [act]

    def asking(plain: Callable[..., Any]) -> Callable[..., Any]:
        def asked(topics: Any, *arguments: Any, **more: Any) -> Any:
            if left and "passing" in topics:
                left.pop()()
            return plain(topics, *arguments, **more)

        return asked

    for method in methods:
        monkeypatch.setattr(log, method, asking(getattr(log, method)))


@pytest.fixture(params=["by another", "by this"])
def dropping(request: pytest.FixtureRequest, driven: Driven) -> Iterator[hw.Pipeline]:
    """Through what it is dropped: another process, or another thread of this one."""
    if request.param == "by this":
        yield driven[0]
    else:
        with reopened(driven[0]) as other:
            yield other


@pytest.mark.parametrize("methods", [["cut"], ["slices", "read"]], ids=["cut", "rows"])
def test_a_topic_that_is_dropped_in_a_tick_does_not_stop_it(
    driven: Driven, dropping: hw.Pipeline, monkeypatch: pytest.MonkeyPatch, methods: Sequence[str]
) -> None:
    pipeline, _ = driven
    passing(pipeline)
    move(pipeline, 2)
    before(monkeypatch, pipeline, methods, lambda: dropping.drop("passing"))
    assert pipeline.tick() is not None
    assert store_of(pipeline).find("passing") is None
    assert expected.check(pipeline) == 2


def test_a_topic_that_is_dropped_and_declared_again_in_a_tick_has_the_new_rows_alone(
    driven: Driven, dropping: hw.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, _ = driven
    passing(pipeline)
    move(pipeline, 2)

    def renew() -> None:
        dropping.drop("passing")
        dropping.table("passing", "id BIGINT", key="id").upsert([{"id": 7}])

    before(monkeypatch, pipeline, ["cut"], renew)
    while pipeline.tick() is not None:
        pass
    assert pipeline.read("passing").to_pylist() == [{"id": 7}]
    expected.check(pipeline)


@pytest.mark.parametrize("point", ["tick.tables", "tick.computed", "tick.written", "tick.synced"])
def test_a_view_that_is_dropped_in_a_tick_does_not_stop_it(
    driven: Driven, dropping: hw.Pipeline, point: str
) -> None:
    pipeline, _ = driven
    passing(pipeline)
    move(pipeline, 2)

    def drop() -> None:
        dropping.drop("dear")
        dropping.drop("passing")

    crashpoint.arm(point, action=drop)
    try:
        assert pipeline.tick() is not None
    finally:
        crashpoint.arm(None)
    assert {"dear", "passing"}.isdisjoint(store_of(pipeline).declarations())
    move(pipeline, 3)
    assert pipeline.tick() is not None
    with pytest.raises(hw.HeadwaterError, match="there is no view"):
        pipeline.read("dear")


def test_running_goes_on_when_a_topic_is_dropped(
    driven: Driven, dropping: hw.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, _ = driven
    passing(pipeline)
    move(pipeline, 2)
    before(monkeypatch, pipeline, ["cut"], lambda: dropping.drop("passing"))
    pipeline.run(seconds=60, until=lambda tick: True)
    assert expected.check(pipeline) == 2


def test_a_topic_whose_folder_is_lost_is_not_taken_for_dropped_time_and_again(driven: Driven) -> None:
    pipeline, _ = driven
    number = topic_of(pipeline, passing(pipeline).name).number
    shutil.rmtree(Path(pipeline.path) / "log" / f"passing.{number}")
    with pytest.raises(hw.HeadwaterError, match="passing"):
        pipeline.tick()


def test_declaring_what_another_process_drops_at_once_says_so(
    pipeline: hw.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(pipeline)
    declare = store.declare

    def declared(*arguments: Any) -> Any:
        found = declare(*arguments)
        with reopened(pipeline) as other:
            other.drop("t")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(store, "declare", declared)
        with pytest.raises(hw.HeadwaterError, match="t: the topic was dropped"):
            pipeline.stream("t", "n INT")
    assert not list(Path(pipeline.path, "log").glob("t.*"))
    pipeline.stream("t", "n INT").append([{"n": 1}])


def test_the_rest_of_a_topic_whose_dropping_was_killed_goes_when_the_log_is_opened(pipeline: hw.Pipeline) -> None:
    log = Path(pipeline.path, "log")
    (log / "t.7.dropped" / "0").mkdir(parents=True)
    reopened(pipeline).close()
    assert not list(log.glob("t.*"))
