"""Topic: what streams and tables have in common."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Iterator
from functools import cache

import numpy as np
import pyarrow as pa
from xxhash import xxh64_intdigest

from headwater.change.hash import hash_rows
from headwater.errors import HeadwaterError, SchemaError
from headwater.log import Cut, Log, Parts, TopicSize
from headwater.log.producers import check_producer
from headwater.position import Position
from headwater.schema import BadRow, Checked, Schema
from headwater.topics.declaration import TopicDeclaration
from headwater.topics.record_view import OPERATIONS, as_log_table, log_schema

_NEWS_TIMEOUT = 0.5
_MANY = 1 << 16


def _repeated(operation: int, rows: int) -> pa.Array:
    """An operation for each of so many rows."""
    return _many(operation)[:rows] if rows <= _MANY else pa.array(np.full(rows, operation, np.int8))


@cache
def _many(operation: int) -> pa.Array:
    return pa.array(np.full(_MANY, operation, np.int8))


class Topic:
    """A declared topic of a pipeline. Safe for threads.

    Rows are checked before anything is stored: with `on_error="refuse"` the first bad one raises `SchemaError` and
    nothing of the batch is stored; with `"dead_letter"` exactly the bad ones go to `<topic>__dead_letters`.

    It takes rows with the columns that it was opened with, also after the topic was altered, by whatever process:
    they become rows of the altered topic. What it reads has the columns that the topic has come to have.
    """

    def __init__(
        self,
        declaration: TopicDeclaration,
        number: int,
        log: Log,
        timezone: str,
        open_letters: Callable[[TopicDeclaration], object] | None = None,
        newest: Callable[[str], Topic] | None = None,
    ) -> None:
        self.declaration = declaration
        self.number = number
        self.log = log
        self._timezone = timezone
        self._open_letters = open_letters
        self._newest = newest
        self._stored_schema = declaration.stored_schema  # kept: every append needs it
        self._turn = itertools.count(random.randrange(declaration.partitions))  # noqa: S311  only spreads load

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.declaration.name

    @property
    def kind(self) -> str:
        """`stream` or `table`."""
        return self.declaration.kind

    @property
    def schema(self) -> Schema:
        """The topic's columns."""
        return self.declaration.schema

    @property
    def key(self) -> tuple[str, ...]:
        """The key's columns; empty if there is no key."""
        return self.declaration.key

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return self.declaration.partitions

    @property
    def durability(self) -> str:
        """`fsync` or `none`."""
        return self.declaration.durability

    # -- writing

    def store(
        self, checked: Checked, operation: str, *, producer: str | None = None, sequence: int | None = None
    ) -> Position:
        """Append checked rows; bad ones are refused or set aside as the topic was declared."""
        self.check_current()
        check_producer(self.name, producer, sequence)
        origin = operation if producer is None else f"{operation} by {producer}, sequence {sequence}"
        aside = self.set_aside(checked.bad, origin)
        parts = self.divide(checked.batch, operation, producer=producer, sequence=sequence)
        return self.log.append(self.name, parts, producer=producer, sequence=sequence, aside=aside)

    def set_aside(self, bad: tuple[BadRow, ...], origin: str) -> tuple[str, Parts] | None:
        """The dead letters for bad rows, with their topic; raises the first instead if they are refused."""
        if not bad:
            return None
        if self.declaration.on_error == "refuse":
            first = bad[0]
            others = f"; {len(bad) - 1} more rows are bad" if len(bad) > 1 else ""
            raise SchemaError(
                first.reason + others,
                row=first.row,
                column=first.column,
                where=self.name,
                hint="nothing of this batch was stored",
            )
        letters = self.declaration.dead_letters()
        if self._open_letters is not None:
            self._open_letters(letters)
        columns = [
            pa.array([OPERATIONS.index("append")] * len(bad), pa.int8()),
            pa.array([row.reason for row in bad], pa.string()),
            pa.array([row.column for row in bad], pa.string()),
            pa.array([row.raw for row in bad], pa.string()),
            pa.array([origin] * len(bad), pa.string()),
        ]
        return letters.name, {0: pa.RecordBatch.from_arrays(columns, schema=letters.stored_schema)}

    def divide(
        self, batch: pa.RecordBatch, operation: str, *, producer: str | None = None, sequence: int | None = None
    ) -> Parts:
        """The rows by partition, in order, each with what was done to it."""
        if batch.num_rows == 0:
            return {}
        operations = _repeated(OPERATIONS.index(operation), batch.num_rows)
        stored = pa.RecordBatch.from_arrays([operations, *batch.columns], schema=self._stored_schema)
        if self.partitions == 1:
            return {0: stored}
        hashed = list(self.key) or (list(self.schema.names) if self.kind == "table" else [])
        if not hashed:
            start = next(self._turn) if producer is None else xxh64_intdigest(producer.encode()) + (sequence or 0)
            return {start % self.partitions: stored}
        chosen = hash_rows([batch.column(name) for name in hashed]) % self.partitions
        return {
            int(number): stored.take(pa.array(np.flatnonzero(chosen == number))) for number in np.unique(chosen)
        }

    def check_current(self) -> None:
        """An error if the topic was dropped, and perhaps declared anew, since this object was made."""
        if self.log.number(self.name) != self.number:
            msg = "the topic was dropped and declared anew"
            raise HeadwaterError(msg, where=self.name, hint="use what the new declaration returned")

    # -- reading

    def tail(self, *, since: Position | str | None = None, follow: bool = False) -> Iterator[pa.Table]:
        """The records straight from the log, in the order of each partition, from the beginning or a position.

        Columns as in `<topic>__log`. With `follow` it goes on for ever, waiting for news.
        """
        if not isinstance(follow, bool):
            msg = f"follow is {follow!r}"
            raise HeadwaterError(msg, where=self.name, hint="it is True or False")
        starts = dict.fromkeys(range(self.partitions), 0)
        return self._tail(starts | self._starting_at(since, starts), follow=follow)

    def _tail(self, nexts: dict[int, int], *, follow: bool) -> Iterator[pa.Table]:
        if not follow:
            yield from self._read(nexts)
            return
        news = self.log.watch([self.name])
        try:
            while True:
                yield from self._read(nexts)
                news.wait(_NEWS_TIMEOUT)
        finally:
            news.close()

    def _starting_at(self, since: Position | str | None, starts: Collection[int]) -> dict[int, int]:
        if since is None:
            return {}
        if isinstance(since, str):
            since = Position.parse(since)
        if not isinstance(since, Position):
            msg = f"since is {since!r}"
            raise HeadwaterError(msg, where=self.name, hint="give a position that an append returned, or its text")
        if since.ends and self.name not in since.topics:
            msg = f"the position {since} says nothing about this topic"
            raise HeadwaterError(msg, where=self.name, hint="give one that an append to it returned")
        ends = since.in_topic(self.name)
        if unknown := ends.keys() - starts:
            msg = f"there is no partition {min(unknown)}, which the position {since} speaks of"
            raise HeadwaterError(msg, where=self.name, hint="give one that an append to it returned")
        return ends

    def _read(self, nexts: dict[int, int]) -> Iterator[pa.Table]:
        """What there is now, moving `nexts` on. A cut keeps batches and transactions whole over all partitions."""
        self.check_current()
        after = Cut(0, {(self.name, number): start for number, start in nexts.items()})
        cut = self.log.cut([self.name], after=after)
        topic = self if self._newest is None else self._newest(self.name)  # whatever is in the cut, it knows of
        columns = topic.declaration.stored_schema
        for number, start in list(nexts.items()):
            for records in self.log.read(self.name, number, start, cut.end(self.name, number), columns=columns):
                nexts[number] = records.end
                yield as_log_table(records, topic.schema)

    def log_schema(self) -> pa.Schema:
        """The columns that `tail` gives."""
        return log_schema(self.schema)

    def size(self) -> TopicSize:
        """How many records and bytes the topic has."""
        return self.log.size(self.name)

    def verify(self) -> None:
        """Read the whole topic; `LogDamaged` if anything that was stored is missing or changed."""
        self.log.verify(self.name)
