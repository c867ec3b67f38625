"""What several views need by the same key is kept and computed once, whatever becomes of the others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.catalog.names import is_shared, owner_of
from headwater.testing import assert_same_as_batch
from tests.inside import driver_of, store_of, topic_of

pytestmark = pytest.mark.spark

BY_CUSTOMER = "SELECT c.country, o.id FROM customers c JOIN orders o ON c.id = o.customer"
OTHER = "SELECT o.customer, c.name FROM orders o JOIN customers c ON o.customer = c.id WHERE c.country = 'no'"
RANKED = "SELECT id, rank() OVER (PARTITION BY customer ORDER BY id) AS place FROM orders"
TOTALS = "(SELECT customer, sum(CAST(cents AS INT) * 2) AS twice FROM orders GROUP BY customer)"
RICH = (
    f"SELECT c.id FROM customers c JOIN {TOTALS} t ON c.id = t.customer WHERE ifnull(t.twice > 10 * c.worth, false)"
)
POOR = f"SELECT c.name, t.twice DIV c.worth AS n FROM customers c JOIN {TOTALS} t ON c.id = t.customer"
CENTS = "SELECT c.id, CAST(o.cents AS INT) AS n FROM customers c JOIN orders o ON c.id = o.customer"


@pytest.fixture(params=["small", "large"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[hw.Pipeline, Any]]:
    """A pipeline with customers and orders, and one who buys."""
    with hw.Pipeline("shop", tmp_path / "shop", retain_ticks=5, retain_for="0 seconds") as pipeline:
        customers = pipeline.table("customers", "id BIGINT, name STRING, country STRING, worth BIGINT", key="id")
        orders = pipeline.table("orders", "id BIGINT, customer BIGINT, cents STRING", key="id")
        if request.param == "large":
            driver_of(pipeline).small_rows = 0
        customers.upsert([{"id": n, "name": f"c{n}", "country": "no", "worth": n} for n in range(1, 6)])
        dice = random.Random(20261116)

        def buy(number: int) -> None:
            for _ in range(number):
                customer = dice.choice([None, 1, 2, 3, 4, 5, 6])
                orders.upsert([{"id": dice.randrange(30), "customer": customer, "cents": str(dice.randrange(90))}])
            orders.delete([dice.randrange(30)])
            country = dice.choice(["no", "se", None])
            customers.upsert([{"id": dice.randrange(1, 7), "name": "other", "country": country, "worth": 7}])

        yield pipeline, buy


def kept(pipeline: hw.Pipeline) -> set[str]:
    """The names of what is shared, and of the views' own state, that the store has."""
    last = store_of(pipeline).last_tick()
    assert last is not None
    return {name for name in store_of(pipeline).arrangements(last.number) if not name.endswith("/changes")}


def shared(pipeline: hw.Pipeline) -> set[str]:
    return {owner_of(name) for name in kept(pipeline) if is_shared(name)}


def clean(pipeline: hw.Pipeline) -> None:
    """Have expired what can expire, which happens every tenth tick."""
    last = store_of(pipeline).last_tick()
    assert last is not None
    driver_of(pipeline)._keep_house(store_of(pipeline).lease().epoch, last.number, forced=True)


def ticked(pipeline: hw.Pipeline) -> Any:
    tick = pipeline.tick()
    assert tick is not None
    assert_same_as_batch(pipeline)
    return tick


def test_a_relation_by_a_key_is_kept_once_and_a_table_by_its_own_not_again(shop: tuple[hw.Pipeline, Any]) -> None:
    pipeline, buy = shop
    pipeline.view("by_customer", BY_CUSTOMER)
    buy(10)
    ticked(pipeline)
    (orders,) = shared(pipeline)
    assert kept(pipeline) == {orders, "t1", "t2", "v3"}  # customers are joined by the key that they have
    pipeline.view("pairs", "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer")
    pipeline.view("again", BY_CUSTOMER.replace("country", "worth + 1 AS w"))
    for _ in range(4):
        buy(10)
        ticked(pipeline)
    assert shared(pipeline) == {orders}
    assert "shared with by_customer, pairs" in pipeline.explain("again")
    assert "the rows of customers themselves" in pipeline.explain("again")


