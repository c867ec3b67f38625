"""Outer, semi and anti joins of every kind, with crowded keys, nulls, duplicates and empty sides, on both paths.

`shop.tick()` compares every view with batch, so each test says only what is special about it.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import headwater as hw
from headwater.plan.describe import describe
from tests.equivalence.cases import PATHS
from tests.equivalence.shop import Shop
from tests.inside import plan_of, store_of
from tests.seed import SEED, by_turns

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOINS = ("LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
CONDITIONS = {
    "plain": "a.k = b.k",
    "safe": "a.k <=> b.k AND a.x <=> b.x",
    "less": "a.k = b.k AND a.x < b.x",
    "own": "a.k = b.k AND a.x > 1",
}
INSIDE = {
    "in_a_list": "SELECT id FROM a WHERE k IN (SELECT k FROM b)",
    "not_in": "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE x > 1)",
    "not_in_of_key": "SELECT id FROM a WHERE x NOT IN (SELECT x FROM b WHERE b.k = a.k)",
    "some": "SELECT id, k IN (SELECT k FROM b) AS y FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.t = a.t) OR x > 1",
    "another": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM a o WHERE o.k = a.k AND o.id <> a.id)",
    "some_or": "SELECT id FROM a WHERE x > 2 OR EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x <> a.x)",
    "of_key": "SELECT id, (SELECT count(*) FROM b WHERE b.k = a.k) AS n FROM a",
    "sums": "SELECT b.t, count(*) AS n, sum(a.id) AS s FROM a LEFT JOIN b ON a.k = b.k GROUP BY b.t",
    "sums_where": "SELECT b.t, count(a.id) AS n FROM b LEFT JOIN a ON a.k = b.k AND a.x <= b.x GROUP BY b.t",
    "chain": "SELECT a.id, b.id AS j, c.x FROM a LEFT JOIN b ON a.k = b.k AND a.x < b.x LEFT JOIN a c ON b.k = c.k "
    "AND c.x <> b.x",
    "whole": "SELECT a.m, a.l, b.m AS n, b.l AS o FROM a FULL JOIN b ON a.k = b.k AND a.x < b.x",
    "distinct": "SELECT DISTINCT b.k FROM b FULL JOIN a ON a.k = b.k WHERE a.id IS NULL OR b.id IS NULL",
    "itself": "SELECT l.id, r.id AS j FROM a l FULL JOIN a r ON l.id = r.k AND l.k = r.id",
}


def views() -> dict[str, str]:
    found = dict(INSIDE)
    for word in JOINS:
        given = "a.id AS i, a.x AS x" + (", b.id AS j, b.t AS u" if word in JOINS[:3] else "")
        for name, condition in CONDITIONS.items():
            found[f"{name}_{word.replace(' ', '_')}"] = f"SELECT {given} FROM a {word} JOIN b ON {condition}"
    return found


VIEWS = views()


class Bags:
    """Two tables without keys, whose rows mostly have one key: added, taken away and changed at random."""

    def __init__(self, shop: Shop, random: Random) -> None:
        self._random = random
        columns = "id INT, k INT, t STRING, x DOUBLE, m MAP<STRING, INT>, l ARRAY<DOUBLE>"
        self.tables = {name: shop.table(name, columns) for name in "ab"}
        self.rows: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}

    def _row(self) -> dict[str, Any]:
        choice = self._random.choice
        return {
            "id": self._random.randrange(4),
            "k": choice([None, 2, 3, *[1] * 9]),
            "t": choice([None, "", "x"]),
            "x": choice([None, 0.0, -0.0, 1.0, 2.0, float("nan")]),
            "m": choice([None, {}, {"a": 1, "b": None}, {"b": None, "a": 1}]),
            "l": choice([None, [], [0.0, None], [-0.0, None]]),
        }

    def change(self, name: str, came: int, gone: int) -> None:
        """Rows come, others go, and one gets another key."""
        rows, table = self.rows[name], self.tables[name]
        leaving = [rows.pop(self._random.randrange(len(rows))) for _ in range(min(gone, len(rows)))]
        coming = [self._row() for _ in range(came)]
        if leaving:
            table.delete(leaving)
            moved = {**leaving[0], "k": self._random.choice([None, 1, 2])}
            coming.append(moved)
        if coming:
            table.append(coming)
        rows += coming

    def clear(self, name: str) -> None:
        if self.rows[name]:
            self.tables[name].delete(self.rows[name])
        self.rows[name] = []


HALVES = [(list(VIEWS)[place::2], path) for place in range(2) for path in by_turns(PATHS, place)]
"""Each half of the views on one path a day."""


@pytest.mark.parametrize(("names", "shop"), HALVES, indirect=["shop"], ids=lambda given: str(len(given)))
def test_every_kind_follows_both_sides(shop: Shop, names: list[str]) -> None:
    random = Random(f"{SEED}:{names}")
    bags = Bags(shop, random)
    for name in names:
        shop.view(name, VIEWS[name])
    bags.change("a", 8, 0)
    shop.tick()
    bags.change("b", 5, 0)
    shop.tick()
    for came, gone in ((1, 0), (0, 1), (3, 3)):
        bags.change("a", came, gone)
        bags.change("b", gone, came)
        shop.tick()
    bags.clear(random.choice("ab"))
    shop.tick()
    bags.change("a", 2, 1)
    bags.change("b", 2, 1)
    shop.tick()


def test_none_of_them_is_evaluated_anew(pipeline: hw.Pipeline) -> None:
    for name in "ab":
        pipeline.table(name, "id INT, k INT, t STRING, x DOUBLE, m MAP<STRING, INT>, l ARRAY<DOUBLE>")
    for name, sql in VIEWS.items():
        kinds = {line["kind"] for line in describe(plan_of(pipeline, "v", sql))}
        assert "recompute" not in kinds, name
        assert "bilinear" in kinds, name


def test_who_only_gains_matches_never_loses_rows(pipeline: hw.Pipeline) -> None:
    for name in "ab":
        pipeline.stream(name, "id INT, k INT, x DOUBLE")
    stays = "SELECT k, max(x) AS m FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k{}) GROUP BY k"
    for more in ("", " AND b.x < a.x"):
        (line, *_) = describe(plan_of(pipeline, "v", stays.format(more)))
        assert line["kind"] == "accumulating"
    (line, *_) = describe(plan_of(pipeline, "v", stays.format("").replace("EXISTS", "NOT EXISTS")))
    assert line["kind"] == "tree"


CROWDED = {
    "left": "SELECT f.id, d.name FROM f LEFT JOIN d ON f.k = d.id",
    "left_where": "SELECT f.id, d.name FROM f LEFT JOIN d ON f.k = d.id AND d.x < f.x",
    "full_where": "SELECT f.id, d.name FROM f FULL JOIN d ON f.k = d.id AND d.x < f.x",
    "sum_by_name": "SELECT d.name, sum(f.id) AS s FROM f LEFT JOIN d ON f.k = d.id GROUP BY d.name",
    "in_few": "SELECT id FROM f WHERE k IN (SELECT id FROM d)",
    "in_many": "SELECT id FROM d WHERE id IN (SELECT k FROM f)",
    "not_in_few": "SELECT id FROM f WHERE k NOT IN (SELECT id FROM d)",
    "not_in_many": "SELECT id FROM d WHERE id NOT IN (SELECT k FROM f)",
    "both": "SELECT id FROM f WHERE k IN (SELECT k FROM f WHERE x > 0)",
    "anti_both": "SELECT id FROM f WHERE NOT EXISTS (SELECT 1 FROM f o WHERE o.k = f.k AND o.x > 0)",
}
MANY, MOST = 3000, 10


def test_one_row_of_a_crowded_key_costs_one_row(pipeline: hw.Pipeline) -> None:
    facts = pipeline.table("f", "id BIGINT, k BIGINT, x DOUBLE", key="id")
    few = pipeline.table("d", "id BIGINT, name STRING, x DOUBLE", key="id")
    few.upsert([{"id": number, "name": f"n{number}", "x": 0.0} for number in range(20)])
    facts.upsert([{"id": n, "k": 1 if n % 10 else n % 21, "x": 1.0} for n in range(MANY)])
    for name, sql in CROWDED.items():
        pipeline.view(name, sql)
    pipeline.tick()
    change = {"insert": {"id": MANY, "k": 1, "x": 2.0}, "update": {"id": MANY, "k": 20, "x": 2.0}}
    for row in (*change.values(), {"id": MANY, "k": None, "x": 2.0}, None):
        if row is None:
            facts.delete([MANY])
        else:
            facts.upsert([row])
        tick = pipeline.tick()
        assert tick is not None
        last = store_of(pipeline).last_tick()
        assert last is not None
        work = last.detail["views"]
        for name in CROWDED:
            assert work.get(name, {"read": 0})["read"] <= MOST, (name, row)
        assert tick.rows_read <= MOST * len(CROWDED)


def test_a_bad_row_below_joins_is_set_aside_once_and_a_bad_pair_is_no_match(shop: Shop) -> None:
    a, b = (shop.table(name, "id INT, k INT, t STRING", key="id") for name in "ab")
    parsed = "(SELECT id, k, CAST(t AS INT) AS n FROM {})"
    below = f"{parsed.format('a')} l FULL JOIN {parsed.format('b')} r ON l.k = r.k AND l.n < r.n"
    views = {
        "below": f"SELECT l.id, r.id AS j, o.id AS o FROM {below} LEFT JOIN b o ON o.k = l.k AND o.id <> l.id",
        "pair": "SELECT a.id, b.id AS j FROM a LEFT JOIN b ON a.k = b.k AND CAST(b.t AS INT) > a.id",
        "none": "SELECT a.id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND CAST(b.t AS INT) > a.id)",
    }
    for name, sql in views.items():
        shop.pipeline.view(name, sql, on_error="dead_letter")
    a.upsert([{"id": 1, "k": 1, "t": "1"}, {"id": 2, "k": 1, "t": "x"}])
    b.upsert([{"id": 3, "k": 1, "t": "5"}, {"id": 4, "k": 1, "t": "y"}])
    shop.moved()
    letters = {
        name: sorted(shop.pipeline.read(f"{name}__dead_letters").column("raw").to_pylist()) for name in views
    }
    assert letters["below"] == ['{"id":2,"k":1,"t":"x"}', '{"id":4,"k":1,"t":"y"}']
    assert len(letters["pair"]) == len(letters["none"]) == 2
    assert all('"y"' in each and "_left" not in each for each in letters["pair"] + letters["none"])
    assert shop.rows("below") == [(1, 3, 3), (1, 3, 4)]
    assert shop.rows("pair") == [(1, 3), (2, 3)]
    b.upsert([{"id": 3, "k": 1, "t": "0"}])
    shop.moved()
    assert shop.rows("pair") == [(1, None), (2, None)]
    assert shop.rows("none") == [(1,), (2,)]
    b.upsert([{"id": 4, "k": 1, "t": "9"}])
    a.upsert([{"id": 2, "k": 1, "t": "2"}])
    shop.moved()
    assert all(not shop.pipeline.read(f"{name}__dead_letters").num_rows for name in views)
    assert shop.rows("pair") == [(1, 4), (2, 4)]
    assert shop.rows("none") == []


@pytest.mark.parametrize("shop", by_turns(PATHS, 1), indirect=True)
@pytest.mark.parametrize("word", ["", "LEFT", "FULL", "LEFT ANTI"])
def test_a_row_that_leaves_is_in_no_pair_with_one_that_comes(shop: Shop, word: str) -> None:
    a, b = (shop.table(name, "id INT, k INT, t STRING", key="id") for name in "ab")
    shop.view("right_t", f"SELECT a.id FROM a {word} JOIN b ON a.k = b.k AND CAST(b.t AS INT) > a.id")
    shop.view("left_t", f"SELECT a.id FROM a {word} JOIN b ON a.k = b.k AND CAST(a.t AS INT) > b.id")
    a.upsert([{"id": 1, "k": 2, "t": "x"}])
    b.upsert([{"id": 1, "k": 1, "t": "x"}])
    shop.tick()
    b.upsert([{"id": 1, "k": 1, "t": "9"}, {"id": 2, "k": 2, "t": "3"}])
    a.upsert([{"id": 1, "k": 2, "t": "4"}, {"id": 2, "k": 1, "t": "5"}])
    shop.tick()
