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
from headwater.operators.keys import Codes, codes
from headwater.state.arrangement import Arrangement


class Side(NamedTuple):
    """One side of a join: its change, with `_hash` and without null keys, its rows before the tick, its key."""

    change: pa.Table
    old: Arrangement
    key: Sequence[str]


def join(left: Side, right: Side, output: pa.Schema) -> tuple[pa.Table, int]:
    """The change of the join, with the columns of `output` and `_weight`, and the number of state rows read."""
    right_old = _probed(right.old, left.change)
    left_old = _probed(left.old, right.change)
    right_new = pa.concat_tables([right_old, right.change.select(right.old.schema.names)])
    parts = [
        _pairs(left.change, right_new, left.key, right.key, output),
        _pairs(left_old, right.change, left.key, right.key, output),
    ]
    return pa.concat_tables(parts), right_old.num_rows + left_old.num_rows


def _probed(old: Arrangement, change: pa.Table) -> pa.Table:
    return old.probe(change.column(HASH).to_numpy()) if change.num_rows else old.schema.empty_table()


def _pairs(
    left: pa.Table, right: pa.Table, left_key: Sequence[str], right_key: Sequence[str], output: pa.Schema
) -> pa.Table:
    if left_key:
        left_rows, right_rows = _matches(
            [left.column(name) for name in left_key], [right.column(name) for name in right_key]
        )
    else:
        left_rows = np.repeat(np.arange(left.num_rows), right.num_rows)
        right_rows = np.tile(np.arange(right.num_rows), left.num_rows)
    weights = left.column(WEIGHT).to_numpy()[left_rows] * right.column(WEIGHT).to_numpy()[right_rows]
    left_indices, right_indices = pa.array(left_rows), pa.array(right_rows)
    columns = [
        left.column(name).take(left_indices)
        if name in left.column_names
        else right.column(name).take(right_indices)
        for name in output.names
    ]
    schema = output.append(pa.field(WEIGHT, pa.int64()))
    return pa.Table.from_arrays([*columns, pa.array(weights)], schema=schema)


def _matches(left: list[pa.ChunkedArray], right: list[pa.ChunkedArray]) -> tuple[Codes, Codes]:
    """The positions of all pairs of rows with the same key."""
    if not len(left[0]) or not len(right[0]):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    left_codes, right_codes = codes([left, right])
    order = np.argsort(right_codes, kind="stable")
    ordered = right_codes[order]
    first = np.searchsorted(ordered, left_codes, side="left")
    counts = np.searchsorted(ordered, left_codes, side="right") - first
    left_rows = np.repeat(np.arange(len(left_codes)), counts)
    within = np.arange(len(left_rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return left_rows, order[np.repeat(first, counts) + within]
