"""One small case for every operator and for every rule that was a bug somewhere, on both paths.

`shop.tick()` compares every view with batch, so each test says only what is special about it.
"""

from __future__ import annotations

import decimal

import pytest

import headwater as hw
from tests.equivalence.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAN = float("nan")


# -- linear


def test_filter_and_projection_follow_updates_and_deletes(shop: Shop) -> None:
    orders = shop.table("orders", "id INT, cents INT, note STRING", key="id")
    shop.view("dear", "SELECT id, cents * 2 AS twice, upper(note) AS note FROM orders WHERE cents > 10")
    orders.upsert([{"id": 1, "cents": 20, "note": "a"}, {"id": 2, "cents": 5, "note": None}])
    shop.tick()
    assert shop.rows("dear") == [(1, 40, "A")]
    orders.upsert([{"id": 2, "cents": 11, "note": "b"}, {"id": 1, "cents": 3, "note": "a"}])
    shop.tick()
    assert shop.rows("dear") == [(2, 22, "B")]
    orders.delete([2, 99])
    shop.tick()
    assert shop.rows("dear") == []


def test_explode_and_lateral_views(shop: Shop) -> None:
    bags = shop.table("bags", "id INT, tags ARRAY<STRING>, m MAP<STRING, INT>", key="id")
    shop.view("tags", "SELECT id, explode(tags) AS tag FROM bags")
    shop.view("places", "SELECT id, p, tag FROM bags LATERAL VIEW OUTER posexplode(tags) x AS p, tag")
    shop.view("entries", "SELECT id, k, v FROM bags LATERAL VIEW explode(m) x AS k, v")
    bags.upsert([{"id": 1, "tags": ["a", "a", None], "m": {"x": 1}}, {"id": 2, "tags": [], "m": None}])
    shop.tick()
    assert shop.rows("tags") == [(1, "a"), (1, "a"), (1, None)]
    assert shop.rows("places") == [(1, 0, "a"), (1, 1, "a"), (1, 2, None), (2, None, None)]
    bags.upsert([{"id": 1, "tags": ["a"], "m": {}}, {"id": 2, "tags": ["b"], "m": {"y": None}}])
    shop.tick()
    assert shop.rows("entries") == [(2, "y", None)]


def test_union_all_and_ctes(shop: Shop) -> None:
    events = shop.stream("events", "n INT")
    shop.view("both", "WITH e AS (SELECT n FROM events WHERE n > 0) SELECT n FROM e UNION ALL SELECT n + 1 FROM e")
    events.append([{"n": 1}, {"n": 1}, {"n": -1}])
    shop.tick()
    assert shop.rows("both") == [(1,), (1,), (2,), (2,)]


def test_a_users_function(shop: Shop) -> None:
    shop.pipeline.udf("plus", lambda a, b: None if a is None else a + b, "BIGINT")
    numbers = shop.table("numbers", "id INT, n INT", key="id")
    shop.view("sums", "SELECT id, plus(n, 10) AS n FROM numbers WHERE plus(id, 0) > 0")
    numbers.upsert([{"id": 0, "n": 1}, {"id": 1, "n": None}, {"id": 2, "n": 5}])
    shop.tick()
    numbers.upsert([{"id": 1, "n": 7}])
    numbers.delete([2])
    shop.tick()
    assert shop.rows("sums") == [(1, 17)]


def test_a_subquery_in_the_arguments_of_a_users_function(shop: Shop) -> None:
    shop.pipeline.udf("twice", lambda a: None if a is None else 2 * a, "BIGINT")
    shop.pipeline.udf("both", lambda a, b: a + b, "BIGINT", kind="pandas")
    t = shop.table("t", "id INT, x BIGINT", key="id")
    u = shop.table("u", "id INT, x BIGINT", key="id")
    greatest, own = "(SELECT max(x) FROM u)", "(SELECT max(x) FROM u WHERE u.id = t.id)"
    shop.view("twice", f"SELECT id, twice({greatest}) AS y FROM t")
    shop.view("own", f"SELECT id, twice({own}) AS y FROM t")
    shop.view("of_pandas", f"SELECT id, both(x, {greatest}) + both(twice({greatest}), {own}) AS y FROM t")
    shop.view("chosen", f"SELECT id FROM t WHERE twice({greatest}) > both(x, (SELECT count(*) FROM u))")
    shop.view("groups", f"SELECT twice({greatest}) + x % 2 AS g, max(both(x, {greatest})) AS y FROM t GROUP BY 1")
    shop.view("inside", "SELECT id, twice((SELECT max(twice(x)) FROM u)) AS y FROM t")
    shop.view("any", "SELECT id, twice(if(EXISTS (SELECT 1 FROM u WHERE x > 5), 1, 0)) AS y FROM t")
    t.upsert([{"id": 1, "x": 1}, {"id": 2, "x": None}, {"id": 3, "x": 3}])
    shop.tick()
    shop.view("alone", f"SELECT twice({greatest}) AS y")
    shop.view("all_pairs", f"SELECT t.id, u.id AS other FROM t JOIN u ON twice(t.x + {greatest}) > u.x")
    u.upsert([{"id": 1, "x": 5}, {"id": 3, "x": 4}])
    shop.tick()
    assert shop.rows("twice") == [(1, 10), (2, 10), (3, 10)]
    assert shop.rows("own") == [(1, 10), (2, None), (3, 8)]
    u.upsert([{"id": 1, "x": 9}])
    t.delete([2])
    shop.tick()
    u.delete([1])
    t.upsert([{"id": 3, "x": 7}])
    shop.tick()
    assert shop.rows("alone") == [(8,)]


