"""What a tick tells of each view, and what a view costs that reads nothing that changed."""

from __future__ import annotations

from typing import Any

import pytest

import headwater as hw
from headwater.tick.computation import Computation
from headwater.tick.driver import Driver
from headwater.tick.relations import table_change
from tests.crash import expected
from tests.inside import store_of, topic_of
from tests.tick.moving import move


def detail(pipeline: hw.Pipeline) -> Any:
    last = store_of(pipeline).last_tick()
    assert last is not None
    return last.detail


def test_a_view_that_reads_nothing_that_changed_is_neither_computed_nor_looked_up(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, _ = driven
    bag: Any = topic_of(pipeline, "bag")
    computed: list[str] = []
    tables: list[str] = []
    view = Computation.view

    def noting(self: Computation, name: str, *given: Any, **named: Any) -> Any:
        computed.append(name)
        return view(self, name, *given, **named)

    def looking(relation: Any, *given: Any) -> Any:
        tables.append(relation.name)
        return table_change(relation, *given)

    monkeypatch.setattr(Computation, "view", noting)
    monkeypatch.setattr("headwater.tick.computation.table_change", looking)
    bag.append([{"word": "tea", "n": 1}])
    tick = pipeline.tick()
    assert tick is not None
    assert (computed, set(tables)) == (["words"], {"bag"} & set(tables))
    assert (set(tick.rows_out), set(tick.paths)) == ({"words"}, {"words"})
    topic_of(pipeline, "customers").upsert([{"id": 1, "country": "SE"}])
    pipeline.tick()
    assert set(computed) == {"words", "revenue", "total"}
    assert pipeline.read("words").to_pylist() == [{"word": "tea"}]


def test_who_reads_what_changed_and_what_did_not_gets_both(driven: tuple[hw.Pipeline, Driver]) -> None:
    pipeline, _ = driven
    topic_of(pipeline, "orders").upsert([{"id": 50, "customer": 1, "cents": 7}])  # customers stay as they are
    pipeline.tick()
    assert pipeline.read("revenue").to_pylist() == [{"country": "NO", "cents": 608, "sales": 2}]
    move(pipeline, 2)
    pipeline.tick()
    assert pipeline.read("total").to_pylist() == [{"cents": 1210, "sales": 3}]


def test_a_tick_tells_for_each_view_what_it_did_and_for_how_long(driven: tuple[hw.Pipeline, Driver]) -> None:
    pipeline, driver = driven
    move(pipeline, 2)
    tick = pipeline.tick()
    assert tick is not None
    told = detail(pipeline)["views"]
    assert set(told) == {"revenue", "total", "dear", "clicked"}
    assert all(each["path"] == ("small" if driver.small_rows else "large") for each in told.values())
    assert {name: each["changed"] for name, each in told.items()} == dict(tick.rows_out)
    assert told["dear"]["taken"] == 1
    assert told["dear"]["read"] == 0
    assert told["revenue"]["read"] > 0
    assert all(0 < each["seconds"] < tick.seconds + 1 for each in told.values())
    assert sum(each["read"] for each in told.values()) <= tick.rows_read == detail(pipeline)["rows_read"]
    assert "rows taken in: 1, looked up: 0" in pipeline.explain("dear")
    (dear,) = (view for view in pipeline.status().views if view.name == "dear")
    assert dear.seconds == told["dear"]["seconds"]


def test_what_had_nothing_to_do_for_long_goes_on_where_it_was(driven: tuple[hw.Pipeline, Driver]) -> None:
    pipeline, _ = driven
    clicks: Any = topic_of(pipeline, "clicks")
    for number in range(3):
        clicks.append([{"who": number, "n": 1}])
        pipeline.tick()
    move(pipeline, 2)
    pipeline.tick()
    assert expected.check(pipeline) == 5
