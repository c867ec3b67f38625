"""Joins by ranges, and correlated subqueries that become such: on both paths, equal to batch after every tick."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from tests.equivalence.cases import PATHS
from tests.equivalence.shop import Shop
from tests.seed import by_turns

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAN, INFINITE = float("nan"), float("inf")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS = "id INT, k STRING, x BIGINT, y BIGINT, d DOUBLE, m DECIMAL(9, 2), at TIMESTAMP, t STRING"
VIEWS = {
    "within": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.x BETWEEN b.x AND b.y",
    "within_a_key": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.k = b.k AND a.x >= b.x AND a.x < b.y",
    "band": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.d BETWEEN b.d - 2 AND b.d + 2",
    "band_that_may_be_too_large": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.x BETWEEN b.x - 5 AND b.x + 5",
    "overlap": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.x <= b.y AND b.x <= a.y AND a.id <> b.id",
    "earlier": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.k = b.k AND a.at < b.at",
    "soon": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON b.at BETWEEN a.at AND a.at + INTERVAL '90' MINUTES",
    "doubles": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.d >= b.d",
    "decimals": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.m > b.m AND a.m <= b.m + 1",
    "texts": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.k = b.k AND a.t <= b.t",
    "only_spark_evaluates": "SELECT a.id AS i, b.id AS j FROM a JOIN b ON a.x >= b.x AND levenshtein(a.t, b.t) < 2",
    "above_average": "SELECT id FROM a WHERE x > (SELECT avg(x) FROM b)",
    "counted": "SELECT id, (SELECT count(*) FROM b WHERE b.k = a.k AND b.at < a.at) AS n FROM a",
    "summed": "SELECT id, (SELECT sum(b.x) FROM b WHERE b.k = a.k AND b.x < a.x) AS n FROM a",
    "lateral": "SELECT a.id, n FROM a LEFT JOIN LATERAL "
    "(SELECT max(b.id) AS n FROM b WHERE b.k = a.k AND b.x BETWEEN a.x AND a.y) ON TRUE",
}


def some(random: Random, number: int) -> dict[str, Any]:
    """A row: values close together and far apart, equal and reversed bounds, nulls, NaN."""
    x = random.choice([None, 0, 1, 2, 5, 40, -7, 1 << 40])
    return {
        "id": number,
        "k": random.choice(["p", "p", "p", "q", None]),
        "x": x,
        "y": random.choice([None, x, x, (x or 0) + 3, (x or 0) - 3, (x or 0) + 50]),
        "d": random.choice([None, NAN, INFINITE, 0.0, -0.0, 1.5, -2.5]),
        "m": random.choice([None, Decimal("0.00"), Decimal("1.00"), Decimal("1.01"), Decimal("-3.50")]),
        "at": random.choice([None, NOON, NOON + timedelta(hours=1), NOON + timedelta(hours=30), NOON]),
        "t": random.choice([None, "", "a", "ab", "abcdefghi", "abcdefghj"]),
    }


@pytest.mark.parametrize("shop", by_turns(PATHS, 1), indirect=True)
def test_rows_meet_those_in_their_range_whatever_comes_goes_and_moves(shop: Shop) -> None:
    random = Random(0)
    tables = [shop.table(name, COLUMNS, key="id") for name in "ab"]
    for name, sql in VIEWS.items():
        shop.view(name, sql)
    empty = set(VIEWS)
    for _ in range(4):
        for table in tables:
            table.upsert([some(random, random.randrange(30)) for _ in range(random.choice([1, 8, 20]))])
            table.delete(random.sample(range(30), random.choice([0, 3])))
        shop.tick()
        empty -= {name for name in VIEWS if shop.rows(name)}
    assert not empty


@pytest.mark.parametrize("shop", by_turns(PATHS, 0), indirect=True)
def test_a_range_over_a_table_by_its_own_key_keeps_nothing_twice(shop: Shop) -> None:
    orders = shop.stream("orders", "customer INT, cents INT")
    customers = shop.table("customers", "id INT, most INT NOT NULL", key="id")
    shop.view(
        "dear", "SELECT o.cents, c.most FROM orders o JOIN customers c ON o.customer = c.id AND o.cents > c.most"
    )
    assert "state join1.right by id: the rows of customers themselves" in shop.pipeline.explain("dear")
    orders.append([{"customer": n % 3, "cents": n} for n in range(9)])
    customers.upsert([{"id": n, "most": 3} for n in range(3)])
    shop.tick()
    assert len(shop.rows("dear")) == 5


@pytest.mark.parametrize("shop", by_turns(PATHS, 1), indirect=True)
def test_a_changed_row_reads_its_range_alone(shop: Shop) -> None:
    points = shop.table("points", "id INT, x BIGINT", key="id")
    ranges = shop.table("ranges", "id INT, lo BIGINT, hi BIGINT", key="id")
    shop.view("named", "SELECT p.id AS p, r.id AS r FROM points p JOIN ranges r ON p.x BETWEEN r.lo AND r.hi")
    points.upsert([{"id": n, "x": n} for n in range(2000)])
    ranges.upsert([{"id": n, "lo": 20 * n, "hi": 20 * n + 19} for n in range(100)])
    shop.tick()
    points.upsert([{"id": 5000, "x": 777}])
    tick = shop.tick()
    assert tick.rows_out == {"named": 1}
    assert tick.rows_read < 20
    ranges.upsert([{"id": 38, "lo": 760, "hi": 770}])
    tick = shop.tick()
    assert tick.rows_read < 80


@pytest.mark.parametrize("shop", by_turns(PATHS, 0), indirect=True)
def test_what_is_computed_for_a_range_may_be_null(shop: Shop) -> None:
    a = shop.table("a", "id INT, x INT, s STRING", key="id")
    shop.view("later", "SELECT l.id AS i, r.id AS j FROM a l JOIN a r ON try_cast(l.s AS INT) < r.x")
    a.upsert([{"id": 1, "x": 5, "s": "3"}, {"id": 2, "x": 2, "s": "no"}, {"id": 3, "x": None, "s": "1"}])
    shop.tick()
    assert shop.rows("later") == [(1, 1), (3, 1), (3, 2)]
    a.upsert([{"id": 2, "x": 9, "s": "8"}])
    shop.tick()