def test_the_log_of_a_topic_is_a_stream(shop: Shop) -> None:
    prices = shop.table("prices", "sku STRING, cents INT", key="sku")
    shop.view("history", "SELECT _op AS op, sku, cents FROM prices__log")
    shop.view("highest", "SELECT sku, max(cents) AS cents, count(*) AS n FROM prices__log GROUP BY sku")
    shop.view("whole", "SELECT * FROM prices__log")
    for cents in (10, 12, 10):
        prices.upsert([{"sku": "a", "cents": cents}])
    prices.delete(["a"])
    shop.tick()
    assert shop.rows("history") == [
        ("delete", "a", None),
        ("upsert", "a", 10),
        ("upsert", "a", 10),
        ("upsert", "a", 12),
    ]
    assert shop.rows("highest") == [("a", 12, 4)]
    assert shop.pipeline.read("whole").column_names[:4] == ["_op", "_partition", "_offset", "_received_at"]


# -- joins


def test_the_tick_that_the_design_works_through(
    shop: Shop, orders_and_customers: tuple[hw.Table, hw.Table]
) -> None:
    orders, customers = orders_and_customers
    shop.view(
        "revenue",
        "SELECT country, sum(cents) AS cents FROM orders o JOIN customers c ON o.customer = c.id GROUP BY country",
    )
    customers.upsert([{"id": 1, "country": "NO"}, {"id": 2, "country": "SE"}])
    orders.upsert([{"id": 10, "customer": 1, "cents": 500}])
    before = shop.tick()
    assert shop.rows("revenue") == [("NO", 500)]
    customers.upsert([{"id": 1, "country": "DK"}])
    orders.upsert([{"id": 11, "customer": 2, "cents": 300}])
    orders.delete([10])
    shop.tick()
    assert shop.changes("revenue", before.number) == [(-1, "NO", 500), (1, "SE", 300)]


def test_a_comma_join_with_a_residual_predicate(
    shop: Shop, orders_and_customers: tuple[hw.Table, hw.Table]
) -> None:
    orders, customers = orders_and_customers
    shop.view(
        "big",
        "SELECT o.id, c.country FROM orders o, customers c "
        "WHERE o.customer = c.id AND o.cents > length(c.country) * 10",
    )
    customers.upsert([{"id": 1, "country": "NO"}])
    orders.upsert([{"id": n, "customer": 1, "cents": 10 * n} for n in range(5)])
    shop.tick()
    assert shop.rows("big") == [(3, "NO"), (4, "NO")]
    customers.upsert([{"id": 1, "country": "NOR"}])
    shop.tick()
    assert shop.rows("big") == [(4, "NOR")]


def test_a_self_join_with_both_sides_changing_in_one_tick(shop: Shop) -> None:
    people = shop.table("people", "id INT, boss INT, name STRING", key="id")
    shop.view("pairs", "SELECT a.name AS who, b.name AS boss FROM people a JOIN people b ON a.boss = b.id")
    people.upsert([{"id": 1, "boss": 1, "name": "Ada"}, {"id": 2, "boss": 1, "name": "Bo"}])
    shop.tick()
    people.upsert([{"id": 1, "boss": 2, "name": "Adam"}, {"id": 2, "boss": 1, "name": "Bob"}])
    people.upsert([{"id": 3, "boss": 3, "name": "Cy"}])
    shop.tick()
    assert shop.rows("pairs") == [("Adam", "Bob"), ("Bob", "Adam"), ("Cy", "Cy")]
    people.delete([1, 3])
    shop.tick()
    assert shop.rows("pairs") == []


