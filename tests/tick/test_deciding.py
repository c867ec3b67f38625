"""Deciding what there is to do for a tick changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

import headwater as hw
from headwater.pipeline.planning import Planning
from headwater.tick.driver import Driver
from headwater.tick.recovery import Before
from tests.crash import expected
from tests.inside import deciding_of, planning_of, store_of
from tests.tick.moving import move


def test_that_a_view_is_to_be_made_anew_is_decided_without_declaring_anything(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver = driven
    store, catalog = store_of(pipeline), planning_of(pipeline).catalog()

    def differs(_: Planning, view: Any, *given: Any) -> str:
        return "its plan has become another" if view.name == "dear" else ""

    before = store.declarations()
    with monkeypatch.context() as patched:
        patched.setattr(Planning, "differs", differs)
        found = Before(store.arrangements(1))
        first, second = (deciding_of(driver).declarations(catalog, store.last_tick(), [1], found) for _ in range(2))
        assert str(first) == str(second)
        assert [(each.how, each.view.name, each.view.renewed) for each in first.amendments] == [
            ("declare", "dear@next", "its plan has become another")
        ]
        assert list(first.unable) == [catalog.views["dear"].number]
        assert store.declarations() == before
        move(pipeline, 2)
        pipeline.tick()
    assert "made anew at tick 2: its plan has become another" in pipeline.explain("dear")
    move(pipeline, 3)
    pipeline.tick()
    assert expected.check(pipeline) == 3


def test_what_is_declared_while_a_tick_is_computed_is_of_the_next_one(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, _ = driven
    store = store_of(pipeline)
    commit = store.commit

    def meanwhile(*given: Any, **named: Any) -> None:
        monkeypatch.undo()
        pipeline.drop("clicked")
        commit(*given, **named)

    monkeypatch.setattr(store, "commit", meanwhile)
    move(pipeline, 2)
    tick = pipeline.tick()
    assert tick is not None
    assert "clicked" in tick.rows_out
    move(pipeline, 3)
    tick = pipeline.tick()
    assert tick is not None
    assert "clicked" not in tick.rows_out
