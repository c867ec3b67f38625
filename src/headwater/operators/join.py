"""The bilinear operator: pairs of rows with equal keys, or all pairs if there are no keys.

With A and B the sides before the tick, a and b their changes and B' = B + b, the change of A ⋈ B is
a ⋈ B' + A ⋈ b. Only the keys in a and b are looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.operators.keys import Codes, same_keys
from headwater.state.arrangement import Arrangement
from headwater.state.gather import order_of

Places = tuple[Codes, Codes]


class Side(NamedTuple):
    """One side of a join: its change, with `_hash` and without null keys, its rows before the tick, its key."""

    change: pa.Table
    old: Arrangement
    key: Sequence[str]


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

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of either side."""
        if name == WEIGHT:
            one, other = (table.column(WEIGHT).to_numpy()[rows] for table, rows in self._sides)
            return pa.chunked_array([pa.array(one * other)])
        table, rows = self._sides[0] if name in self._sides[0][0].column_names else self._sides[1]
        return table.column(name).take(pa.array(rows))

    def select(self, names: Sequence[str]) -> pa.Table:
        """Some columns as a table."""
        fields = [self.schema.field(name) for name in names]
        return pa.Table.from_arrays([self.column(name) for name in names], schema=pa.schema(fields))

    def table(self) -> pa.Table:
        """All columns as a table."""
        return self.select(self.schema.names)

    def take(self, places: pa.Array | pa.ChunkedArray) -> Pairs:
        """The pairs at some places."""
        (left, left_rows), (right, right_rows) = self._sides
        chosen = places.to_numpy()
        return Pairs(left, left_rows[chosen], right, right_rows[chosen], self.schema)

    def filter(self, mask: pa.ChunkedArray) -> Pairs:
        """The pairs for which something is true."""
        return self.take(pa.array(np.flatnonzero(mask.to_numpy())))


def join(left: Side, right: Side, output: pa.Schema) -> tuple[list[Pairs], int]:
    """The change of the join, with the columns of `output`, in parts, and the number of state rows read."""
    schema = output.append(pa.field(WEIGHT, pa.int64()))
    right_old = _probed(right.old, left.change)
    left_old = _probed(left.old, right.change)
    right_new = pa.concat_tables([right_old, right.change.select(right.old.schema.names)])
    keys = (left.key, right.key)
    parts = [_paired(left.change, right_new, keys, schema), _paired(left_old, right.change, keys, schema)]
    return parts, right_old.num_rows + left_old.num_rows


def _probed(old: Arrangement, change: pa.Table) -> pa.Table:
    return old.probe(change.column(HASH).to_numpy()) if change.num_rows else old.schema.empty_table()


def _paired(left: pa.Table, right: pa.Table, keys: Sequence[Sequence[str]], schema: pa.Schema) -> Pairs:
    if keys[0]:
        left_rows, right_rows = _matches(left, right, *keys)
    else:
        left_rows = np.repeat(np.arange(left.num_rows), right.num_rows)
        right_rows = np.tile(np.arange(right.num_rows), left.num_rows)
    return Pairs(left, left_rows, right, right_rows, schema)


def _matches(left: pa.Table, right: pa.Table, left_key: Sequence[str], right_key: Sequence[str]) -> Places:
    """The positions of all pairs of rows with the same key: those with the same hash, which others may have too."""
    left_order, left_hashes = _by_hash(left)
    right_order, right_hashes = _by_hash(right)
    first = np.searchsorted(right_hashes, left_hashes, side="left")
    counts = np.searchsorted(right_hashes, left_hashes, side="right") - first
    left_rows = np.repeat(left_order, counts)
    within = np.arange(len(left_rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    right_rows = right_order[np.repeat(first, counts) + within]
    same = same_keys(left.select(list(left_key)), left_rows, right.select(list(right_key)), right_rows)
    return (left_rows, right_rows) if same.all() else (left_rows[same], right_rows[same])


def _by_hash(table: pa.Table) -> Places:
    """The order of a table by hash, and the hashes so: it is made of parts that have it."""
    hashes = table.column(HASH).to_numpy()
    order = order_of(hashes)
    return order, hashes[order]
