"""The order of rows, where an answer depends on it: what the query says below is maintained, on both paths.

`shop.tick()` compares every view with batch, so each test says only what is special about it.
"""

from __future__ import annotations

import pytest

import headwater as hw
from tests.equivalence.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Rows = list[dict[str, object]]


@pytest.fixture
def trade(shop: Shop) -> tuple[hw.Table, hw.Table]:
    return (
        shop.table("orders", "id BIGINT, sku STRING, n BIGINT", key="id"),
        shop.table("prices", "id BIGINT, sku STRING, cents BIGINT", key="id", partitions=2),
    )


def priced(*values: tuple[int, str | None, int | None]) -> Rows:
    return [{"id": number, "sku": sku, "cents": cents} for number, sku, cents in values]


def ordered(*values: tuple[int, str | None, int]) -> Rows:
    return [{"id": number, "sku": sku, "n": n} for number, sku, n in values]


def moves(shop: Shop, trade: tuple[hw.Table, hw.Table]) -> None:
    """Rows that come on either side, change, go, and come again, with nulls and duplicates."""
    orders, prices = trade
    orders.upsert(ordered((1, "a", 4), (2, "b", 8), (3, None, 2), (4, "a", 4)))
    prices.upsert(priced((1, "a", 9), (2, "a", 3), (3, "a", 5), (4, "b", None), (5, None, 7)))
    shop.tick()
    prices.upsert(priced((6, "a", 5), (7, "b", 1), (3, "b", 2), (8, "c", 2)))
    prices.delete([1])
    orders.upsert(ordered((5, "c", 6), (6, "a", 3), (2, "c", 5)))
    orders.delete([1])
    shop.tick()
    prices.delete([2, 3, 4, 5, 6, 7, 8])
    shop.tick()
    prices.upsert(priced((1, "a", 4), (9, "c", 4)))
    shop.tick()


def test_the_first_row_of_a_correlated_order(shop: Shop, trade: tuple[hw.Table, hw.Table]) -> None:
    """Spark numbers the rows in no order and relies on them to stay sorted."""
    newest = "SELECT cents FROM prices p WHERE p.sku = o.sku ORDER BY p.id DESC LIMIT 1"
    later = "SELECT cents FROM prices p WHERE p.id > o.id ORDER BY p.id LIMIT 2"
    two = "SELECT p.cents FROM prices p WHERE p.sku = o.sku ORDER BY p.id DESC LIMIT 2"
    shop.view("newest", f"SELECT o.id, ({newest}) AS cents FROM orders o")
    shop.view("second", f"SELECT o.id, ({newest} OFFSET 1) AS cents FROM orders o")
    shop.view("two", f"SELECT o.id, l.cents FROM orders o JOIN LATERAL ({two}) l")
    shop.view("or_none", f"SELECT o.id, l.cents FROM orders o LEFT JOIN LATERAL ({later}) l ON l.cents > 3")
    shop.view("but_first", f"SELECT o.id, l.cents FROM orders o, LATERAL ({two.replace('LIMIT 2', 'OFFSET 1')}) l")
    shop.view("among", f"SELECT id FROM orders o WHERE n IN ({two})")
    shop.view("sums", f"SELECT id, (SELECT sum(cents) FROM ({two})) AS cents FROM orders o")
    shop.view("every", "SELECT id, (SELECT cents FROM prices ORDER BY id DESC LIMIT 1) AS cents FROM orders")
    inner = f"SELECT ({newest}) AS cents FROM orders o WHERE o.id = r.n ORDER BY o.sku LIMIT 1"
    shop.view("nested", f"SELECT r.id, ({inner}) AS cents FROM orders r")
    orders, prices = trade
    orders.upsert(ordered((1, "a", 4)))
    prices.upsert(priced((1, "a", 9), (2, "a", 3), (3, "a", 5)))
    shop.tick()
    assert shop.rows("newest") == [(1, 5)]
    assert shop.rows("two") == [(1, 3), (1, 5)]
    moves(shop, trade)


def test_the_nearest_rows(shop: Shop, trade: tuple[hw.Table, hw.Table]) -> None:
    """Spark tells the rows of the left side apart by a random number."""
    near = "NEAREST 1 BY DISTANCE abs(o.n - p.cents) + p.id / 100"
    shop.view("nearest", f"SELECT o.id, p.id AS price FROM orders o JOIN prices p APPROX {near}")
    shop.view("or_none", f"SELECT o.id, p.id AS price FROM orders o LEFT JOIN prices p EXACT {near}")
    shop.view("alike", f"SELECT n, p.cents FROM (SELECT n % 2 AS n FROM orders) o JOIN prices p EXACT {near}")
    shop.view("some", f"SELECT o.id, p.cents FROM orders o LEFT JOIN prices p APPROX {near} WHERE o.n > 3")
    shop.view(
        "in_one", f"SELECT id FROM prices WHERE id IN (SELECT p.id FROM orders o JOIN prices p APPROX {near})"
    )
    shop.view(
        "of_all", "SELECT o.id, p.id AS price FROM orders o JOIN prices p APPROX NEAREST 2 BY SIMILARITY p.id"
    )
    moves(shop, trade)
    assert shop.rows("nearest") == [(number, 1) for number in (2, 3, 4, 5, 6)]


