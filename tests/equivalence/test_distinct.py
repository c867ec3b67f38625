"""Aggregates of DISTINCT values, alone, together, with conditions and beside others, on both paths.

`shop.tick()` compares every view with batch, so each test says only what is special about it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

import headwater as hw
from headwater.plan.describe import describe
from tests.equivalence.cases import PATHS
from tests.equivalence.shop import Shop
from tests.inside import plan_of
from tests.seed import SEED, by_turns

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COLUMNS = "id BIGINT, k STRING, t STRING, n INT, m DECIMAL(9,2), d DOUBLE, f BOOLEAN"
SUMS = "count(*) AS c, sum(id) AS s, avg(n) AS a, count(t) FILTER (WHERE f) AS g"
BESIDE = f"{SUMS}, stddev(id) AS e, var_pop(m) AS v"
CALLS = {
    "one": "count(DISTINCT t) AS x",
    "floats": "count(DISTINCT d) AS x",
    "several": "count(DISTINCT t, n) AS x, count(DISTINCT n, t) AS y",
    "three": "count(DISTINCT n) AS x, sum(DISTINCT n) AS y, avg(DISTINCT n) AS z, count(DISTINCT n, 1) AS w",
    "of_key": "count(DISTINCT k) AS x, count(*) AS c",
    "made": "sum(DISTINCT n * 2) + count(*) AS x, upper(max(k)) AS u",
    "beside": f"count(DISTINCT t) AS x, {BESIDE}",
    "sums_beside": f"sum(DISTINCT m) AS x, avg(DISTINCT m) AS y, {SUMS}",
    "sets": f"count(DISTINCT t) AS x, sum(DISTINCT n) AS y, {SUMS}",
    "where": "count(DISTINCT t) FILTER (WHERE n > 1) AS x",
    "wheres": f"count(DISTINCT t) FILTER (WHERE f) AS x, sum(DISTINCT n) FILTER (WHERE n > 0) AS y, {SUMS}",
    "booleans": "bool_and(f) AS x, bool_or(n > 2) AS y, max(f) AS z, min(n > 1) AS w",
}
OTHERS = {
    "moments": f"count(DISTINCT t) AS x, sum(DISTINCT n) AS y, {BESIDE}",
    "extreme": "count(DISTINCT t) AS x, max(d) AS y, min(n) AS z",
    "of_floats": "sum(DISTINCT d) AS x, avg(DISTINCT d) AS y",
    "listed": "count(DISTINCT t) AS x, sort_array(collect_set(n)) AS y, median(n) AS z",
}


def views() -> dict[str, str]:
    found = {f"{name}_by_key": f"SELECT k, {calls} FROM a GROUP BY k" for name, calls in (CALLS | OTHERS).items()}
    of_all = ("one", "several", "made", "beside", "where", "wheres", "booleans", "extreme")
    found |= {name: f"SELECT {(CALLS | OTHERS)[name]} FROM a" for name in of_all}
    found["made_keys"] = f"SELECT n % 2 AS o, k || '!' AS l, {CALLS['beside']} FROM a GROUP BY n % 2, k || '!'"
    found["having"] = "SELECT k, count(*) AS c FROM a GROUP BY k HAVING count(DISTINCT t) > 1"
    found["constant"] = "SELECT k, count(DISTINCT 1) AS x, count(DISTINCT t, 'c') AS y FROM a GROUP BY k"
    found["inside"] = "SELECT id, (SELECT count(DISTINCT t) FROM a b WHERE b.k = a.k) AS x FROM a"
    found["above"] = (
        f"SELECT x, count(DISTINCT k) AS n FROM (SELECT k, {CALLS['one']} FROM a GROUP BY k) GROUP BY x"
    )
    found["rolled"] = "SELECT k, f, count(DISTINCT t) AS x, count(*) AS c FROM a GROUP BY ROLLUP (k, f)"
    return found


VIEWS = views()


def row(random: Random, number: int) -> dict[str, Any]:
    choice = random.choice
    return {
        "id": number,
        "k": choice([None, "q", *["p"] * 6]),
        "t": choice([None, "", "a", "b"]),
        "n": choice([None, 0, 1, 2, 3]),
        "m": choice([None, 1, 2]),
        "d": choice([None, 0.0, -0.0, float("nan"), 1.5]),
        "f": choice([None, False, True]),
    }


HALVES = [(list(VIEWS)[place::2], path) for place in range(2) for path in by_turns(PATHS, place)]
"""Each half of the views on one path a day."""


@pytest.mark.parametrize(("names", "shop"), HALVES, indirect=["shop"], ids=lambda given: str(len(given)))
def test_values_come_and_go(shop: Shop, names: list[str]) -> None:
    random = Random(f"{SEED}:{names}")
    table = shop.table("a", COLUMNS, key="id")
    for name in names:
        shop.view(name, VIEWS[name])
    for came, gone in ((6, 0), (1, 0), (2, 2), (0, 12), (3, 0)):
        if came:
            table.upsert([row(random, random.randrange(12)) for _ in range(came)])
        table.delete(random.sample(range(12), gone))
        shop.tick()


def test_they_are_added_to(pipeline: hw.Pipeline) -> None:
    pipeline.table("a", COLUMNS, key="id")
    for name, calls in CALLS.items():
        lines = describe(plan_of(pipeline, "v", f"SELECT k, {calls} FROM a GROUP BY k".replace("max(k)", "'u'")))
        assert "recompute" not in {line["kind"] for line in lines}, name


@pytest.mark.parametrize("calls", ["count(DISTINCT t) AS x", "count(DISTINCT t) AS x, count(*) AS c, sum(n) AS s"])
def test_sessions_are_of_all_values(shop: Shop, calls: str) -> None:
    events = shop.stream("s", "t STRING, n INT, at TIMESTAMP")
    shop.view("v", f"SELECT session_window(at, '5 minutes') AS w, {calls} FROM s GROUP BY 1")
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    events.append([{"t": t, "n": 1, "at": noon + timedelta(minutes=place)} for place, t in enumerate("abac")])
    shop.tick()
    assert len(shop.rows("v")) == 1


MANY, MOST = 3000, 10


def test_one_row_of_a_crowded_group_costs_a_few(pipeline: hw.Pipeline) -> None:
    table = pipeline.table("a", COLUMNS, key="id")
    random = Random(SEED)
    table.upsert([{**row(random, number), "k": "p", "t": f"t{number // 2}"} for number in range(MANY)])
    names = ("one", "several", "beside", "sets", "where", "booleans")
    for name in names:
        pipeline.view(name, VIEWS[f"{name}_by_key"] if name != "sets" else f"SELECT {CALLS['sets']} FROM a")
    pipeline.tick()
    for change in ({"t": "t1"}, {"t": "new"}, {"t": None}):
        table.upsert([{**row(random, 7), "k": "p", **change}])
        tick = pipeline.tick()
        assert tick is not None
        assert tick.rows_read <= MOST * len(names)