def work(pipeline: hw.Pipeline) -> int:
    """How often the last tick asked Spark for something."""
    last = store_of(pipeline).last_tick()
    assert last is not None
    return int(last.detail["queries"]) + int(last.detail["jobs"])


def test_a_common_subplan_is_computed_once(shop: tuple[hw.Pipeline, Any]) -> None:
    pipeline, buy = shop
    pipeline.view("rich", RICH)
    for _ in range(2):
        buy(10)
        ticked(pipeline)
    alone = work(pipeline)
    pipeline.view("poor", POOR)
    buy(10)
    ticked(pipeline)
    buy(10)
    ticked(pipeline)
    (totals,) = shared(pipeline)
    assert f"{totals}/aggregate1" in kept(pipeline)
    if driver_of(pipeline).small_rows:
        assert work(pipeline) == alone + 1  # for its own columns
    else:
        assert work(pipeline) < 2 * alone


def test_what_only_looks_alike_is_not_shared(pipeline: hw.Pipeline) -> None:
    pipeline.table("a", "id BIGINT, k STRING, x STRING", key="id")
    expressions = [
        "CAST(x AS BIGINT)",
        "try_cast(x AS BIGINT)",
        "CAST(x AS INT)",
        "concat(x, '1')",
        "concat(x, '1 ')",
        "x + 1",
        "try_add(CAST(x AS BIGINT), 1)",
        "CAST(x AS BIGINT) + 2",
        "k",
        "x",
    ]
    for number, each in enumerate(expressions * 2):
        sql = f"SELECT a.id, b.y FROM a JOIN (SELECT k, {each} AS y FROM a WHERE x <> 'no') b ON a.x = b.k"
        pipeline.view(f"v{number}", sql)
    specs = {n: store_of(pipeline).find(f"v{n}").spec["shares"]["join1.right"] for n in range(2 * len(expressions))}  # type: ignore[union-attr]
    first = [specs[n] for n in range(len(expressions))]
    assert len(set(first)) == len(expressions)
    assert [specs[n + len(expressions)] for n in range(len(expressions))] == first


def test_rows_by_other_rules_for_nulls_are_not_shared(pipeline: hw.Pipeline) -> None:
    pipeline.table("a", "id BIGINT, k BIGINT, x BIGINT", key="id")
    for name, sql in {
        "inner": "SELECT l.id, r.x, r.k FROM a l JOIN a r ON l.x = r.k",
        "left": "SELECT l.id, r.x, r.k FROM a l LEFT JOIN a r ON l.x = r.k",
        "full": "SELECT l.id, r.x, r.k FROM a l FULL JOIN a r ON l.x = r.k",
        "window": "SELECT x, k, rank() OVER (PARTITION BY k ORDER BY x) AS r FROM a",
    }.items():
        pipeline.view(name, sql)
    names = ("inner", "left", "full", "window")
    found = [store_of(pipeline).find(name).spec["shares"] for name in names]  # type: ignore[union-attr]
    places = [*(each["join1.right"] for each in found[:3]), found[3]["recompute1.0"]]
    assert len(set(places)) == 3
    assert places[0] == places[1]


def test_whoever_is_dropped_takes_nothing_from_the_others(shop: tuple[hw.Pipeline, Any]) -> None:
    pipeline, buy = shop
    pipeline.view("rich", RICH)
    pipeline.view("poor", POOR)
    buy(10)
    ticked(pipeline)
    pipeline.drop("rich")
    buy(3)
    ticked(pipeline)
    clean(pipeline)
    assert len(shared(pipeline)) == 1
    pipeline.view("rich", RICH)
    buy(3)
    ticked(pipeline)
    assert len(shared(pipeline)) == 1
    pipeline.drop("rich")
    pipeline.drop("poor")
    buy(1)
    pipeline.tick()
    clean(pipeline)
    assert kept(pipeline) == {"t1", "t2"}


def test_what_nobody_kept_up_is_made_anew(shop: tuple[hw.Pipeline, Any]) -> None:
    pipeline, buy = shop
    pipeline.view("rich", RICH)
    buy(10)
    ticked(pipeline)
    declared = store_of(pipeline).find("rich")
    assert declared is not None
    pipeline.drop("rich")
    buy(10)
    pipeline.tick()
    store_of(pipeline).declare("rich", "view", declared.spec)  # by a process that planned it before the drop
    buy(10)
    ticked(pipeline)
    buy(10)
    ticked(pipeline)


