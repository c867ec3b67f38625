"""A pipeline as it lives: looking at its topics, its ticks and its views. Knows nothing of who appends or ticks."""

from __future__ import annotations

import json
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.cli.tables import cells, numeric
from headwater.cli.tail import Reached
from headwater.schema.json import to_json

if TYPE_CHECKING:
    from headwater import Pipeline, Stream, Table, Tick

_WINDOW = 2.0
_TOP = 3


@dataclass(frozen=True, slots=True)
class Sight:
    """A topic at one moment, as its log shows it."""

    name: str
    kind: str
    records: int
    per_second: float
    last: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ViewSight:
    """A view at one tick: how many rows, and the first of them by its column `cents`, as text."""

    name: str
    rows: int
    columns: list[str]
    numbers: list[str]
    top: list[list[str]]


@dataclass(frozen=True, slots=True)
class TickSight:
    """The last tick, and the median of those before it. The rate is of records in by the time that ticks took."""

    number: int
    rows_in: int
    seconds: float
    median: float
    per_second: float


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything at one moment. `status` says what is being waited for, if anything."""

    seconds: float
    topics: Sequence[Sight]
    status: str = ""
    tick: TickSight | None = None
    views: Sequence[ViewSight] = field(default_factory=list)


class TopicWatch:
    """Follows one topic's log: each look reads only what came since the one before."""

    def __init__(self, topic: Stream | Table, now: Callable[[], float] = time.monotonic) -> None:
        self._topic = topic
        self._now = now
        self._reached = Reached(topic.name, None)
        self._records = 0
        self._last: dict[str, Any] | None = None
        self._counts: deque[tuple[float, int]] = deque()

    def look(self) -> Sight:
        """The topic now. The rate is over the last two seconds."""
        for table in self._reached.through(self._topic.tail(since=self._reached.position)):
            if table.num_rows:
                self._records += table.num_rows
                self._last = json.loads(next(iter(to_json(table.slice(table.num_rows - 1)))))
        return Sight(self._topic.name, self._topic.kind, self._records, self._rate(), self._last)

    def _rate(self) -> float:
        now = self._now()
        self._counts.append((now, self._records))
        while len(self._counts) > 2 and now - self._counts[1][0] >= _WINDOW:
            self._counts.popleft()
        since, before = self._counts[0]
        return round((self._records - before) / (now - since), 1) if now > since else 0.0


class ViewWatch:
    """Looks at views, all at one tick; reads them again only when there was another one."""

    def __init__(self, pipeline: Pipeline, names: Sequence[str]) -> None:
        self._pipeline = pipeline
        self._names = names
        self._filled: set[str] = set()
        self._seen: tuple[Tick | None, list[ViewSight]] = (None, [])

    def look(self, tick: Tick | None) -> list[ViewSight]:
        """The views as this tick left them; those that no tick has filled are left out."""
        if tick is not None and tick is not self._seen[0]:
            self._filled |= set(tick.rows_out)
            names = [name for name in self._names if name in self._filled]
            self._seen = tick, [self._sight(name, tick.number) for name in names]
        return self._seen[1]

    def _sight(self, name: str, number: int) -> ViewSight:
        rows = self._pipeline.read(name, as_of=number)
        top = rows.sort_by([("cents", "descending")]).slice(0, _TOP)
        return ViewSight(name, rows.num_rows, rows.column_names, sorted(numeric(rows)), cells(top))


def tick_sight(ticks: Sequence[Tick]) -> TickSight | None:
    """The last of some ticks, with what the others say about it."""
    if not ticks:
        return None
    took = [tick.seconds for tick in ticks]
    rate = sum(tick.rows_in for tick in ticks) / max(sum(took), 1e-6)
    return TickSight(
        ticks[-1].number, ticks[-1].rows_in, took[-1], round(statistics.median(took), 3), round(rate, 1)
    )
