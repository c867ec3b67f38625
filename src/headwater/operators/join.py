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

Pairs = tuple[Codes, Codes]


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
        left_rows, right_rows = _matches(left, right, left_key, right_key)
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


def _matches(left: pa.Table, right: pa.Table, left_key: Sequence[str], right_key: Sequence[str]) -> Pairs:
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


def _by_hash(table: pa.Table) -> Pairs:
    """The order of a table by hash, and the hashes so: it is made of parts that have it."""
    hashes = table.column(HASH).to_numpy()
    if bool(np.all(hashes[1:] >= hashes[:-1])):
        return np.arange(len(hashes)), hashes
    order = np.argsort(hashes, kind="stable")
    return order, hashes[order]
