"""Pieces: parts of a change that any worker can load by itself, from files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.log.extent import Extent, read
from headwater.operators.table import negated
from headwater.state.arrangement import Arrangement
from headwater.state.open_run import open_run
from headwater.state.run import HIGHEST, LOWEST, Run
from headwater.state.shape import shaped
from headwater.tick.relations import as_rows

PIECE_ROWS = 250_000


class Piece(Protocol):
    """Rows with `_weight`, the same each time they are loaded."""

    @property
    def rows(self) -> int:
        """About how many rows it has."""
        ...

    def load(self) -> pa.Table:
        """The rows."""
        ...


@dataclass(frozen=True)
class Arranged:
    """The rows of an arrangement in a range of hashes."""

    folder: str
    schema: pa.Schema
    runs: tuple[Run, ...]
    low: int
    high: int
    rows: int

    def load(self) -> pa.Table:
        """The consolidated rows."""
        arrangement = Arrangement(self.folder, self.schema, self.runs)
        tables = list(arrangement.scan(self.low, self.high))
        return (pa.concat_tables(tables) if tables else self.schema.empty_table()).drop_columns([HASH])


@dataclass(frozen=True)
class Recorded:
    """Records of a stream, or of a topic's log."""

    kind: str
    schema: pa.Schema
    extents: tuple[Extent, ...]
    rows: int

    def load(self) -> pa.Table:
        """Each record as a row."""
        return as_rows(self.kind, self.schema, [records for extent in self.extents for records in read(extent)])


@dataclass(frozen=True)
class Spooled:
    """All rows of one run that a stage left for the next."""

    folder: str
    schema: pa.Schema
    run: Run

    @property
    def rows(self) -> int:
        """Its rows."""
        return self.run.rows

    def load(self) -> pa.Table:
        """The rows without their hash."""
        opened = open_run(self.folder, self.run, self.schema)
        return opened.slice(0, self.run.rows).drop_columns([HASH])


@dataclass(frozen=True)
class Renamed:
    """Columns of another piece under other names."""

    piece: Piece
    columns: tuple[str, ...]
    schema: pa.Schema

    @property
    def rows(self) -> int:
        """As many as the other has."""
        return self.piece.rows

    def load(self) -> pa.Table:
        """The columns and `_weight`."""
        wanted = self.schema.append(pa.field(WEIGHT, pa.int64()))
        return shaped(self.piece.load().select([*self.columns, WEIGHT]), wanted)


@dataclass(frozen=True)
class Negated:
    """The rows of another piece, taken back."""

    piece: Piece

    @property
    def rows(self) -> int:
        """As many as the other has."""
        return self.piece.rows

    def load(self) -> pa.Table:
        """The rows with their weights turned around."""
        return negated(self.piece.load())


def arranged_pieces(arrangement: Arrangement, folder: str) -> Iterator[Arranged]:
    """All of an arrangement in pieces of about the same size."""
    low = LOWEST
    while arrangement.runs and low <= HIGHEST:
        high = arrangement.reach(low, HIGHEST, PIECE_ROWS)
        rows = arrangement.count(low, high)
        runs = tuple(run for run in arrangement.runs if run.low <= high and run.high >= low)
        if rows:
            yield Arranged(folder, arrangement.schema, runs, low, high, rows)
        low = high + 1


def recorded_pieces(kind: str, schema: pa.Schema, extents: Sequence[Extent], rows: int) -> Iterator[Recorded]:
    """Extents of about `rows` records in pieces."""
    total = sum(extent.end - extent.start for extent in extents) or 1
    waiting: list[Extent] = []
    size = 0
    for extent in extents:
        waiting.append(extent)
        size += extent.end - extent.start
        if size * rows >= PIECE_ROWS * total:
            yield Recorded(kind, schema, tuple(waiting), max(1, size * rows // total))
            waiting, size = [], 0
    if waiting:
        yield Recorded(kind, schema, tuple(waiting), max(1, size * rows // total))
