from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from random import Random

from headwater.examples.shop import Batch, traffic


class Clock:
    """Ten milliseconds pass between one look and the next."""

    def __init__(self) -> None:
        self._now = 1_700_000_000_000_000

    def now(self) -> int:
        self._now += 10_000
        return self._now


def some(seed: int, number: int = 3000) -> Iterator[Batch]:
    return islice(traffic(Random(seed), Clock()), number)


def test_the_same_seed_and_clock_give_the_same_traffic() -> None:
    assert list(some(7, 500)) == list(some(7, 500))
    assert list(some(7, 500)) != list(some(8, 500))


def test_there_is_something_of_everything_in_it() -> None:
    rows = Counter[tuple[str, str]]()
    for batch in some(1):
        rows[batch.topic, batch.operation] += len(batch.rows)
    assert set(rows) == {
        ("customers", "upsert"),
        ("products", "upsert"),
        ("orders", "upsert"),
        ("orders", "delete"),
        ("clicks", "append"),
    }


def test_an_order_goes_through_its_states_in_order_and_only_those_not_yet_paid_are_cancelled() -> None:
    states: dict[int, list[str]] = {}
    for batch in some(1):
        if batch.topic == "orders":
            for row in batch.rows:
                states.setdefault(row["id"], []).append(row.get("status", "cancelled"))
    whole = ["placed", "paid", "sent", "delivered"]
    assert all(seen in (whole[: len(seen)], ["placed", "cancelled"]) for seen in states.values())
    assert any(seen == whole for seen in states.values())


def test_orders_name_customers_and_products_that_exist() -> None:
    customers, products = set(), set()
    for batch in some(2):
        if batch.topic == "customers":
            customers |= {row["id"] for row in batch.rows}
        elif batch.topic == "products":
            products |= {row["sku"] for row in batch.rows}
        elif batch.operation == "upsert":
            assert all(row["customer_id"] in customers and row["sku"] in products for row in batch.rows)


def test_some_clicks_come_late_but_not_by_much() -> None:
    latest, most = None, 0.0
    for batch in some(3):
        for row in batch.rows if batch.topic == "clicks" else ():
            latest = row["at"] if latest is None else max(latest, row["at"])
            most = max(most, (latest - row["at"]).total_seconds())
    assert 1 < most < 10
