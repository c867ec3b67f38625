"""How often a view is planned: as a plan is used, it must be the one that the view was declared with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.spark.engine import Engine
from headwater.testing import assert_same_as_batch

pytestmark = pytest.mark.spark

BIGGEST = "SELECT customer, max(cents) AS cents FROM orders GROUP BY customer"


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of views, as often as they are planned."""
    found: list[str] = []
    plan = Engine.plan

    def noting(self: Engine, name: str, sql: str) -> object:
        found.append(name)
        return plan(self, name, sql)

    monkeypatch.setattr(Engine, "plan", noting)
    return found


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[hw.Pipeline]:
    """A pipeline with some orders."""
    with hw.Pipeline("shop", tmp_path / "shop") as pipeline:
        orders = pipeline.stream("orders", "customer BIGINT, cents BIGINT")
        orders.append([{"customer": n % 3, "cents": n} for n in range(10)])
        yield pipeline


def test_a_view_is_planned_once_by_the_process_that_declares_it(shop: hw.Pipeline, planned: list[str]) -> None:
    shop.view("biggest", BIGGEST)
    shop.tick()
    shop._topic("orders").append([{"customer": 7, "cents": 1}])
    shop.tick()
    assert planned == ["biggest"]
    assert_same_as_batch(shop)


def test_another_process_plans_it_for_itself(shop: hw.Pipeline, planned: list[str], tmp_path: Path) -> None:
    shop.view("biggest", BIGGEST)
    shop.tick()
    shop.close()
    with hw.Pipeline("shop", tmp_path / "shop") as again:
        again._topic("orders").append([{"customer": 7, "cents": 1}])
        again.tick()
        assert_same_as_batch(again)
    assert planned == ["biggest", "biggest"]


def test_a_view_of_a_view_is_planned_on_what_was_declared_of_it(shop: hw.Pipeline, planned: list[str]) -> None:
    shop.view("large", "SELECT * FROM orders WHERE cents > 3")
    shop.view("biggest", BIGGEST.replace("orders", "large"))
    shop.tick()
    assert planned == ["large", "biggest", "biggest"]
    assert_same_as_batch(shop)


def test_a_function_that_is_declared_anew_counts(shop: hw.Pipeline) -> None:
    shop.udf("twice", lambda cents: cents * 2, "BIGINT")
    shop.view("doubled", "SELECT customer, twice(cents) AS cents FROM orders")
    shop.udf("twice", lambda cents: cents + cents + 1, "BIGINT")
    shop.tick()
    assert sorted(shop.read("doubled")["cents"].to_pylist()) == [2 * n + 1 for n in range(10)]


def test_what_was_declared_anew_meanwhile_counts(
    shop: hw.Pipeline, planned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    declare, tables = shop._store.declare, list[hw.Table]()

    def meanwhile(name: str, kind: str, spec: dict[str, object]) -> object:
        monkeypatch.undo()
        shop.drop("orders")
        tables.append(shop.table("orders", "customer BIGINT, cents BIGINT", key="customer"))
        return declare(name, kind, spec)

    monkeypatch.setattr(shop._store, "declare", meanwhile)
    shop.view("biggest", BIGGEST)
    for cents in (9, 3):
        tables[0].upsert([{"customer": 1, "cents": cents}])
        shop.tick()
    assert shop.read("biggest").to_pylist() == [{"customer": 1, "cents": 3}]


def test_state_that_was_built_again_by_another_process_is_found_under_its_names(
    shop: hw.Pipeline, planned: list[str], tmp_path: Path
) -> None:
    customers = shop.stream("customers", "id BIGINT")
    customers.append([{"id": 1}])
    shop.view("pairs", "SELECT c.id, o.cents FROM customers c JOIN orders o ON c.id = o.customer")
    before = shop._store.declarations()["pairs"].spec["shares"]
    with hw.Pipeline("shop", tmp_path / "shop") as other:
        other.tick()
        shutil.rmtree(tmp_path / "shop" / "state")
        other._driver()._checked = 0
        customers.append([{"id": 2}])
        other.tick()
    assert shop._store.declarations()["pairs"].spec["shares"] != before
    customers.append([{"id": 0}])
    shop.tick()
    assert shop.read("pairs").num_rows == 10
    assert_same_as_batch(shop)


def test_two_processes_that_declare_the_same_at_once_both_have_it(
    shop: hw.Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.stream("customers", "id BIGINT")
    sql = "SELECT c.id, o.cents FROM customers c JOIN orders o ON c.id = o.customer"
    declare = shop._store.declare
    with hw.Pipeline("shop", tmp_path / "shop") as other:

        def second(name: str, kind: str, spec: dict[str, object]) -> object:
            other.view(name, sql)
            return declare(name, kind, spec)

        monkeypatch.setattr(shop._store, "declare", second)
        assert shop.view("pairs", sql) == other.view("pairs", sql)
    shop.tick()
    assert_same_as_batch(shop)
