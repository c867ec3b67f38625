"""Traffic for the shop at a given rate, from a process of its own that also looks what is visible."""

from __future__ import annotations

import bisect
import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.queues import Queue

import numpy as np
import pyarrow as pa

import headwater as hw
from headwater.examples.shop import Shop, declare

ROWS = 10
SEED = 20261116
CUSTOMERS = 10_000
SKUS = ["canoe", "paddle", "vest", "tent", "stove", "kettle", "map", "rope"]
_SENDERS = 4
_LOOK_EVERY = 0.01
_STATUS = ["placed", "paid", "sent", "delivered"]


@dataclass
class Seen:
    """What the sending process noted: batches as (topic, end, when sent), looks as (when, end of each topic)."""

    batches: list[tuple[str, int, float]] = field(default_factory=list)
    looks: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    late: float = 0.0

    def ages(self, topics: tuple[str, ...]) -> list[float]:
        """At every look, how long ago the newest visible row of these topics was sent."""
        newest: list[list[float]] = [[] for _ in self.looks]
        for topic in topics:
            ends, sent = self._sent(topic)
            newest_until = list(itertools.accumulate(sent, max))
            for place, (_, visible) in enumerate(self.looks):
                if count := bisect.bisect_right(ends, visible.get(topic, 0)):
                    newest[place].append(newest_until[count - 1])
        return [when - max(found) for (when, _), found in zip(self.looks, newest, strict=True) if found]

    def delays(self, topics: tuple[str, ...]) -> list[float]:
        """Of every batch of these topics, how long it took until it was visible."""
        found = []
        for topic in topics:
            visible = [ends.get(topic, 0) for _, ends in self.looks]
            for end, sent in zip(*self._sent(topic), strict=True):
                place = bisect.bisect_left(visible, end)
                if place < len(visible):
                    found.append(self.looks[place][0] - sent)
        return found

    def _sent(self, topic: str) -> tuple[list[int], list[float]]:
        chosen = sorted((end, sent) for each, end, sent in self.batches if each == topic)
        return [end for end, _ in chosen], [sent for _, sent in chosen]


class Traffic:
    """Batches for the shop: clicks, new orders and orders that move on, and some that are cancelled."""

    def __init__(self, seed: int, first: int) -> None:
        self._random = np.random.default_rng(seed)
        self._next = first
        self._orders: list[int] = []

    def __iter__(self) -> Iterator[tuple[str, str, pa.Table]]:
        while True:
            yield "clicks", "append", self._clicks()
            yield "orders", "upsert", self._upserts()
            if self._random.random() < 0.1 and len(self._orders) > 100:
                yield "orders", "delete", self._cancelled()

    def _clicks(self) -> pa.Table:
        return pa.table(
            {
                "session": [f"{each:08x}" for each in self._random.integers(0, 2**32, ROWS)],
                "customer_id": self._random.integers(1, CUSTOMERS + 1, ROWS),
                "url": [f"/product/{self._sku()}" for _ in range(ROWS)],
                "at": self._now(),
            }
        )

    def _upserts(self) -> pa.Table:
        new = list(range(self._next, self._next + ROWS // 2))
        self._next += len(new)
        self._orders = (self._orders + new)[-1_000:]
        old = self._random.choice(self._orders, ROWS - len(new), replace=len(self._orders) < ROWS).tolist()
        return pa.table(
            {
                "id": pa.array(new + old, pa.int64()),
                "customer_id": [1 + each * 7919 % CUSTOMERS for each in new + old],
                "sku": [SKUS[each % len(SKUS)] for each in new + old],
                "quantity": pa.array([1 + each % 3 for each in new + old], pa.int32()),
                "cents": [1_000 + each % 90_000 for each in new + old],
                "status": [_STATUS[0]] * len(new) + [self._random.choice(_STATUS[1:]) for _ in old],
                "at": self._now(),
            }
        )

    def _cancelled(self) -> pa.Table:
        chosen, self._orders = self._orders[:ROWS], self._orders[ROWS:]
        return pa.table({"id": pa.array(chosen, pa.int64())})

    def _sku(self) -> str:
        return SKUS[int(self._random.integers(0, len(SKUS)))]

    def _now(self) -> pa.Array:
        return pa.array([int(time.time() * 1e6)] * ROWS, pa.timestamp("us", tz="UTC"))


def send(path: str, rate: float, seconds: float, first: int, out: Queue[Seen]) -> None:
    """Append batches at a rate for a while, and look what is visible; run in a process of its own."""
    seen, stop = Seen(), threading.Event()
    with hw.Pipeline("shop", path) as pipeline:
        shop = declare(pipeline)
        senders = min(_SENDERS, max(1, int(rate)))
        began = time.monotonic()
        threads = [
            threading.Thread(target=_send, args=(shop, seen, began, rate / senders, seconds, first, one))
            for one in range(senders)
        ]
        looking = threading.Thread(target=_look, args=(pipeline, seen, stop))
        for thread in (looking, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        looking.join()
    out.put(seen)


def _send(shop: Shop, seen: Seen, began: float, rate: float, seconds: float, first: int, one: int) -> None:
    batches = iter(Traffic(SEED + one, first + one * 10_000_000))
    for number in range(int(rate * seconds)):
        due = began + number / rate
        time.sleep(max(0.0, due - time.monotonic()))
        topic, operation, rows = next(batches)
        sent = time.monotonic()
        seen.late = max(seen.late, sent - due)
        position: hw.Position = getattr(getattr(shop, topic), operation)(rows)
        seen.batches.append((topic, max(position.in_topic(topic).values()), sent))


def _look(pipeline: hw.Pipeline, seen: Seen, stop: threading.Event) -> None:
    while not stop.wait(_LOOK_EVERY):
        tick = pipeline._store.last_tick()
        if tick is not None:
            ends = {topic: sum(parts.values()) for topic, parts in tick.cut["ends"].items()}
            seen.looks.append((time.monotonic(), ends))
