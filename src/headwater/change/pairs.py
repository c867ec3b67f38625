"""Pairs of rows of two tables, in blocks of bounded size; a column is put together when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.change import WEIGHT
from headwater.change.gather import gather
from headwater.change.keys import Codes, same_keys
from headwater.memory import check_fits

BLOCK_BYTES = 128 << 20
"""About how large a block of pairs is, with all columns."""
_PLACES = 16
"""Bytes that the places of the rows of a pair take."""


class Pairs:
    """Rows of two tables, pair by pair; a column is put together when it is asked for.

    They have the columns of `schema`, the last of which is `_weight`, the product of both.
    """

    def __init__(
        self, left: pa.Table, left_rows: Codes, right: pa.Table, right_rows: Codes, schema: pa.Schema
    ) -> None:
        self.schema = schema
        self._sides = (left, left_rows), (right, right_rows)

    @property
    def num_rows(self) -> int:
        """How many pairs there are."""
        return len(self._sides[0][1])

    @property
    def left_rows(self) -> Codes:
        """Which row of the left table each pair has."""
        return self._sides[0][1]

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of either side."""
        if name == WEIGHT:
            one, other = (table.column(WEIGHT).to_numpy()[rows] for table, rows in self._sides)
            return pa.chunked_array([pa.array(one * other)])
        table, rows = self._sides[0] if name in self._sides[0][0].column_names else self._sides[1]
        return gather(table.select([name]), rows).column(0)

    def select(self, names: Sequence[str]) -> pa.Table:
        """Some columns as a table."""
        fields = [self.schema.field(name) for name in names]
        return pa.Table.from_arrays([self.column(name) for name in names], schema=pa.schema(fields))

    def table(self) -> pa.Table:
        """All columns as a table."""
        return self.select(self.schema.names)

    def take(self, places: pa.Array | pa.ChunkedArray) -> Pairs:
        """The pairs at some places."""
        return self._at(places.to_numpy())

    def slice(self, start: int, count: int | None = None) -> Pairs:
        """So many pairs from one on, or all from there."""
        return self._at(np.arange(self.num_rows)[start : None if count is None else start + count])

    def filter(self, mask: pa.ChunkedArray) -> Pairs:
        """The pairs for which something is true."""
        return self._at(np.flatnonzero(mask.to_numpy()))

    def _at(self, places: Codes) -> Pairs:
        (left, left_rows), (right, right_rows) = self._sides
        return Pairs(left, left_rows[places], right, right_rows[places], self.schema)


class Stretches(NamedTuple):
    """Which rows of two tables may be pairs.

    Each of `rows` of the left one, where a row may be several times, goes with `counts` rows of the right one that
    follow one another, from `first` on, in an `order` of it.
    """

    rows: Codes
    first: Codes
    counts: Codes
    order: Codes


class PairBlocks:
    """Pairs of rows in blocks of about `BLOCK_BYTES`; each is made when it is reached, so that one is in memory.

    Of rows that may be pairs those are left out whose keys, columns of either table, differ. Pure data: it can be
    gone through more than once.
    """

    def __init__(
        self,
        left: pa.Table,
        right: pa.Table,
        stretches: Stretches,
        keys: Sequence[Sequence[str]],
        schema: pa.Schema,
    ) -> None:
        self.schema = schema
        self._left, self._right = left, right
        self._stretches = stretches
        self._keys = [list(key) for key in keys]
        self._ends = np.cumsum(stretches.counts)

    @property
    def most(self) -> int:
        """How many pairs there are at most."""
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def is_large(self) -> bool:
        """Whether it is more than one block."""
        return self.most > self._step

    @property
    def _pair_bytes(self) -> float:
        sizes: list[float] = [side.nbytes / max(side.num_rows, 1) for side in (self._left, self._right)]
        return _PLACES + sum(sizes)

    @property
    def _step(self) -> int:
        return max(1, int(BLOCK_BYTES / self._pair_bytes))

    def __iter__(self) -> Iterator[Pairs]:
        """At least one block, if maybe of no pairs."""
        step = self._step
        for start in range(0, max(1, self.most), step):
            yield self.block(start, min(self.most, start + step))

    def block(self, start: int, end: int) -> Pairs:
        """Those with the numbers from `start` to before `end`."""
        first = int(np.searchsorted(self._ends, start, side="right"))
        last = int(np.searchsorted(self._ends, end)) + 1
        ends, counts = self._ends[first:last], self._stretches.counts[first:last]
        begins = np.maximum(ends - counts, start)
        lengths = np.minimum(ends, end) - begins
        places = self._stretches.first[first:last] + begins - (ends - counts)
        left = np.repeat(self._stretches.rows[first:last], lengths)
        within = np.arange(len(left)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        right = self._stretches.order[np.repeat(places, lengths) + within]
        if self._keys[0]:
            one, other = self._left.select(self._keys[0]), self._right.select(self._keys[1])
            same = same_keys(one, left, other, right)
            if not same.all():
                left, right = left[same], right[same]
        return Pairs(self._left, left, self._right, right, self.schema)

    def table(self) -> pa.Table:
        """All pairs as one table; an error before they are made if that is more than there is memory for."""
        if self.is_large:
            what = f"{self.most:,} pairs of {self._left.num_rows:,} and {self._right.num_rows:,} rows"
            check_fits(int(self.most * self._pair_bytes), what)
        return pa.concat_tables([block.table() for block in self])