def test_one_view_stands_still_and_what_it_shares_goes_on(shop: tuple[hw.Pipeline, Any]) -> None:
    pipeline, buy = shop
    pipeline.view("rich", RICH)
    pipeline.view("poor", POOR)
    buy(10)
    ticked(pipeline)
    customers = topic_of(pipeline, "customers")
    assert isinstance(customers, hw.Table)
    customers.upsert([{"id": 1, "name": "broke", "country": "no", "worth": 0}])
    topic_of(pipeline, "orders").upsert([{"id": 1, "customer": 1, "cents": "5"}])
    pipeline.tick()
    with pytest.raises(hw.ViewSuspended, match="DIVIDE_BY_ZERO"):
        pipeline.read("poor", as_of=store_of(pipeline).last_tick().number)  # type: ignore[union-attr]
    for _ in range(2):
        buy(10)
        customers.upsert([{"id": 1, "name": "broke", "country": "no", "worth": 0}])
        pipeline.tick()
        assert_same_as_batch(pipeline, ["rich"])
    customers.upsert([{"id": 1, "name": "well", "country": "no", "worth": 1}])
    ticked(pipeline)
    for _ in range(2):
        buy(10)
        ticked(pipeline)


@pytest.mark.parametrize("missed", [1, 6], ids=["caught up with", "made anew"])
def test_what_is_shared_stands_still_with_all_that_need_it(shop: tuple[hw.Pipeline, Any], missed: int) -> None:
    pipeline, buy = shop
    pipeline.view("rich", RICH)
    pipeline.view("poor", POOR)
    pipeline.view("count", "SELECT count(*) AS n FROM rich")
    pipeline.view("well", BY_CUSTOMER)
    buy(10)
    ticked(pipeline)
    orders = topic_of(pipeline, "orders")
    assert isinstance(orders, hw.Table)
    position = orders.upsert([{"id": 99, "customer": 1, "cents": "many"}])
    pipeline.tick()
    told = {"rich": "suspended: .CAST_INVALID", "poor": "CAST_INVALID", "count": "it reads rich"}
    for name, said in told.items():
        with pytest.raises(hw.ViewSuspended, match=said) as caught:
            pipeline.read(name, after=position)
        assert "many" in str(caught.value)
        assert "~" not in str(caught.value)
    pipeline.view("late", RICH.replace("10 *", "9 *"))
    for _ in range(missed):
        buy(3)
        pipeline.tick()
    assert_same_as_batch(pipeline, ["well"])
    clean(pipeline)
    orders.delete([99])
    for _ in range(2):  # what is made anew takes its place in a tick of its own
        pipeline.tick()
    assert_same_as_batch(pipeline)
    for _ in range(2):
        buy(10)
        ticked(pipeline)


def test_what_sets_rows_aside_shares_nothing(pipeline: hw.Pipeline) -> None:
    pipeline.table("customers", "id BIGINT, name STRING", key="id")
    pipeline.table("orders", "id BIGINT, customer BIGINT, cents STRING", key="id")
    for number in (1, 2):
        pipeline.view(f"v{number}", CENTS, on_error="dead_letter")
        assert store_of(pipeline).find(f"v{number}").spec["shares"] == {}  # type: ignore[union-attr]


def test_a_new_version_shares_with_the_old_and_with_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "shop"
    for number in range(3):
        with hw.Pipeline("shop", path, master="local[1]") as pipeline:
            orders = pipeline.table("orders", "id BIGINT, customer BIGINT, cents STRING", key="id")
            if not number:
                pipeline.view("ranked", RANKED)
            pipeline.view(f"ranked{number}", RANKED.replace("rank()", "count(*)"))
            if number:
                pipeline.view("ranked", RANKED.replace("rank()", f"{number} + rank()"), replace=True)
            orders.upsert([{"id": number, "customer": number % 2, "cents": ""}])
            ticked(pipeline)
            assert len(shared(pipeline)) == 1
