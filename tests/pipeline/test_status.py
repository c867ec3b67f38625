"""`status()`: one picture of a pipeline, from any process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.evaluation.errors import EvaluationFailed
from headwater.pipeline import candidates, reopen
from headwater.testing import ManualClock
from tests.crash import shop
from tests.crash.hand_engine import HandEngine, drive
from tests.inside import lease_of, log_of, topic_of
from tests.tick.moving import move


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def pipeline(tmp_path: Path, clock: ManualClock) -> Iterator[hw.Pipeline]:
    """The shop of the crash tests with all of its views, before the first tick."""
    with hw.Pipeline("shop", tmp_path, clock=clock) as made:
        shop.declare_topics(made)
        drive(made)
        shop.declare_views(made)
        yield made


def view(pipeline: hw.Pipeline, name: str) -> Any:
    (found,) = (each for each in pipeline.status().views if each.name == name)
    return found


def topic(pipeline: hw.Pipeline, name: str) -> Any:
    (found,) = (each for each in pipeline.status().topics if each.name == name)
    return found


def test_before_the_first_tick_views_are_to_be_filled_and_nobody_needs_to_drive(tmp_path: Path) -> None:
    with hw.Pipeline("empty", tmp_path) as pipeline:
        status = pipeline.status()
    assert (status.topics, status.views, status.ticks) == ((), (), None)
    assert status.driver.running is False
    assert status.name == "empty"


def test_a_topic_says_how_much_it_has_how_fast_it_grows_and_what_waits(
    pipeline: hw.Pipeline, clock: ManualClock
) -> None:
    clicks: Any = topic_of(pipeline, "clicks")
    clicks.append([{"who": 1, "n": n} for n in range(40)])
    clock.advance(120)
    clicks.append([{"who": 2, "n": n} for n in range(30)])
    before = topic(pipeline, "clicks")
    assert (before.kind, before.records, before.waiting, before.rate) == ("stream", 70, 70, 0.5)
    assert before.bytes > 0
    pipeline.tick()
    clock.advance(120)
    clicks.append([{"who": 3, "n": 0}])
    assert (topic(pipeline, "clicks").waiting, topic(pipeline, "clicks").rate) == (1, round(1 / 60, 3))
    assert topic(pipeline, "customers").waiting == 0


def test_rows_that_were_set_aside_are_counted(tmp_path: Path) -> None:
    with hw.Pipeline("p", tmp_path) as pipeline:
        numbers = pipeline.stream("numbers", "n BIGINT", on_error="dead_letter")
        numbers.append([{"n": 1}, {"n": "many"}, {"n": "few"}])
        assert topic(pipeline, "numbers").dead_letters == 2
        assert topic(pipeline, "numbers__dead_letters").records == 2


def test_a_topic_that_cannot_be_opened_says_why_and_hides_nothing_else(tmp_path: Path) -> None:
    with hw.Pipeline("p", tmp_path) as pipeline:
        pipeline.stream("gone", "n BIGINT")
        pipeline.stream("well", "n BIGINT").append([{"n": 1}])
    (folder,) = (tmp_path / "log").glob("gone.*")
    os.rename(folder, tmp_path / "elsewhere")
    with hw.Pipeline("p", tmp_path) as pipeline:
        assert "missing" in topic(pipeline, "gone").fault
        assert (topic(pipeline, "gone").records, topic(pipeline, "well").records) == (None, 1)


def test_a_view_is_filled_then_fresh_then_behind(pipeline: hw.Pipeline) -> None:
    assert (view(pipeline, "revenue").state, view(pipeline, "revenue").rows) == ("filling", None)
    move(pipeline, 1)
    pipeline.tick()
    fresh = view(pipeline, "revenue")
    assert (fresh.state, fresh.tick, fresh.changed, fresh.rows, fresh.behind) == ("fresh", 1, 1, 1, 0)
    assert fresh.bytes > 0
    assert (fresh.key, fresh.schema) == (("country",), "country STRING, cents BIGINT, sales BIGINT")
    topic_of(pipeline, "customers").upsert([{"id": 9, "country": "SE"}])
    for name in ("revenue", "total"):  # which reads revenue
        assert (view(pipeline, name).state, view(pipeline, name).behind) == ("behind", 1)
    assert view(pipeline, "clicked").state == "fresh"


def test_the_tick_that_changed_a_view_is_told_and_how_many_rows_it_has(pipeline: hw.Pipeline) -> None:
    for number in range(1, 13):
        move(pipeline, number)
        pipeline.tick()
        assert view(pipeline, "dear").rows == number
    bag: Any = topic_of(pipeline, "bag")
    bag.append([{"word": "tea", "n": 1}])
    pipeline.tick()
    dear, words = view(pipeline, "dear"), view(pipeline, "words")
    assert (dear.tick, dear.changed, dear.rows) == (13, 12, 12)
    assert (words.tick, words.changed, words.rows) == (13, 13, 1)
    orders: Any = topic_of(pipeline, "orders")
    orders.delete([1, 2])
    pipeline.tick()
    assert view(pipeline, "dear").rows == 10


def test_rows_that_were_taken_back_do_not_count(pipeline: hw.Pipeline) -> None:
    for number in (1, 2):
        move(pipeline, number)
    pipeline.tick()
    orders: Any = topic_of(pipeline, "orders")
    orders.delete([1])
    pipeline.tick()
    assert view(pipeline, "dear").rows == 1


def test_a_view_that_stands_still_says_why_since_when_and_what_to_do(
    pipeline: hw.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    move(pipeline, 1)
    pipeline.tick()

    def broken(*_: Any) -> Any:
        raise EvaluationFailed("division by zero", hint="correct it")

    monkeypatch.setattr(HandEngine, "evaluate", broken)
    move(pipeline, 2)
    pipeline.tick()
    dear = view(pipeline, "dear")
    assert (dear.state, dear.tick, dear.rows) == ("suspended", 1, 1)
    assert (dear.suspended.since, dear.suspended.hint, dear.suspended.because) == (1, "correct it", "")
    assert "division by zero" in dear.suspended.reason
    assert view(pipeline, "revenue").state == "fresh"


def test_what_is_to_replace_a_view_is_being_built_then_held_then_ready(pipeline: hw.Pipeline) -> None:
    move(pipeline, 1)
    pipeline.tick()
    number = candidates.begin(pipeline, "dear", "SELECT another", hold=True).number
    assert (view(pipeline, "dear").replacement.number, view(pipeline, "dear").replacement.state) == (
        number,
        "building",
    )
    pipeline.tick()
    assert view(pipeline, "dear").replacement.state == "held"
    candidates.switch(pipeline, "dear")
    assert view(pipeline, "dear").replacement.state == "ready"
    pipeline.tick()
    assert (view(pipeline, "dear").number, view(pipeline, "dear").replacement) == (number, None)


def test_a_view_over_what_has_lost_its_beginning_says_from_where_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_SEGMENT_BYTES", "2000")
    with hw.Pipeline("shop", tmp_path) as pipeline:
        shop.declare_topics(pipeline)
        drive(pipeline)
        clicks: Any = topic_of(pipeline, "clicks")
        for n in range(100):
            clicks.append([{"who": 1, "n": n}])
        start = log_of(pipeline).trim("clicks", 0, 20)
        assert start > 0
        sql = shop.VIEWS["clicked"]
        pipeline.view("clicked", sql)
        pipeline.tick()
        for _ in range(2):  # also after another tick
            assert view(pipeline, "clicked").begins == {"clicks": {"0": start}}
            assert f"begins with offset {start} of partition 0 of clicks" in pipeline.explain("clicked")
            clicks.append([{"who": 2, "n": 0}])
            pipeline.tick()
        log_of(pipeline).trim("clicks", 0, 40)
        assert view(pipeline, "clicked").begins == {"clicks": {"0": start}}


def test_ticks_and_the_driver_are_told_from_another_process_too(pipeline: hw.Pipeline) -> None:
    move(pipeline, 1)
    made = pipeline.tick()
    assert made is not None
    with reopen(pipeline.path) as other:
        ticks, driver = other.status().ticks, other.status().driver
        assert ticks is not None
        assert (ticks.number, ticks.rows_in, ticks.oldest, ticks.kept) == (1, made.rows_in, 1, 1)
        assert (ticks.at, ticks.rows_out) == (made.at, sum(made.rows_out.values()))
        assert (driver.running, driver.pid, driver.epoch) == (True, os.getpid(), lease_of(pipeline).epoch)
        assert driver.since is not None
        lease_of(pipeline).release()
        assert other.status().driver.running is False


def test_as_data_it_is_json(pipeline: hw.Pipeline) -> None:
    move(pipeline, 1)
    pipeline.tick()
    told = json.loads(json.dumps(pipeline.status().as_dict()))
    assert set(told) == {"name", "path", "at", "topics", "views", "ticks", "driver"}
    assert told["ticks"]["at"] == told["at"] == "2026-01-01T00:00:00.000+00:00"
    assert [each["name"] for each in told["views"]] == list(shop.VIEWS)
