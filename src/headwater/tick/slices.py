"""Slices: parts of a change that any worker can load by itself, from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.shape import shaped
from headwater.change.weights import negated
from headwater.log import LogSlice
from headwater.state.arrangement import Arrangement
from headwater.state.files import StateFiles
from headwater.state.open_run import open_run
from headwater.state.run import HIGHEST, LOWEST, Run
from headwater.tick.relations import as_rows

SLICE_ROWS = 250_000
ROW_BYTES = 1 << 10
"""A row that is larger counts as several, wherever it is decided how many go together."""


class Slice(Protocol):
    """Rows with `_weight`, the same each time they are loaded."""

    @property
    def rows(self) -> int:
        """About how many rows it has, where a large one counts as several."""
        ...

    def load(self) -> pa.Table:
        """The rows."""
        ...


@dataclass(frozen=True)
class ArrangedSlice:
    """The rows of an arrangement in a range of hashes."""

    files: StateFiles
    schema: pa.Schema
    runs: tuple[Run, ...]
    low: int
    high: int
    rows: int

    def load(self) -> pa.Table:
        """The consolidated rows."""
        arrangement = Arrangement(self.files, self.schema, self.runs)
        tables = list(arrangement.scan(self.low, self.high))
        return (pa.concat_tables(tables) if tables else self.schema.empty_table()).drop_columns([HASH])


@dataclass(frozen=True)
class RecordedSlice:
    """Records of a stream, or of a topic's log."""

    kind: str
    schema: pa.Schema
    of: tuple[LogSlice, ...]
    rows: int

    def load(self) -> pa.Table:
        """Each record as a row."""
        return as_rows(self.kind, self.schema, [records for each in self.of for records in each.read()])


@dataclass(frozen=True)
class SpooledSlice:
    """All rows of one run that a stage left for the next."""

    files: StateFiles
    schema: pa.Schema
    run: Run

    @property
    def rows(self) -> int:
        """Its rows, where a large one counts as several."""
        return counted([self.run])

    def load(self) -> pa.Table:
        """The rows without their hash."""
        opened = open_run(self.files, self.run, self.schema)
        return opened.slice(0, self.run.rows).drop_columns([HASH])


@dataclass(frozen=True)
class RenamedSlice:
    """Columns of another slice under other names."""

    of: Slice
    columns: tuple[str, ...]
    schema: pa.Schema

    @property
    def rows(self) -> int:
        """As many as the other has."""
        return self.of.rows

    def load(self) -> pa.Table:
        """The columns and `_weight`."""
        wanted = self.schema.append(pa.field(WEIGHT, pa.int64()))
        return shaped(self.of.load().select([*self.columns, WEIGHT]), wanted)


@dataclass(frozen=True)
class NegatedSlice:
    """The rows of another slice, taken back."""

    of: Slice

    @property
    def rows(self) -> int:
        """As many as the other has."""
        return self.of.rows

    def load(self) -> pa.Table:
        """The rows with their weights turned around."""
        return negated(self.of.load())


def counted(runs: Iterable[Run]) -> int:
    """How many rows some runs have, where a large one counts as several."""
    return sum(max(run.rows, run.bytes // ROW_BYTES) for run in runs)


def arranged_slices(arrangement: Arrangement, files: StateFiles) -> Iterator[ArrangedSlice]:
    """All of an arrangement in slices of about the same size."""
    low, times = LOWEST, max(1, counted(arrangement.runs) // max(1, arrangement.rows))
    while arrangement.runs and low <= HIGHEST:
        high = arrangement.reach(low, HIGHEST, max(1, SLICE_ROWS // times))
        rows = arrangement.count(low, high)
        runs = tuple(run for run in arrangement.runs if run.low <= high and run.high >= low)
        if rows:
            yield ArrangedSlice(files, arrangement.schema, runs, low, high, times * rows)
        low = high + 1


def recorded_slices(
    kind: str, schema: pa.Schema, recorded: Sequence[LogSlice], rows: int
) -> Iterator[RecordedSlice]:
    """Slices of the log, with about `rows` records, several to one."""
    total = sum(each.bytes for each in recorded) or 1
    rows = max(rows, total // ROW_BYTES)
    waiting: list[LogSlice] = []
    size = 0
    for each in recorded:
        waiting.append(each)
        size += each.bytes
        if size * rows >= SLICE_ROWS * total:
            yield RecordedSlice(kind, schema, tuple(waiting), max(1, size * rows // total))
            waiting, size = [], 0
    if waiting:
        yield RecordedSlice(kind, schema, tuple(waiting), max(1, size * rows // total))
