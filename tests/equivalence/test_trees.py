"""Groups that are kept as trees, through SQL, on both paths: small ones, and those that have many leaves.

`shop.tick()` compares every view with batch, so each test says only what is special about it.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import headwater as hw
from tests.equivalence.cases import PATHS
from tests.equivalence.shop import Shop
from tests.equivalence.values import ATOMIC, DDL, value
from tests.seed import by_turns

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAN = float("nan")
CALLS = (
    "min(x) AS least, max(x) AS most, sum(x) AS total, avg(x) AS mean, stddev_pop(x) AS spread, "
    "bool_and(id % 7 > 0) AS a, bool_or(x > 3) AS o, bit_and(id) AS ba, bit_or(id) AS bo, bit_xor(id) AS bx, "
    "max_by(t, id) AS last, min_by(named_struct('x', x), id) FILTER (WHERE x IS NOT NULL) AS f, "
    "count(*) AS n, sum(id) AS s, max(t) FILTER (WHERE x > 2) AS mt"
)


def rows(random: Random, ids: list[int]) -> list[dict[str, Any]]:
    def one(number: int) -> dict[str, Any]:
        key = None if random.random() < 0.05 else random.choice("aaaaaaaab")
        x = random.choice([None, NAN, -0.0, 0.0, 0.1, 0.2, 0.7, *range(20)])
        return {"id": number, "k": key, "x": x, "t": random.choice([None, "", "a", "B", "é"])}

    return [one(number) for number in ids]


@pytest.fixture
def table(shop: Shop) -> hw.Table:
    return shop.table("a", "id INT, k STRING, x DOUBLE, t STRING", key="id", partitions=2)


@pytest.mark.parametrize("shop", by_turns(PATHS, 1), indirect=True)
def test_groups_grow_shrink_go_and_return(shop: Shop, table: hw.Table) -> None:
    shop.view("grouped", f"SELECT k, {CALLS} FROM a GROUP BY k")
    shop.view("whole", f"SELECT {CALLS} FROM a")
    are_trees(shop, "grouped", "whole")
    random = Random(1)
    shop.tick()
    for ids in (range(1500), range(1400, 2000), range(3)):
        table.upsert(rows(random, list(ids)))
        shop.tick()
    for ids in (range(5), range(1700), range(1990), range(2000)):
        table.delete(list(ids))
        shop.tick()
    assert (len(shop.rows("grouped")), len(shop.rows("whole"))) == (0, 1)
    table.upsert(rows(random, list(range(300))))
    shop.tick()


@pytest.mark.parametrize("shop", by_turns(PATHS, 0), indirect=True)
def test_rows_go_from_group_to_group_and_to_none(shop: Shop, table: hw.Table) -> None:
    shop.view("most", "SELECT k, max(x) AS m, min(t) AS t FROM a WHERE x > 0 GROUP BY k HAVING max(x) > 1")
    shop.view("far", "SELECT count(*) AS n, max(m) AS m FROM (SELECT k, max(id) AS m FROM a GROUP BY k)")
    are_trees(shop, "most", "far")
    table.upsert([{"id": n, "k": "a", "x": float(n), "t": "x"} for n in range(700)])
    shop.tick()
    for key in ("b", None, "a"):
        table.upsert([{"id": n, "k": key, "x": None if n % 5 else 3.5, "t": None} for n in range(699, 0, -3)])
        shop.tick()


@pytest.mark.parametrize("shop", by_turns(PATHS, 1), indirect=True)
def test_rows_that_are_there_many_times(shop: Shop) -> None:
    bag = shop.table("bag", "k INT, x DOUBLE, n BIGINT")
    shop.view(
        "v", "SELECT k, sum(x) AS s, max(x) AS m, bit_xor(n) AS b, count(*) AS c, avg(n) AS a FROM bag GROUP BY k"
    )
    some = [{"k": n % 2, "x": n / 10, "n": n % 50} for n in range(600)]
    bag.append(some * 3)
    shop.tick()
    bag.delete(some[::2])
    shop.tick()
    bag.delete(some * 2)
    shop.tick()


def some_of_every_type(random: Random) -> dict[str, Any]:
    return {f"c_{kind}": value(random, kind) for kind in ATOMIC}


@pytest.mark.parametrize("shop", by_turns(PATHS, 0), indirect=True)
def test_least_and_greatest_of_every_type(shop: Shop) -> None:
    table = shop.table("t", "id INT, k INT, " + ", ".join(f"c_{kind} {DDL[kind]}" for kind in ATOMIC), key="id")
    both = ", ".join(f"min(c_{kind}) AS a_{kind}, max(c_{kind}) AS z_{kind}" for kind in ATOMIC)
    last = ", ".join(f"max_by(c_{kind}, id) AS last_{kind}" for kind in ATOMIC)
    greatest = ", ".join(f"max_by(c_{kind}, c_{kind}) AS by_{kind}" for kind in ATOMIC)
    shop.view("v", f"SELECT k, {both} FROM t GROUP BY k")
    shop.view("by", f"SELECT {last}, {greatest} FROM t")
    are_trees(shop, "v", "by")
    random = Random(2)
    for _ in range(2):
        ids = random.sample(range(500), 400)
        table.upsert(
            [{"id": n, "k": n % 5 // 4} | {f"c_{kind}": value(random, kind) for kind in ATOMIC} for n in ids]
        )
        shop.tick()
        table.delete(random.sample(range(500), 100))
        shop.tick()


def are_trees(shop: Shop, *views: str) -> None:
    """Whether nothing is evaluated anew."""
    for view in views:
        told = shop.pipeline.explain(view)
        assert "tree: " in told, told
        assert "recompute: " not in told, told


@pytest.mark.parametrize("shop", by_turns(PATHS, 1), indirect=True)
def test_first_rows_leave_and_return(shop: Shop, table: hw.Table) -> None:
    order = "ORDER BY x DESC NULLS LAST, t, id"
    shop.view("first", f"SELECT k, id, x FROM a QUALIFY row_number() OVER (PARTITION BY k {order}) <= 3")
    shop.view("one", f"SELECT k, t FROM a QUALIFY row_number() OVER (PARTITION BY k {order}) = 1")
    numbered = f"SELECT k, id, row_number() OVER (PARTITION BY k {order}) AS n FROM a"
    shop.view("numbered", f"SELECT * FROM ({numbered}) WHERE n < 9")
    shop.view("limited", f"SELECT id, x FROM a {order} LIMIT 10")
    shop.view("offset", f"SELECT upper(t) AS t, id FROM a {order} LIMIT 4 OFFSET 5")
    shop.view("far", f"SELECT id FROM a {order} LIMIT 30 OFFSET 30")
    are_trees(shop, "first", "one", "numbered", "limited", "offset", "far")
    random = Random(3)
    shop.tick()
    table.upsert(rows(random, list(range(900))))
    shop.tick()
    for _ in range(3):
        table.delete(shop.pipeline.read("limited").column("id").to_pylist()[:3])
        table.delete(shop.pipeline.read("offset").column("id").to_pylist()[:1])
        table.upsert(rows(random, random.sample(range(1000), 5)))
        shop.tick()
    table.delete(list(range(20, 1000)))
    shop.tick()
    table.delete(list(range(20)))
    shop.tick()
    assert not any(map(shop.rows, ("first", "one", "numbered", "limited", "offset", "far")))
    table.upsert(rows(random, [1, 2, 3]))
    shop.tick()


@pytest.mark.parametrize("shop", by_turns(PATHS, 0), indirect=True)
def test_what_cannot_be_merged_is_told(shop: Shop, table: hw.Table) -> None:
    shop.view("v", "SELECT k, max(x) AS m, median(x) AS h FROM a GROUP BY k")
    assert "touched keys anew: percentile cannot be added to" in shop.pipeline.explain("v")
