"""What holds of a tick whatever the operators are, on both paths.

`shop.tick()` compares every view with batch, so each test says only what is special about it.
"""

from __future__ import annotations

import pytest

import headwater as hw
from tests.equivalence.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_view_over_a_view_moves_in_the_same_tick(
    shop: Shop, orders_and_customers: tuple[hw.Table, hw.Table]
) -> None:
    orders, customers = orders_and_customers
    shop.view("per_customer", "SELECT customer, sum(cents) AS cents FROM orders GROUP BY customer")
    shop.view(
        "per_country",
        "SELECT c.country, count(*) AS buyers, sum(p.cents) AS cents FROM per_customer p "
        "JOIN customers c ON p.customer = c.id GROUP BY c.country",
    )
    shop.view("summary", "SELECT sum(buyers) AS buyers, sum(cents) AS cents FROM per_country WHERE cents > 0")
    customers.upsert([{"id": n, "country": "ND"[n % 2]} for n in range(4)])
    orders.upsert([{"id": n, "customer": n % 5, "cents": n} for n in range(12)])
    shop.tick()
    assert shop.rows("summary") == [(4, 53)]
    customers.delete([1])
    orders.upsert([{"id": 0, "customer": 3, "cents": 100}])
    shop.tick()
    assert shop.rows("summary") == [(3, 135)]


def test_a_view_declared_late_is_filled_without_news(shop: Shop) -> None:
    table = shop.table("t", "id INT, x INT", key="id")
    shop.view("first", "SELECT x FROM t")
    table.upsert([{"id": n, "x": n % 3} for n in range(9)])
    shop.tick()
    table.delete([0])
    shop.tick()
    shop.view("late", "SELECT x, count(*) AS n FROM t GROUP BY x")
    shop.tick()
    assert shop.rows("late") == [(0, 2), (1, 3), (2, 3)]
    assert shop.moved() is None


def test_a_bad_cast_says_where_and_the_other_views_go_on(shop: Shop) -> None:
    texts = shop.stream("texts", "s STRING")
    shop.view("fine", "SELECT count(*) AS n FROM texts")
    shop.view("numbers", "SELECT CAST(s AS INT) AS n FROM texts")
    texts.append([{"s": "1"}])
    shop.tick()
    for number in (2, 3):
        position = texts.append([{"s": "two"}])
        shop.moved()
        with pytest.raises(hw.ViewSuspended) as caught:
            shop.pipeline.read("numbers", after=position)
        words = str(caught.value)
        assert "numbers" in words
        assert "CAST(s AS INT)" in words
        assert '{"s":"two"}' in words
        assert shop.rows("fine") == [(number,)]
        assert shop.rows("numbers") == [(1,)]


def test_a_transaction_is_in_one_tick(shop: Shop) -> None:
    table = shop.table("t", "id INT, x INT", key="id")
    shop.pipeline.max_rows = 1
    shop.view("v", "SELECT sum(x) AS total FROM t")
    with shop.pipeline.transaction() as tx:
        tx.upsert(table, [{"id": 1, "x": 100}, {"id": 2, "x": -100}])
    table.upsert([{"id": 3, "x": 5}])
    shop.tick()
    assert shop.rows("v") == [(0,)]
    shop.tick()
    assert shop.rows("v") == [(5,)]


@pytest.mark.parametrize("max_rows", [1, 7, 1000])
def test_the_end_does_not_depend_on_where_ticks_fall(shop: Shop, max_rows: int) -> None:
    table = shop.table("t", "id INT, g INT, x INT", key="id", partitions=2)
    shop.pipeline.max_rows = max_rows
    shop.view("v", "SELECT a.g, sum(b.x) AS total FROM t a JOIN t b ON a.x = b.id GROUP BY a.g")
    for number in range(12):
        table.upsert([{"id": number % 5, "g": number % 3, "x": number % 4}])
    table.delete([2])
    while shop.moved() is not None:
        pass
    shop.table("other", "id INT", key="id")
    table.upsert([{"id": 9, "g": 9, "x": 9}])
    shop.tick()
    assert shop.rows("v") == [(0, 3), (2, 2), (9, 9)]
