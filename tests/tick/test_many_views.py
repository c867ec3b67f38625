"""Many views: what a tick does follows what changed, however many views there are beside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.pipeline.planning import Planning
from headwater.store import TickRecord
from headwater.tick.jobs import Job
from tests.crash import shop
from tests.crash.hand_engine import PLANS, drive
from tests.inside import database_of, store_of, topic_of


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Opens the shop with so many views of clicks, half as many that share something, and three of words."""

    def opening(count: int) -> hw.Pipeline:
        pipeline = hw.Pipeline("many", tmp_path / str(count))
        shop.declare_topics(pipeline)
        drive(pipeline)
        for kind, times in {"clicked": count, "revenue": count // 2, "words": 3}.items():
            for name in (f"{kind}{number}" for number in range(times)):
                monkeypatch.setitem(PLANS, name, PLANS[kind])
                pipeline.view(name, f"SELECT '{name}'")  # plans are made by hand
        click(pipeline, 1)
        say(pipeline, "tea")
        return pipeline

    return opening


def say(pipeline: hw.Pipeline, word: str) -> TickRecord:
    """A tick in which the three views of words change."""
    bag: Any = topic_of(pipeline, "bag")
    bag.append([{"word": word, "n": 1}])
    pipeline.tick()
    last = store_of(pipeline).last_tick()
    assert last is not None
    return last


def click(pipeline: hw.Pipeline, who: int) -> None:
    """A tick in which all other views change."""
    clicks: Any = topic_of(pipeline, "clicks")
    clicks.append([{"who": who, "n": 1}])
    pipeline.tick()


def test_of_a_view_that_reads_nothing_that_changed_no_plan_is_opened_and_no_job_begun(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[str] = []
    begun: list[str] = []
    plan, job = Planning.planned, Job.__init__

    def planning(self: Planning, view: Any, catalog: Any) -> Any:
        planned.append(view.name)
        return plan(self, view, catalog)

    def beginning(self: Job, *given: Any, **named: Any) -> None:
        begun.append("")
        job(self, *given, **named)

    with opened(40) as pipeline:
        monkeypatch.setattr(Planning, "planned", planning)
        monkeypatch.setattr(Job, "__init__", beginning)
        say(pipeline, "milk")
        assert sorted(planned) == ["words0", "words1", "words2"]
        assert len(begun) == 3
        click(pipeline, 2)
        assert len(planned) == len(begun) == 3 + 40
        assert pipeline.read("clicked39").num_rows == 2
        assert pipeline.read("words0").num_rows == 2


def test_what_a_tick_notes_does_not_grow_with_the_number_of_views(opened: Any) -> None:
    found = {}
    for count in (2, 40):
        with opened(count) as pipeline:
            noted = say(pipeline, "milk")
            detail = {name: each for name, each in noted.detail.items() if name != "seconds"}
            for work in detail["views"].values():
                del work["seconds"]
            found[count] = json.dumps(detail), [len(each.detail["runs"]) for each in noted.runs]
    assert found[2] == found[40]


def noting(asked: list[str], name: str, action: Callable[..., Any]) -> Callable[..., Any]:
    """Does the same, and notes that it was asked for."""

    def noted(*given: Any) -> Any:
        asked.append(name)
        return action(*given)

    return noted


def test_a_driver_reads_of_the_store_only_what_others_may_have_changed(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(40) as pipeline:
        store, database = store_of(pipeline), database_of(pipeline)
        say(pipeline, "milk")
        asked: list[str] = []
        for name in ("arrangements", "last_tick", "ticks", "find"):
            monkeypatch.setattr(store, name, noting(asked, name, getattr(store, name)))
        read = database.all
        rows: list[int] = []

        def reading(*given: Any) -> Any:
            found = read(*given)
            rows.append(len(found))
            return found

        monkeypatch.setattr(database, "all", reading)
        topic_of(pipeline, "bag").append([{"word": "water", "n": 1}])
        rows.clear()
        asked.clear()
        pipeline.tick()
        assert asked == ["find"]  # the topic that moved may have been altered
        assert sum(rows) < 10


def test_what_is_declared_or_dropped_meanwhile_counts_in_the_next_tick(opened: Any) -> None:
    with opened(5) as pipeline:
        say(pipeline, "milk")
        pipeline.drop("words1")
        pipeline.view("clicked", "SELECT 'more'")
        noted = say(pipeline, "water")
        assert set(noted.detail["views"]) == {"words0", "words2", "clicked"}
        click(pipeline, 7)
        assert pipeline.read("clicked").num_rows == pipeline.read("clicked0").num_rows == 2
