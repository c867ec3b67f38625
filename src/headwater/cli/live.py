"""Topics as they grow: looking at them, and showing what was seen. Knows nothing of who appends."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headwater.cli.tail import Reached
from headwater.cli.text import Columns, cell
from headwater.schema.json import to_json

if TYPE_CHECKING:
    from headwater import Stream, Table

_WINDOW = 2.0


@dataclass(frozen=True, slots=True)
class Sight:
    """A topic at one moment, as its log shows it."""

    name: str
    kind: str
    records: int
    per_second: float
    last: dict[str, Any] | None


class Watch:
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


class Screen(Protocol):
    """Something to show sights on, every `interval` seconds."""

    interval: float

    def show(self, seconds: float, sights: Sequence[Sight]) -> None:
        """Show how things stand after so many seconds."""
        ...


def choose_screen(*, as_json: bool) -> Screen:
    """A table that is painted over where there is a terminal, else lines."""
    if as_json:
        return JsonLines()
    return Painting() if sys.stdout.isatty() else PlainLines()


class JsonLines:
    """A document a second."""

    interval = 1.0

    def show(self, seconds: float, sights: Sequence[Sight]) -> None:
        """One line."""
        print(json.dumps({"seconds": round(seconds, 3), "topics": [asdict(s) for s in sights]}), flush=True)


class PlainLines:
    """A line a second, for a log file."""

    interval = 1.0

    def show(self, seconds: float, sights: Sequence[Sight]) -> None:
        """One line."""
        parts = [f"{sight.name} {sight.records:,} (+{sight.per_second:.0f}/s)" for sight in sights]
        print(f"{seconds:5.1f} s  {'  '.join(parts)}", flush=True)


class Painting:
    """A table that is painted over in place, four times a second."""

    interval = 0.25

    def __init__(self) -> None:
        self._height = 0

    def show(self, seconds: float, sights: Sequence[Sight]) -> None:
        """Go back to the first line of the last painting and paint over it."""
        width = shutil.get_terminal_size().columns - 1
        lines = [*_table(sights), "", f"{seconds:.1f} s, Ctrl-C ends it"]
        back = f"\x1b[{self._height}F" if self._height else ""
        self._height = len(lines)
        print(back + "".join(f"{line[:width]}\x1b[K\n" for line in lines), end="", flush=True)


def _table(sights: Sequence[Sight]) -> list[str]:
    columns = Columns(["topic", "kind", "records", "rows/s", "last record"], right={"records", "rows/s"})
    rows = [
        [sight.name, sight.kind, f"{sight.records:,}", f"{sight.per_second:.0f}", _record(sight.last)]
        for sight in sights
    ]
    lines = columns.lines(rows)
    return [columns.heading(), *lines]


def _record(last: Mapping[str, Any] | None) -> str:
    if last is None:
        return ""
    values = (cell(value) for name, value in last.items() if not name.startswith("_") and value is not None)
    return f"{last['_op']}: {', '.join(values)}"
