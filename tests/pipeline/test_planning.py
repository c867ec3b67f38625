"""How often a view is planned: as a plan is used, it must be the one that the view was declared with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

import headwater as hw
from headwater.spark.engine import SparkEngine
from headwater.spark.planner.analyse import Resolve
from headwater.spark.planner.kept_plan import KeptPlan
from headwater.testing import assert_same_as_batch
from tests.inside import driver_of, engine_of, store_of, topic_of

pytestmark = pytest.mark.spark

BIGGEST = "SELECT customer, max(cents) AS cents FROM orders GROUP BY customer"


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of views, as often as they are planned."""
    found: list[str] = []
    plan = SparkEngine.plan

    def noting(self: SparkEngine, name: str, sql: str, relation: Resolve) -> object:
        found.append(name)
        return plan(self, name, sql, relation)

    monkeypatch.setattr(SparkEngine, "plan", noting)
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
    topic_of(shop, "orders").append([{"customer": 7, "cents": 1}])
    shop.tick()
    assert planned == ["biggest"]
    assert_same_as_batch(shop)


def test_a_join_of_all_pairs_says_how_many_those_are_when_it_is_declared(shop: hw.Pipeline) -> None:
    shop.table("customers", "id BIGINT", key="id").upsert([{"id": 1}, {"id": 2}])
    shop.view("known", "SELECT count(*) AS n FROM customers")
    shop.tick()
    shop.view("pairs", "SELECT o.cents, c.id FROM orders o JOIN customers c ON o.customer <> c.id")
    assert "each tick: looks at every row of the other side: 10 x 2\n" in shop.explain("pairs")
    shop.tick()
    assert "each tick: looks at every row of the other side: 10 x 2\n" in shop.explain("pairs")


RICH = {
    "biggest": BIGGEST,
    "direct": "SELECT customer, cents + 1 AS cents, 'x' AS x FROM orders WHERE cents > 2",
    "windows": "SELECT customer, cents, rank() OVER (PARTITION BY customer ORDER BY cents) AS n FROM orders",
    "split": "SELECT customer, word FROM orders LATERAL VIEW explode(split(string(cents), '')) w AS word",
    "groups": "SELECT customer, cents, count(*) AS n, avg(cents) AS a FROM orders GROUP BY CUBE (customer, cents)",
    "texts": "SELECT to_json(struct(customer, map('a', cents))) AS j, "
    "transform(array(cents), x -> x + customer) AS t, "
    "regexp_replace(string(cents), '[1-3](.)', '$1') AS r, DATE '2026-01-01' + INTERVAL '1' DAY AS d FROM orders",
    "pairs": "SELECT a.cents, b.customer FROM orders a FULL JOIN orders b ON a.cents = b.cents + 1",
    "middle": "SELECT customer, percentile(cents, 0.5) AS p, collect_set(cents % 2) AS s "
    "FROM orders GROUP BY customer",
    "few": "SELECT cents FROM orders WHERE cents IN (1, 3, 5, 7) OR cents > (SELECT avg(cents) FROM orders)",
    "first": "SELECT cents FROM orders ORDER BY cents DESC, customer LIMIT 3",
    "given": "SELECT o.cents, v.b FROM orders o "
    "JOIN VALUES (1, DECIMAL('1.50')), (2, NULL) v (a, b) ON o.customer = v.a",
    "until": "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT n FROM r",
}


@pytest.mark.parametrize("path", ["small", "large"])
def test_another_process_goes_on_with_the_plan_that_was_kept(
    shop: hw.Pipeline, planned: list[str], tmp_path: Path, path: str
) -> None:
    chosen = RICH if path == "small" else {name: RICH[name] for name in ("split", "pairs", "middle", "first")}
    for name, sql in chosen.items():
        shop.view(name, sql)
    shop.tick()
    shop.close()
    again = set()
    for number in range(2):
        planned.clear()
        with hw.Pipeline("shop", tmp_path / "shop") as other:
            driver_of(other).small_rows = 0 if path == "large" else 20_000
            topic_of(other, "orders").append([{"customer": 7, "cents": n} for n in range(number, 9, 2)])
            other.tick()
            assert_same_as_batch(other)
        again |= set(planned)
    assert again <= {"until"}  # it holds rows of its own


