"""The shop's traffic: made up, endless, and the same for the same seed and clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from headwater.clock import Clock, as_datetime

_CUSTOMERS = 20
_CLICKS = (4, 12)
_FIRST_NAMES = ("Ada", "Björn", "Chloé", "Dag", "Eva", "Femi", "Grace", "Hana", "Ivar", "Jun", "Kari", "Lars")
_LAST_NAMES = ("Berg", "Dubois", "Holm", "Ito", "Lovelace", "Nilsen", "Okafor", "Rossi", "Strand", "Virtanen")
_COUNTRIES = ("NO", "SE", "DK", "FI", "DE", "FR")
_PRODUCTS = (
    ("canoe", "Two-seat canoe", 89_900),
    ("paddle", "Ash paddle", 7_900),
    ("vest", "Life vest", 5_900),
    ("tent", "Tunnel tent", 44_900),
    ("stove", "Spirit stove", 6_450),
    ("kettle", "Black kettle", 3_200),
    ("map", "River map", 1_450),
    ("rope", "Throw rope", 2_100),
)
_NEXT_STATUS = {"placed": "paid", "paid": "sent", "sent": "delivered"}
_LATE = 0.05
_CANCELLED = 0.08


class Batch(NamedTuple):
    """Rows for one topic. `operation` is the method to call with them: append, upsert or delete."""

    topic: str
    operation: str
    rows: list[dict[str, Any]]


def traffic(random: Random, clock: Clock) -> Iterator[Batch]:
    """The products and the first customers, then moment after moment of an open shop, without end.

    Every moment brings clicks, mostly orders, and now and then a new or moving customer or a new price. Orders
    go from placed to paid, sent and delivered; some are cancelled, which deletes them.
    """
    shop = _OpenShop(random, clock)
    yield Batch("products", "upsert", [_product(*product) for product in _PRODUCTS])
    yield Batch("customers", "upsert", [shop.new_customer() for _ in range(_CUSTOMERS)])
    while True:
        yield from (batch for batch in shop.moment() if batch.rows)


def _product(sku: str, title: str, cents: int) -> dict[str, Any]:
    return {"sku": sku, "title": title, "cents": cents}


@dataclass(slots=True)
class _Visit:
    session: str
    customer: int


class _OpenShop:
    """What the shop remembers: its customers, prices, visitors and the orders that are under way."""

    def __init__(self, random: Random, clock: Clock) -> None:
        self._random = random
        self._clock = clock
        self._customers = 0
        self._orders = 0
        self._prices = {sku: cents for sku, _, cents in _PRODUCTS}
        self._under_way: dict[int, dict[str, Any]] = {}
        self._visits: list[_Visit] = []

    def moment(self) -> list[Batch]:
        """One step of the shop's life."""
        cancelled = self._cancel()
        return [
            Batch("customers", "upsert", self._people()),
            Batch("products", "upsert", self._new_price()),
            Batch("clicks", "append", self._clicks()),
            Batch("orders", "upsert", [*self._place(), *self._advance()]),
            Batch("orders", "delete", cancelled),
        ]

    def new_customer(self) -> dict[str, Any]:
        """Someone who was not here before."""
        self._customers += 1
        return self._customer(self._customers)

    def _customer(self, number: int) -> dict[str, Any]:
        name = Random(number)  # noqa: S311 - who moves keeps the name
        return {
            "id": number,
            "name": f"{name.choice(_FIRST_NAMES)} {name.choice(_LAST_NAMES)}",
            "country": self._random.choice(_COUNTRIES),
        }

    def _people(self) -> list[dict[str, Any]]:
        if self._chance(0.10):
            return [self.new_customer()]
        return [self._customer(self._some_customer())] if self._chance(0.02) else []

    def _new_price(self) -> list[dict[str, Any]]:
        if not self._chance(0.05):
            return []
        sku, title, usual = self._random.choice(_PRODUCTS)
        self._prices[sku] = round(usual * self._random.uniform(0.8, 1.2))
        return [_product(sku, title, self._prices[sku])]

    def _clicks(self) -> list[dict[str, Any]]:
        return [self._click() for _ in range(self._random.randint(*_CLICKS))]

    def _click(self) -> dict[str, Any]:
        visit = self._visit()
        at = self._now()
        if self._chance(_LATE):
            at -= timedelta(milliseconds=self._random.randint(500, 8000))
        page = self._random.choice(("", "cart", *(f"product/{sku}" for sku in self._prices)))
        return {"session": visit.session, "customer_id": visit.customer, "url": f"/{page}", "at": at}

    def _visit(self) -> _Visit:
        if len(self._visits) < 12 or self._chance(0.05):
            session = f"{self._random.getrandbits(32):08x}"
            self._visits = [*self._visits[-11:], _Visit(session, self._some_customer())]
        return self._random.choice(self._visits)

    def _place(self) -> list[dict[str, Any]]:
        if not self._chance(0.7):
            return []
        self._orders += 1
        sku = self._random.choice(list(self._prices))
        quantity = self._random.choice((1, 1, 1, 2, 3))
        order = {
            "id": self._orders,
            "customer_id": self._some_customer(),
            "sku": sku,
            "quantity": quantity,
            "cents": quantity * self._prices[sku],
            "status": "placed",
            "at": self._now(),
        }
        self._under_way[self._orders] = order
        return [order]

    def _advance(self) -> list[dict[str, Any]]:
        """A few of the older orders take their next step; a delivered one is done with."""
        older = list(self._under_way.values())[:-5]
        moved = []
        for order in self._random.sample(older, min(len(older), self._random.randint(0, 4))):
            later = {**order, "status": _NEXT_STATUS[order["status"]]}
            self._under_way[order["id"]] = later
            if later["status"] == "delivered":
                del self._under_way[order["id"]]
            moved.append(later)
        return moved

    def _cancel(self) -> list[dict[str, Any]]:
        waiting = [number for number, order in self._under_way.items() if order["status"] == "placed"]
        if not waiting or not self._chance(_CANCELLED):
            return []
        number = self._random.choice(waiting)
        del self._under_way[number]
        return [{"id": number}]

    def _some_customer(self) -> int:
        return self._random.randint(1, self._customers)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _now(self) -> datetime:
        return as_datetime(self._clock.now())
