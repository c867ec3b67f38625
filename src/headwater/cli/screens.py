"""Where scenes are shown: painted over in a terminal, or a line each second, as text or JSON."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from headwater.cli.live import Scene, Sight, TickSight, ViewSight
from headwater.cli.text import Columns, cell, count


class Screen(Protocol):
    """Something to show scenes on, every `interval` seconds."""

    interval: float

    def show(self, scene: Scene) -> None:
        """Show how things stand."""
        ...


def choose_screen(*, as_json: bool) -> Screen:
    """A table that is painted over where there is a terminal, else lines."""
    if as_json:
        return JsonLines()
    return Painting() if sys.stdout.isatty() else PlainLines()


class JsonLines:
    """A document a second."""

    interval = 1.0

    def show(self, scene: Scene) -> None:
        """One line."""
        said = {**asdict(scene), "seconds": round(scene.seconds, 3)}
        said["views"] = [
            {
                "name": view.name,
                "rows": view.rows,
                "top": [dict(zip(view.columns, row, strict=True)) for row in view.top],
            }
            for view in scene.views
        ]
        print(json.dumps(said), flush=True)


class PlainLines:
    """A line a second, for a log file."""

    interval = 1.0

    def show(self, scene: Scene) -> None:
        """One line."""
        parts = [f"{sight.name} {sight.records:,} (+{sight.per_second:.0f}/s)" for sight in scene.topics]
        line = f"{scene.seconds:5.1f} s  {'  '.join(parts)}"
        if scene.tick is not None:
            views = ", ".join(f"{view.name} {count(view.rows, 'row')}" for view in scene.views)
            line += f"  {_tick(scene.tick)}  {views}"
        print(f"{line}  {scene.status}".rstrip(), flush=True)


class Painting:
    """Topics, the tick and the views, painted over in place four times a second."""

    interval = 0.25

    def __init__(self) -> None:
        self._height = 0

    def show(self, scene: Scene) -> None:
        """Go back to the first line of the last painting and paint over it, within the terminal."""
        size = shutil.get_terminal_size()
        lines = [*_topics(scene.topics), scene.status if scene.tick is None else _tick(scene.tick)]
        lines += _blocks(scene.views, size.lines - len(lines) - 3)
        lines = [*lines[: max(size.lines - 3, 1)], "", f"{scene.seconds:.1f} s, Ctrl-C ends it"]
        back = f"\x1b[{self._height}F" if self._height else ""
        rest = "\x1b[K\n" * (self._height - len(lines))
        self._height = max(self._height, len(lines))
        painted = "".join(f"{line[: size.columns - 1]}\x1b[K\n" for line in lines)
        print(back + painted + rest, end="", flush=True)


def view_lines(view: ViewSight, rows: int) -> Iterator[str]:
    """A view with its name beside its first rows."""
    columns = Columns([f"{view.name} ({view.rows:,})".ljust(23), *view.columns], right=view.numbers)
    lines = columns.lines([["", *row] for row in view.top[:rows]])
    yield columns.heading()
    yield from lines


def _blocks(views: Sequence[ViewSight], room: int) -> list[str]:
    """Every view, with as many rows as there is room for."""
    rows = max(room // max(len(views), 1) - 1, 1)
    return [line for view in views for line in view_lines(view, rows)]


def _topics(sights: Sequence[Sight]) -> list[str]:
    columns = Columns(["topic", "kind", "records", "rows/s", "last record"], right={"records", "rows/s"})
    rows = [
        [sight.name, sight.kind, f"{sight.records:,}", f"{sight.per_second:.0f}", _record(sight.last)]
        for sight in sights
    ]
    lines = columns.lines(rows)
    return [columns.heading(), *lines]


def _tick(tick: TickSight) -> str:
    return f"tick {tick.number}: {count(tick.rows_in, 'row')} in {tick.seconds:.3f} s (median {tick.median:.3f} s)"


def _record(last: Mapping[str, Any] | None) -> str:
    if last is None:
        return ""
    values = (cell(value) for name, value in last.items() if not name.startswith("_") and value is not None)
    return f"{last['_op']}: {', '.join(values)}"
