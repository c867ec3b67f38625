"""`headwater tail`: a topic's log, straight from disk, and what is added to it while one watches."""

from __future__ import annotations

import argparse
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from headwater.cli.options import whole
from headwater.cli.text import Columns, cell
from headwater.cli.where import WrongUsage, add_where, opened
from headwater.errors import HeadwaterError
from headwater.pipeline.opened import topic as named
from headwater.position import Position
from headwater.schema.json import to_json

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater import Stream, Table

_NUMBERS = {"_partition", "_offset"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where to begin and whether to stay."""
    parser.add_argument("topic")
    parser.add_argument("-f", "--follow", action="store_true", help="stay and show new rows until Ctrl-C")
    parser.add_argument("--since", metavar="POSITION", help="only what came after it, such as orders@0:42")
    parser.add_argument("-n", "--last", type=whole(0), metavar="N", help="begin with the last N rows only")
    add_where(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what is there, then, with -f, what comes."""
    with opened(arguments) as pipeline:
        topic = named(pipeline, arguments.topic)
        since = _position(arguments.since, topic.name)
        show = _json_lines if arguments.json else _TextLines()
        for lines in _runs(topic, since, show, last=arguments.last, follow=arguments.follow):
            print("\n".join(lines), flush=True)
    return 0


def _position(text: str | None, topic: str) -> Position | None:
    if text is None:
        return None
    try:
        position = Position.parse(text)
    except HeadwaterError as error:
        raise WrongUsage(error.what, where="--since", hint=error.hint) from None
    if topic not in position.topics:
        msg = f"{text!r} says nothing about {topic}"
        raise WrongUsage(msg, where="--since", hint=f"a position in it looks like {topic}@0:42")
    return position


def _runs(
    topic: Stream | Table,
    since: Position | None,
    show: Callable[[pa.Table], list[str]],
    *,
    last: int | None,
    follow: bool,
) -> Iterator[list[str]]:
    """The lines to print, a run at a time. What is there comes first, so that -n knows where it ends."""
    reached = Reached(topic.name, since)
    there = reached.through(topic.tail(since=since))
    for table in there if last is None else _last(there, last):
        if table.num_rows:
            yield show(table)
    if follow:
        for table in topic.tail(since=reached.position, follow=True):
            if table.num_rows:
                yield show(table)


class Reached:
    """How far a tail has come."""

    def __init__(self, topic: str, since: Position | None) -> None:
        self._topic = topic
        self.position = since

    def through(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The same tables, taking note of their offsets."""
        for table in tables:
            ends: dict[int, int] = {}
            partitions, offsets = table["_partition"].to_pylist(), table["_offset"].to_pylist()
            for partition, offset in zip(partitions, offsets, strict=True):
                ends[partition] = max(offset + 1, ends.get(partition, 0))
            if ends:
                here = Position.of(self._topic, ends)
                self.position = here if self.position is None else self.position | here
            yield table


def _last(tables: Iterable[pa.Table], number: int) -> Iterable[pa.Table]:
    """The last rows of all, holding on to no more tables than they need."""
    kept: deque[pa.Table] = deque()
    rows = 0
    for table in tables:
        kept.append(table)
        rows += table.num_rows
        while kept and rows - kept[0].num_rows >= number:
            rows -= kept.popleft().num_rows
    if kept:
        kept[0] = kept[0].slice(max(rows - number, 0))
    return kept


def _json_lines(table: pa.Table) -> list[str]:
    return list(to_json(table))


class _TextLines:
    """Aligned lines, the heading before the first."""

    def __init__(self) -> None:
        self._columns: Columns | None = None

    def __call__(self, table: pa.Table) -> list[str]:
        names = table.column_names
        rows = [[cell(row.get(name)) for name in names] for row in map(json.loads, to_json(table))]
        if self._columns is not None:
            return self._columns.lines(rows)
        self._columns = Columns(names, right=_NUMBERS)
        lines = self._columns.lines(rows)
        return [self._columns.heading(), *lines]