def test_a_kept_plan_is_not_used_for_anything_else(shop: hw.Pipeline, planned: list[str], tmp_path: Path) -> None:
    shop.view("biggest", BIGGEST)
    shop.view("direct", RICH["direct"])
    shop.tick()
    shop.close()
    folder = tmp_path / "shop" / "plans"
    first, second = sorted(folder.iterdir())

    def opened() -> list[str]:
        planned.clear()
        with hw.Pipeline("shop", tmp_path / "shop") as other:
            topic_of(other, "orders").append([{"customer": 7, "cents": 1}])
            other.tick()
            assert_same_as_batch(other)
        return sorted(planned)

    assert opened() == []
    whole = first.read_bytes()
    for damaged in (second.read_bytes(), b"", whole[: len(whole) // 2], whole[:-9] + b"x" + whole[-8:]):
        first.write_bytes(damaged)
        assert opened() == ["biggest"]
        assert opened() == []
    first.unlink()
    assert opened() == ["biggest"]
    assert first.read_bytes() == whole or opened() == []


def test_a_process_opens_the_plans_of_the_views_that_its_ticks_touch(
    shop: hw.Pipeline, planned: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.stream("refunds", "customer BIGINT, cents BIGINT").append([{"customer": 1, "cents": 5}])
    shop.view("biggest", BIGGEST)
    shop.view("refunded", BIGGEST.replace("orders", "refunds"))
    shop.view("twice", "SELECT cents * 2 AS cents FROM refunded")
    shop.tick()
    shop.close()
    opened: list[str] = []
    read = KeptPlan.read

    def reading(self: KeptPlan, key: str) -> object:
        opened.append(Path(self._path).name)
        return read(self, key)

    monkeypatch.setattr(KeptPlan, "read", reading)
    planned.clear()
    with hw.Pipeline("shop", tmp_path / "shop") as other:
        states = {n: f"v{each.number}" for n, each in store_of(other).declarations().items()}
        topic_of(other, "orders").append([{"customer": 1, "cents": 100}])
        other.tick()
        assert opened == [states["biggest"]]
        topic_of(other, "refunds").append([{"customer": 1, "cents": 7}])
        other.tick()
        assert opened == [states["biggest"], states["refunded"], states["twice"]]
        assert_same_as_batch(other)
    assert planned == []


def test_nothing_is_read_that_is_no_part_of_a_plan(shop: hw.Pipeline, tmp_path: Path) -> None:
    catalyst = engine_of(shop).catalyst
    kept = KeptPlan(catalyst, str(tmp_path / "plan"))
    for other in (catalyst.jvm.java.util.Random(), catalyst.jvm.java.io.File("/"), catalyst.jvm.java.util.Date()):
        with pytest.raises(Py4JJavaError, match="REJECTED"):
            kept._objects(kept._bytes([other]))


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
    declare, tables = store_of(shop).declare, list[hw.Table]()

    def meanwhile(name: str, kind: str, spec: dict[str, object]) -> object:
        monkeypatch.undo()
        shop.drop("orders")
        tables.append(shop.table("orders", "customer BIGINT, cents BIGINT", key="customer"))
        return declare(name, kind, spec)

    monkeypatch.setattr(store_of(shop), "declare", meanwhile)
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
    before = store_of(shop).declarations()["pairs"].spec["shares"]
    with hw.Pipeline("shop", tmp_path / "shop") as other:
        other.tick()
        shutil.rmtree(tmp_path / "shop" / "state")
        driver_of(other)._checked = 0
        customers.append([{"id": 2}])
        other.tick()
    assert store_of(shop).declarations()["pairs"].spec["shares"] != before
    customers.append([{"id": 0}])
    shop.tick()
    assert shop.read("pairs").num_rows == 10
    assert_same_as_batch(shop)


def test_two_processes_that_declare_the_same_at_once_both_have_it(
    shop: hw.Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.stream("customers", "id BIGINT")
    sql = "SELECT c.id, o.cents FROM customers c JOIN orders o ON c.id = o.customer"
    declare = store_of(shop).declare
    with hw.Pipeline("shop", tmp_path / "shop") as other:

        def second(name: str, kind: str, spec: dict[str, object]) -> object:
            other.view(name, sql)
            return declare(name, kind, spec)

        monkeypatch.setattr(store_of(shop), "declare", second)
        assert shop.view("pairs", sql) == other.view("pairs", sql)
    shop.tick()
    assert_same_as_batch(shop)
