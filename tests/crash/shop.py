"""A small shop with five views, for drivers that are killed: its declarations, and random traffic with invariants.

Two orders always have TOTAL cents together, and are written by one transaction that also leaves two clicks which
cancel each other: whoever sees half of it sees that.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict

import headwater as hw
from tests.inside import topic_of


class Parts(TypedDict, total=False):
    """The URLs of a pipeline's parts."""

    log: str
    store: str


NAME = "drivers"
TOPICS = ("orders", "customers", "bag", "clicks")
VIEWS = {
    "revenue": "SELECT c.country, sum(o.cents) AS cents, count(*) AS sales "
    "FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.country",
    "total": "SELECT sum(cents) AS cents, sum(sales) AS sales FROM revenue",
    "dear": "SELECT id, cents, cents * 2 AS twice FROM orders WHERE cents > 500",
    "words": "SELECT DISTINCT word FROM bag",
    "clicked": "SELECT who, count(*) AS times, sum(n) AS n FROM clicks GROUP BY who",
}
KEYS = {"revenue": "country", "dear": "id", "clicked": "who"}
TOTAL = 10_000
PAIR = (1000, 1001)
SEGMENT_BYTES = 16 << 10
_EMBEDDED: Parts = {}


@contextmanager
def opened(
    path: str, *, views: bool = True, retain_ticks: int = 3, parts: Parts = _EMBEDDED
) -> Iterator[hw.Pipeline]:
    """The shop, with versions that go soon. Views that are not declared yet need an engine. `parts`: their URLs."""
    with hw.Pipeline(
        NAME, path, retain_ticks=retain_ticks, retain_for="0 seconds", master="local[2]", **parts
    ) as pipeline:
        declare_topics(pipeline)
        if views:
            declare_views(pipeline)
        yield pipeline


def declare_topics(pipeline: hw.Pipeline) -> None:
    pipeline.table("orders", "id BIGINT NOT NULL, customer BIGINT, cents BIGINT", key="id", partitions=2)
    pipeline.table("customers", "id BIGINT NOT NULL, country STRING", key="id")
    pipeline.table("bag", "word STRING, n BIGINT", partitions=2)
    pipeline.stream("clicks", "who BIGINT, n BIGINT", partitions=2)


def declare_views(pipeline: hw.Pipeline) -> None:
    for name, sql in VIEWS.items():
        pipeline.view(name, sql, key=KEYS.get(name))


class Traffic:
    """Random appends, upserts, deletes and transactions, decided by the dice alone."""

    def __init__(self, pipeline: hw.Pipeline, seed: object) -> None:
        self._pipeline = pipeline
        self._dice = random.Random(f"traffic {seed}")
        self.operations = 0

    def step(self) -> None:
        """One of them."""
        self.operations += 1
        kinds = [self._orders, self._orders, self._gone, self._customers, self._bag, self._unbag, self._clicks]
        self._dice.choice([*kinds, self._pair, self._pair])()

    def _topic(self, name: str) -> hw.Table:
        topic = topic_of(self._pipeline, name)
        assert isinstance(topic, hw.Table)
        return topic

    def _order(self) -> dict[str, object]:
        customer = None if self._dice.random() < 0.1 else self._dice.randrange(12)
        return {"id": self._dice.randrange(60), "customer": customer, "cents": self._dice.randrange(1000)}

    def _orders(self) -> None:
        self._topic("orders").upsert([self._order() for _ in range(self._dice.randint(1, 20))])

    def _gone(self) -> None:
        self._topic("orders").delete([self._dice.randrange(60) for _ in range(self._dice.randint(1, 6))])

    def _customers(self) -> None:
        rows = [{"id": self._dice.randrange(12), "country": self._dice.choice("ABCD")}]
        self._topic("customers").upsert(rows)
        if self._dice.random() < 0.3:
            self._topic("customers").delete([self._dice.randrange(12)])

    def _word(self) -> dict[str, object]:
        return {"word": self._dice.choice(["a", "b", "c", None]), "n": self._dice.randrange(2)}

    def _bag(self) -> None:
        self._topic("bag").append([self._word() for _ in range(self._dice.randint(1, 4))])

    def _unbag(self) -> None:
        self._topic("bag").delete([self._word() for _ in range(self._dice.randint(1, 5))])

    def _clicks(self) -> None:
        clicks = topic_of(self._pipeline, "clicks")
        assert isinstance(clicks, hw.Stream)
        clicks.append([{"who": self._dice.randrange(5), "n": self._dice.randrange(-9, 9)} for _ in range(3)])

    def _pair(self) -> None:
        some = self._dice.randrange(TOTAL)
        with self._pipeline.transaction() as transaction:
            for order, cents in zip(PAIR, (some, TOTAL - some), strict=True):
                transaction.upsert("orders", [{"id": order, "customer": order % 12, "cents": cents}])
            transaction.append("clicks", [{"who": PAIR[0], "n": some}])
            transaction.append("clicks", [{"who": PAIR[0], "n": -some}])
