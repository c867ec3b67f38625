"""Traffic for the shop at a given rate, from a process of its own that also looks what is visible."""

from __future__ import annotations

import bisect
import itertools
import threading
import time
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
_SENDERS = 2
_LOOK_EVERY = 0.01
_OPEN = 1_000
"""Orders move on while they are among so many newest ones."""
_CANCELLED = 0.05
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


def traffic(seed: int, first: int, dues: np.ndarray) -> list[tuple[str, str, pa.Table]]:
    """A batch for each time: in turn clicks, and orders, half new and half moved on; now and then some deleted."""
    random = np.random.default_rng(seed)
    count = len(dues)
    at = pa.array(np.repeat((dues * 1e6).astype("int64"), ROWS), pa.timestamp("us", tz="UTC"))
    clicks = pa.table(
        {
            "session": [f"{each:08x}" for each in random.integers(0, 2**32, count * ROWS)],
            "customer_id": random.integers(1, CUSTOMERS + 1, count * ROWS),
            "url": np.array([f"/product/{each}" for each in SKUS])[random.integers(0, len(SKUS), count * ROWS)],
            "at": at,
        }
    )
    newest = (np.arange(count)[:, None] // 2 + 1) * (ROWS // 2) - 1  # of the orders; every other batch brings some
    new = newest - np.arange(ROWS // 2)[::-1]
    old = np.maximum(newest - random.integers(0, _OPEN, (count, ROWS - ROWS // 2)), 0)
    status = np.concatenate([np.zeros(new.shape, "int64"), random.integers(1, len(_STATUS), old.shape)], axis=1)
    ids = first + np.concatenate([new, old], axis=1).ravel()
    orders = pa.table(
        {
            "id": ids,
            "customer_id": 1 + ids * 7919 % CUSTOMERS,
            "sku": np.array(SKUS)[ids % len(SKUS)],
            "quantity": (1 + ids % 3).astype("int32"),
            "cents": 1_000 + ids % 90_000,
            "status": np.array(_STATUS)[status.ravel()],
            "at": at,
        }
    )
    cancelled = pa.table({"id": first + np.maximum(newest - _OPEN - np.arange(ROWS), 0).ravel()})
    kinds = [
        ("clicks", "append", clicks) if number % 2 == 0 else ("orders", "upsert", orders) for number in range(count)
    ]
    for number in np.flatnonzero(random.random(count) < _CANCELLED):
        kinds[number] = ("orders", "delete", cancelled)
    return [(topic, how, rows.slice(number * ROWS, ROWS)) for number, (topic, how, rows) in enumerate(kinds)]


def send(path: str, rate: float, seconds: float, first: int, out: Queue[Seen]) -> None:
    """Append batches at a rate for a while, and look what is visible; run in a process of its own."""
    seen, stop = Seen(), threading.Event()
    with hw.Pipeline("shop", path) as pipeline:
        shop = declare(pipeline)
        senders = min(_SENDERS, max(1, int(rate)))
        dues = np.arange(int(rate * seconds)) / rate
        parts = [dues[one::senders] for one in range(senders)]
        batches = [
            traffic(SEED + one, first + one * 10_000_000, time.time() + part) for one, part in enumerate(parts)
        ]
        began = time.monotonic()
        threads = [
            threading.Thread(target=_send, args=(shop, seen, began + part, each))
            for part, each in zip(parts, batches, strict=True)
        ]
        looking = threading.Thread(target=_look, args=(pipeline, seen, stop))
        for thread in (looking, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        looking.join()
    out.put(seen)


def _send(shop: Shop, seen: Seen, dues: np.ndarray, batches: list[tuple[str, str, pa.Table]]) -> None:
    for due, (topic, operation, rows) in zip(dues.tolist(), batches, strict=True):
        time.sleep(max(0.0, due - time.monotonic()))
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
