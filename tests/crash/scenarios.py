"""Scenarios: short lives of a log, to be broken off, cut off and starved in every way by the tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater import crashpoint
from headwater.log import TopicLog
from tests.crash.ledger import SCHEMA, Ledger
from tests.crash.run import Run

ORDERS = TopicLog("orders", 1, SCHEMA, 2)
CLICKS = TopicLog("clicks", 2, SCHEMA, 1)
METRICS = TopicLog("metrics", 3, SCHEMA, 2, durable=False)


@dataclass(frozen=True)
class Scenario:
    play: Callable[[Run], None]
    topics: tuple[TopicLog, ...] = (ORDERS, CLICKS)
    segment_bytes: int = 1 << 20

    @property
    def name(self) -> str:
        return self.play.__name__

    def ledger(self) -> Ledger:
        return Ledger(self.topics)


def single_appends(run: Run) -> None:
    run.append("orders", {0: 1})
    run.append("orders", {0: 3})
    run.append("orders", {1: 2})
    run.append("clicks", {0: 2})


def appends_that_span_partitions(run: Run) -> None:
    run.append("orders", {0: 1, 1: 2})
    run.append("orders", {1: 1})
    run.append("orders", {0: 2, 1: 1})


def transactions(run: Run) -> None:
    run.append("orders", {0: 1})
    run.transaction({("orders", 0): 3, ("orders", 1): 2, ("clicks", 0): 4})
    run.append("clicks", {0: 1})
    run.transaction({("orders", 1): 2, ("clicks", 0): 1})


def rolls(run: Run) -> None:
    for count in (2, 1, 3):
        run.append("orders", {0: count})
    run.transaction({("orders", 0): 4, ("orders", 1): 2})
    run.append("orders", {0: 1, 1: 3})


def ticks(run: Run) -> None:
    run.append("orders", {0: 2})
    run.tick()
    run.append("orders", {0: 1, 1: 1})
    run.append("clicks", {0: 2})
    run.tick()
    run.append("clicks", {0: 1})


def trims(run: Run) -> None:
    run.transaction({("orders", 0): 2, ("orders", 1): 1})
    for count in (2, 2, 2, 2):
        run.append("orders", {0: count})
    run.tick()
    run.trim(("orders", 0), 6)
    run.append("orders", {0: 1})
    run.trim(("orders", 0), 9)


def producers_over_rolls(run: Run) -> None:
    for sequence in range(3):
        run.append("orders", {0: 2}, producer="shop", sequence=sequence)
    run.append("orders", {0: 1, 1: 2}, producer="shop", sequence=3)
    run.append("orders", {1: 2}, producer="shop", sequence=4)
    run.append("orders", {0: 1}, producer="other", sequence=7)
    run.append("orders", {0: 1}, producer="shop", sequence=5)


def two_logs(run: Run) -> None:
    """A writes its frame; before it syncs, B writes and syncs both. Then the other way round, with a tick."""
    other = run.open()
    run.append("orders", {0: 1})
    with_the_other_at("append.before_sync", lambda: run.append("orders", {0: 2}, log=other))
    run.append("orders", {0: 2})
    with_the_other_at("append.before_sync", run.tick)
    run.append("orders", {0: 1}, log=other)
    with_the_other_at("transaction.synced", lambda: run.append("orders", {0: 1, 1: 1}, log=other))
    run.transaction({("orders", 0): 2, ("clicks", 0): 1})
    with_the_other_at("transaction.written", lambda: run.append("orders", {1: 1}))
    run.append("orders", {0: 1, 1: 1}, log=other)


def a_producer_in_two_logs(run: Run) -> None:
    """A batch is repeated, and its successor sent, while the first one's fsync is still to come."""
    other = run.open()
    run.append("orders", {0: 1}, producer="shop", sequence=0)

    def repeat() -> None:
        run.try_append(run.ledger.operations[-1], "orders", log=other)

    with_the_other_at("append.before_sync", repeat)
    run.append("orders", {0: 2}, producer="shop", sequence=1)

    def follow() -> None:
        run.append("orders", {1: 2}, producer="shop", sequence=3, log=other)

    with_the_other_at("append.before_sync", follow)
    run.append("orders", {0: 2}, producer="shop", sequence=2)


def without_fsync(run: Run) -> None:
    run.append("metrics", {0: 2})
    run.read()
    run.append("metrics", {0: 1})
    run.append("metrics", {1: 1})
    run.read()
    run.tick()
    run.append("metrics", {0: 3})
    run.append("clicks", {0: 1})
    run.read()


def without_fsync_over_rolls(run: Run) -> None:
    for count in (2, 1, 3, 1):
        run.append("metrics", {0: count})
        run.read()
    run.transaction({("metrics", 0): 2, ("clicks", 0): 1})
    run.append("metrics", {0: 2})


def with_the_other_at(point: str, action: Callable[[], object]) -> None:
    """Do something else once, when the next call reaches a point at which it holds no lock."""

    def act() -> None:
        crashpoint.arm(None)
        action()

    crashpoint.arm(point, action=act)


SCENARIOS = (
    Scenario(single_appends),
    Scenario(appends_that_span_partitions),
    Scenario(transactions),
    Scenario(rolls, segment_bytes=1000),
    Scenario(ticks),
    Scenario(trims, segment_bytes=1000),
    Scenario(producers_over_rolls, segment_bytes=1300),
    Scenario(two_logs),
    Scenario(a_producer_in_two_logs),
    Scenario(without_fsync, topics=(METRICS, CLICKS)),
    Scenario(without_fsync_over_rolls, topics=(METRICS, CLICKS), segment_bytes=1000),
)