def test_calls_that_depend_on_a_sorted_subquery(shop: Shop, trade: tuple[hw.Table, hw.Table]) -> None:
    _, prices = trade
    by = "ORDER BY cents DESC, id"
    shop.view(
        "first", f"SELECT first(id) AS f, last(id) AS l, any_value(sku) AS a FROM (SELECT * FROM prices {by})"
    )
    shop.view("of_sku", f"SELECT sku, first(id) AS f, last(id) AS l FROM (SELECT * FROM prices {by}) GROUP BY sku")
    shop.view("hidden", f"SELECT sku, first(id) AS f FROM (SELECT sku, id FROM prices {by}) GROUP BY sku")
    shop.view("of_few", f"SELECT first(id) AS f FROM (SELECT id FROM prices {by} LIMIT 3 OFFSET 1)")
    shop.view("list", f"SELECT get(collect_list(id), 0) AS f FROM (SELECT * FROM prices {by})")
    shop.view("text", f"SELECT sku, listagg(id, ',') AS t FROM (SELECT * FROM prices {by}) GROUP BY sku")
    shop.view("tied", f"SELECT max_by(id, id % 2) AS m FROM (SELECT * FROM prices {by})")
    shop.view("rolled", f"SELECT sku, first(id) AS f FROM (SELECT * FROM prices {by}) GROUP BY ROLLUP (sku)")
    shop.view("spread", f"SELECT first(e) AS f FROM (SELECT explode(array(id)) AS e FROM prices {by})")
    shop.view(
        "sorted",
        f"SELECT sku, first(id) AS f FROM (SELECT * FROM prices DISTRIBUTE BY sku SORT {by[6:]}) GROUP BY sku",
    )
    moves(shop, trade)
    prices.upsert(priced((1, "a", 9), (2, "a", 30), (3, "b", 5)))
    shop.tick()
    assert shop.rows("first") == [(2, 9, "a")]
    assert shop.rows("text") == [("a", "2,1"), ("b", "3"), ("c", "9")]


def test_windows_over_a_sorted_subquery(shop: Shop, trade: tuple[hw.Table, hw.Table]) -> None:
    by = "FROM (SELECT * FROM prices ORDER BY cents DESC, id)"
    over = "OVER (PARTITION BY sku ORDER BY id % 2)"
    shop.view("numbers", f"SELECT id, row_number() {over} AS n {by}")
    shop.view("best", f"SELECT id {by} QUALIFY row_number() {over} = 1")
    shop.view("ranks", f"SELECT id, rank() {over} AS r, row_number() {over} AS n {by} QUALIFY r <= 2")
    of_old = "SELECT sku, cents, id % 2 AS id FROM (SELECT * FROM prices ORDER BY id)"
    shop.view("other_id", f"SELECT cents, first_value(cents) {over.replace(' % 2', '')} AS f FROM ({of_old})")
    shop.view("before", f"SELECT id, lag(id) {over} AS b, first_value(id) {over} AS f {by}")
    moves(shop, trade)


def test_subqueries_in_orders_and_generators(shop: Shop, trade: tuple[hw.Table, hw.Table]) -> None:
    most = "(SELECT max(cents) FROM prices)"
    shop.view("all", f"SELECT id FROM orders ORDER BY {most}, id")
    shop.view("few", f"SELECT id FROM orders ORDER BY CASE WHEN {most} > 5 THEN id ELSE -id END LIMIT 2")
    shop.view("groups", f"SELECT sku, count(*) AS n FROM orders GROUP BY sku ORDER BY {most}")
    shop.view("spread", f"SELECT id, e FROM orders LATERAL VIEW explode(array({most}, n)) t AS e")
    shop.view("call", f"SELECT e FROM explode(array({most}, 1L)) t(e)")
    shop.view("lateral", f"SELECT id, e FROM orders o, LATERAL explode(array({most}, o.n)) t(e)")
    shop.view("argument", f"SELECT id, greatest({most}, n) AS g, coalesce({most}, 0) AS c FROM orders")
    moves(shop, trade)


def test_a_column_that_is_there_twice(shop: Shop, trade: tuple[hw.Table, hw.Table]) -> None:
    shop.pipeline.udf("twice", lambda x: None if x is None else x * 2, "BIGINT")
    shop.view(
        "values",
        "WITH RECURSIVE r(a, b) AS (SELECT x, x FROM (VALUES (1), (2)) q(x) UNION ALL "
        "SELECT a + 1, b FROM r WHERE a < 3) SELECT a, b FROM r",
    )
    shop.view(
        "rows",
        "WITH RECURSIVE r(a, b) AS (SELECT id, id FROM orders UNION ALL "
        "SELECT a + 1, b FROM r WHERE a < 3) SELECT a, b FROM r",
    )
    shop.view("having", "SELECT n, count(*) AS c FROM orders GROUP BY n HAVING twice(n) > 4 OR count(*) > twice(n)")
    shop.view(
        "medians", "SELECT n, median(id) AS m FROM orders GROUP BY n HAVING twice(n) + n > 9 OR max(id) < twice(n)"
    )
    shop.view(
        "window",
        "SELECT id, (SELECT max(z) FROM (SELECT sum(p.id) OVER (ORDER BY p.sku, p.id) AS z "
        "FROM prices p WHERE p.sku = o.sku)) AS z FROM orders o",
    )
    shop.view(
        "exists",
        "SELECT id FROM orders o WHERE EXISTS (SELECT rank() OVER (ORDER BY sku, id) "
        "FROM prices p WHERE p.sku = o.sku)",
    )
    moves(shop, trade)
