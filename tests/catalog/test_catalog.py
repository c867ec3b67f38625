"""A catalog: what is declared at one moment, and what follows from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import headwater as hw
from headwater.catalog.catalog import Catalog
from headwater.catalog.relation import Relation
from headwater.catalog.relations import Relations
from headwater.catalog.view import ViewDeclaration
from headwater.schema import parse
from tests.inside import store_of, topic_of

COLUMNS = parse("id BIGINT")


def view(name: str, *inputs: str, number: int = 1, **given: object) -> ViewDeclaration:
    made = ViewDeclaration(name, "SELECT …", (), COLUMNS, inputs, (), appends_only=True, number=number)
    return replace(made, **given)  # type: ignore[arg-type]


def catalog(*views: ViewDeclaration) -> Catalog:
    return Catalog.of({each.name: Relation.of_view(each) for each in views}, views)


def test_views_come_behind_what_they_read_and_behind_what_is_to_replace_them() -> None:
    found = catalog(view("c", "b"), view("b", "a"), view("a"), view("a@next"))
    assert list(found.views) == ["a@next", "a", "b", "c"]
    assert found.readers("a") == ["b", "c"]
    assert found.dependents("a") == ["b"]


def test_rows_may_disappear_of_what_is_about_to_be_replaced_and_of_what_reads_it() -> None:
    found = catalog(view("a"), view("b", "a"))
    assert found.appends_only("b")
    assert not found.with_view(view("a@next")).appends_only("b")
    assert found.with_view(view("a@next")).without("a@next") == found


def test_a_catalog_never_changes() -> None:
    before = catalog(view("a"), view("b", "a"))
    after = before.with_view(view("a", steady=("x",)))
    assert before.views["a"].steady == ()
    assert after.views["a"].steady == ("x",)
    assert list(after.views) == ["a", "b"]


def test_a_view_waits_with_the_switch_if_it_is_held_or_its_readers_could_not_go_on() -> None:
    other = parse("id STRING")
    alone = catalog(view("a"), view("a@next", schema=other))
    assert alone.switching == {"a"}
    assert not alone.with_view(view("b", "a")).switching
    assert not alone.with_view(view("a@next", hold=True)).switching
    assert alone.with_view(view("b", "a")).with_view(view("a@next")).switching == {"a"}


def test_what_views_share_is_known_with_those_who_need_it() -> None:
    shared = {"~1": ("a", "~2"), "~2": ("b",)}
    found = catalog(view("a"), view("b"), *(view(name, "a", "b", shared=shared) for name in ("c", "d")))
    assert set(found.users("~1")) == {"c", "d"}
    assert [each.name for each in found.inputs("~1")] == ["a", "b"]
    assert list(found.shares("~1")) == ["~2"]


def test_it_is_read_anew_only_if_something_was_declared(tmp_path: Path) -> None:
    with hw.Pipeline("p", tmp_path) as pipeline:
        orders = pipeline.stream("orders", "id BIGINT")
        relations = Relations(store_of(pipeline), lambda name: topic_of(pipeline, name))
        first = relations.catalog()
        assert first.topics == {"orders": orders.number}
        assert first.find("ORDERS__LOG") == Relation.of_log(orders)
        assert relations.catalog() is first
        pipeline.table("customers", "id BIGINT", key="id")
        assert list(relations.catalog().topics) == ["orders", "customers"]
        assert list(first.topics) == ["orders"]