def test_null_keys_join_only_when_null_safe(shop: Shop) -> None:
    left = shop.stream("l", "k INT, a INT")
    right = shop.table("r", "k INT, b INT")
    shop.view("plain", "SELECT a, b FROM l JOIN r ON l.k = r.k")
    shop.view("safe", "SELECT a, b FROM l JOIN r ON l.k <=> r.k")
    left.append([{"k": None, "a": 1}, {"k": 1, "a": 2}])
    right.append([{"k": None, "b": 3}, {"k": None, "b": 3}, {"k": 1, "b": 4}])
    shop.tick()
    assert shop.rows("plain") == [(2, 4)]
    assert shop.rows("safe") == [(1, 3), (1, 3), (2, 4)]
    right.delete([{"k": None, "b": 3}])
    shop.tick()
    assert shop.rows("safe") == [(1, 3), (2, 4)]


def test_keys_of_two_columns_tell_where_the_null_is(shop: Shop) -> None:
    left = shop.stream("l", "a INT, b INT")
    right = shop.stream("r", "a INT, b INT")
    shop.view("v", "SELECT l.a, l.b FROM l JOIN r ON l.a <=> r.a AND l.b <=> r.b")
    left.append([{"a": None, "b": 1}])
    right.append([{"a": 1, "b": None}])
    shop.tick()
    assert shop.rows("v") == []
    right.append([{"a": None, "b": 1}])
    shop.tick()
    assert shop.rows("v") == [(None, 1)]


def test_join_keys_of_different_types_meet(shop: Shop) -> None:
    left = shop.stream("l", "k INT, d DECIMAL(10,2)")
    right = shop.stream("r", "k BIGINT, d DOUBLE")
    shop.view("v", "SELECT l.k AS a, l.d AS b FROM l JOIN r ON l.k = r.k AND l.d = r.d")
    left.append([{"k": 1, "d": decimal.Decimal("2.50")}])
    shop.tick()
    right.append([{"k": 1, "d": 2.5}, {"k": 1, "d": 2.51}])
    shop.tick()
    assert shop.rows("v") == [(1, decimal.Decimal("2.50"))]


def test_minus_zero_and_nan_are_keys_as_sql_sees_them(shop: Shop) -> None:
    left = shop.table("l", "x DOUBLE, a INT", key="x", partitions=3)
    right = shop.stream("r", "x DOUBLE, b INT")
    shop.view("joined", "SELECT a, b FROM l JOIN r ON l.x = r.x")
    shop.view("grouped", "SELECT x, count(*) AS n FROM r GROUP BY x")
    left.upsert([{"x": 0.0, "a": 1}, {"x": NAN, "a": 2}])
    right.append([{"x": -0.0, "b": 3}, {"x": NAN, "b": 4}, {"x": 0.0, "b": 5}])
    shop.tick()
    assert shop.rows("joined") == [(1, 3), (1, 5), (2, 4)]
    left.upsert([{"x": -0.0, "a": 6}])
    right.append([{"x": -0.0, "b": 7}])
    shop.tick()
    assert shop.rows("joined") == [(2, 4), (6, 3), (6, 5), (6, 7)]
    assert sorted(n for _, n in shop.rows("grouped")) == [1, 3]  # type: ignore[type-var]
    left.delete([0.0])
    shop.tick()
    assert shop.rows("joined") == [(2, 4)]


def test_four_inputs_join(shop: Shop) -> None:
    names = ("a", "b", "c", "d")
    tables = {name: shop.table(name, f"k INT, {name}1 INT", key="k") for name in names}
    shop.view("v", "SELECT a1, b1, c1, d1 FROM a JOIN b USING (k) JOIN c USING (k), d WHERE d.k = c.c1 AND a1 < d1")
    for number, (name, table) in enumerate(tables.items()):
        table.upsert([{"k": 1, f"{name}1": 1 + number}, {"k": 3, f"{name}1": 5}])
    shop.tick()
    assert shop.rows("v") == [(1, 2, 3, 5)]
    for name, table in tables.items():
        table.upsert([{"k": 1, f"{name}1": 1}])
    tables["a"].upsert([{"k": 3, "a1": 0}])
    shop.tick()
    assert shop.rows("v") == []


def test_weights_multiply_in_a_join(shop: Shop) -> None:
    left = shop.table("l", "k INT")
    right = shop.table("r", "k INT")
    shop.view("v", "SELECT l.k AS k FROM l JOIN r ON l.k = r.k")
    left.append([{"k": 1}] * 3)
    right.append([{"k": 1}] * 2)
    shop.tick()
    assert len(shop.rows("v")) == 6
    left.delete([{"k": 1}])
    right.append([{"k": 1}])
    shop.tick()
    assert len(shop.rows("v")) == 6
    right.delete([{"k": 1}] * 5)
    shop.tick()
    assert shop.rows("v") == []
