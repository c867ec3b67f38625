"""Ledger: what a run tried and what the log promised, to be held against what a log shows afterwards.

Every row has an id of its own. Moments are counts of recorded events, so `until` can tell what was promised before
a power cut at any of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa

from headwater.log import Cut, EmbeddedLog, TopicLog
from headwater.position import Position
from headwater.store import Store

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
Place = tuple[str, int]
Visible = dict[Place, list[tuple[int, int]]]
"""Offset and id of each record that a log shows."""


def text_of(row: int) -> str:
    return f"{row}:" + "x" * (row * 37 % 90)


def batch_of(rows: Iterable[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": row, "text": text_of(row)} for row in rows], schema=SCHEMA)


@dataclass(frozen=True)
class Operation:
    """One append or transaction. `refused`: the caller was told that nothing of it is stored."""

    name: str
    rows: Mapping[Place, tuple[int, ...]]
    boot: int
    begun: int
    acknowledged: int | None = None
    position: Position | None = None
    producer: str | None = None
    sequence: int | None = None
    keeps: bool = False
    refused: bool = False

    def offsets(self) -> dict[int, tuple[Place, int]]:
        """Where its position says that its rows are."""
        assert self.position is not None
        found: dict[int, tuple[Place, int]] = {}
        for topic, partition, end in self.position.ends:
            rows = self.rows.get((topic, partition), ())
            found |= {row: ((topic, partition), end - len(rows) + i) for i, row in enumerate(rows)}
        return found


@dataclass(frozen=True)
class Tick:
    """A committed cut, with all that could be read below its ends."""

    at: int
    cut: Cut
    content: Visible


@dataclass
class Ledger:
    topics: tuple[TopicLog, ...]
    operations: list[Operation] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    seen: list[tuple[int, Place, int, int]] = field(default_factory=list)
    """Moment, place, offset and id of records that a reader got."""
    trims: list[tuple[int, Place, int]] = field(default_factory=list)
    sequences: list[tuple[int, int]] = field(default_factory=list)
    """Moment and pipeline-wide sequence of records and cuts that someone got."""
    next_row: int = 1

    def until(self, moment: int) -> Ledger:
        """What was tried and promised up to a moment, as seen from after it."""
        return Ledger(
            self.topics,
            [
                dataclasses.replace(o, begun=0, acknowledged=0)
                if o.acknowledged is not None and o.acknowledged <= moment
                else dataclasses.replace(o, begun=0, acknowledged=None, position=None, refused=False)
                for o in self.operations
                if o.begun <= moment and not o.refused
            ]
            + [dataclasses.replace(o, begun=0) for o in self.operations if o.refused and o.begun <= moment],
            [dataclasses.replace(tick, at=0) for tick in self.ticks if tick.at <= moment],
            [(0, *seen) for at, *seen in self.seen if at <= moment],  # type: ignore[misc]
            [(0, place, before) for at, place, before in self.trims if at <= moment],
            [(0, number) for at, number in self.sequences if at <= moment],
            self.next_row,
        )

    def promises(self) -> tuple[object, ...]:
        """Equal for two moments with the same promises."""
        acknowledged = tuple(operation.acknowledged for operation in self.operations)
        return acknowledged, len(self.ticks), len(self.seen), len(self.trims)

    def places(self, *, durable: bool | None = None) -> list[Place]:
        return [
            (topic.name, number)
            for topic in self.topics
            if durable is None or topic.durable == durable
            for number in range(topic.partitions)
        ]

    def highest_sequence(self) -> int:
        return max((number for _, number in self.sequences), default=0)


def visible(log: EmbeddedLog, places: Iterable[Place]) -> Visible:
    """All that a log shows; each row must be the one that was appended."""
    found: Visible = {}
    for place in places:
        found[place] = []
        last = 0
        for records in log.read(*place, 0):
            assert records.sequence >= last, f"the sequence went down from {last} in {place}"
            last = records.sequence
            rows = records.batch.to_pylist()
            assert all(row["text"] == text_of(row["id"]) for row in rows), f"a changed row in {place}"
            found[place] += [(records.offset + i, row["id"]) for i, row in enumerate(rows)]
    return found


class Promises:
    """The check of one log against a ledger; each method raises AssertionError with the promise that was broken."""

    def __init__(self, ledger: Ledger, log: EmbeddedLog, store: Store) -> None:
        self._ledger = ledger
        self._store = store
        self._durable = set(ledger.places(durable=True))
        self.starts = {place: log.start(*place) for place in ledger.places()}
        self.visible = visible(log, ledger.places())
        self.where = {row: (place, at) for place, found in self.visible.items() for at, row in found}

    def check(self) -> None:
        self.check_order()
        self.check_operations()
        self.check_readers()
        self.check_ticks()
        self.check_starts()
        for place in self._ledger.places(durable=False):
            self.check_prefix(place)

    def check_order(self) -> None:
        for place, found in self.visible.items():
            assert all(a < b for (a, _), (b, _) in pairwise(found)), f"offsets do not increase in {place}: {found}"
        assert len(self.where) == sum(map(len, self.visible.values())), f"a row is there twice: {self.visible}"
        known = {row for o in self._ledger.operations for rows in o.rows.values() for row in rows}
        assert known.issuperset(self.where), f"rows that nobody appended: {set(self.where) - known}"

    def check_operations(self) -> None:
        for operation in self._ledger.operations:
            lasting = [p for p in operation.rows if p in self._durable or operation.keeps]
            rows = [row for place in lasting for row in operation.rows[place]]
            there = [row for row in rows if row in self.where]
            if operation.refused:
                assert not there, f"{operation.name} was refused, but {there} are there"
            elif operation.acknowledged is None:
                assert there in ([], rows), f"{operation.name} is half there: {there} of {rows}"
            else:
                self._check_acknowledged(operation, rows)
            if operation.keeps and not any(self.starts.values()):
                kept = self._store.kept(operation.name) is not None
                assert bool(there) == kept, f"{operation.name} has {there}, and it is {kept} that it kept a value"

    def _check_acknowledged(self, operation: Operation, rows: list[int]) -> None:
        promised = operation.offsets()
        for row in rows:
            place, offset = promised[row]
            if offset >= self.starts[place]:
                assert self.where.get(row) == (place, offset), (
                    f"{operation.name} was acknowledged: row {row} at {place} {offset}, found {self.where.get(row)}"
                )

    def check_readers(self) -> None:
        for _, place, offset, row in self._ledger.seen:
            shown = dict(self.visible[place])
            if place in self._durable and offset >= self.starts[place]:
                assert shown.get(offset) == row, f"a reader got row {row} at {place} {offset}; it is gone"
            assert shown.get(offset, row) == row, f"offset {offset} of {place} was used twice"

    def check_ticks(self) -> None:
        last = self._store.last_tick()
        assert (last.number if last else 0) >= len(self._ledger.ticks), "a committed tick is gone"
        for number, tick in enumerate(self._ledger.ticks, start=1):
            stored = self._store.tick(number)
            assert stored is not None
            assert stored.cut == tick.cut.as_dict()
            for place, end in tick.cut.ends.items():
                start = self.starts[place]
                expected = [(offset, row) for offset, row in tick.content[place] if offset >= start]
                found = [(offset, row) for offset, row in self.visible[place] if start <= offset < end]
                assert found == expected, f"the cut of tick {number} changed in {place}: {expected} is now {found}"

    def check_starts(self) -> None:
        for place, start in self.starts.items():
            asked = max((before for _, where, before in self._ledger.trims if where == place), default=0)
            assert start <= asked, f"{place} begins at {start}, though only {asked} was trimmed"

    def check_prefix(self, place: Place) -> None:
        """Without fsync records may be lost, but of those of one boot only the last ones."""
        for boot in {operation.boot for operation in self._ledger.operations}:
            operations = [o for o in self._ledger.operations if o.boot == boot and o.acknowledged is not None]
            appended = [row for o in operations for row in o.rows.get(place, ())]
            found = [row for _, row in self.visible[place] if row in appended]
            assert found == appended[: len(found)], f"{place} lost records from its middle: {found} of {appended}"
