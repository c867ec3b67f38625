"""The algebra of changes: the same row twice is one row with both weights, and a row of weight 0 is none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.change import HASH, WEIGHT
from headwater.change.bits import bit_columns, fingerprints
from headwater.change.gather import Indices, gather, order_of

_SMALL = 16 << 20
_FEW = 4096

Mask = npt.NDArray[np.bool_]


def consolidate(table: pa.Table) -> pa.Table:
    """The same changes with each row once, none of weight 0, where each row stood first.

    Two rows are the same if all columns but `_weight` are the same bit by bit (see `bits`). If there is
    a `_hash` column, rows with different hashes are taken for different without looking. A table with nothing to
    do is returned as it is.
    """
    if not table.num_rows:
        return table
    suspects = _repeated(numbers(table, HASH)) if HASH in table.column_names else np.arange(table.num_rows)
    return _settle(table, suspects if len(suspects) > 1 else suspects[:0], None)


def combine(tables: Sequence[pa.Table], *, ordered: bool) -> pa.Table:
    """The consolidated sum of one or more tables that have a `_hash`; with `ordered`, in order of it.

    Each of the tables is consolidated, and in order of its hashes if that is asked for. Only rows whose hash is in
    more than one of them are looked at.
    """
    if len(tables) == 1:
        return tables[0]
    source = np.repeat(np.arange(len(tables)), [part.num_rows for part in tables])
    return settled(pa.concat_tables(tables), source, ordered=ordered)


def settled(table: pa.Table, source: Indices, *, ordered: bool) -> pa.Table:
    """The same for one table, not empty, if it is said from which of them each row is."""
    if bool(np.all(source == source[0])):
        return table
    if table.nbytes <= _SMALL:
        table = table.combine_chunks()  # faster to pick from
    hashes = numbers(table, HASH)
    order = order_of(hashes)
    suspects = np.sort(order[_contested(hashes[order], source[order])])
    return _settle(table, suspects, order if ordered else None)


def identical(one: pa.Table, other: pa.Table) -> Mask:
    """For each row, whether it is bit by bit the same in both tables, which have the same types and length."""
    same = np.ones(one.num_rows, dtype=np.bool_)
    for left, right in zip(bit_columns(one.columns), bit_columns(other.columns), strict=True):
        equal = pc.fill_null(pc.equal(left, right), fill_value=False)
        if left.null_count and right.null_count:
            equal = pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
        same &= equal.to_numpy()
    return same


def numbers(table: pa.Table, name: str) -> Indices:
    """An int64 column without nulls; no copy if it is in one chunk."""
    column = table.column(name)
    values: Indices = column.chunk(0).to_numpy() if column.num_chunks == 1 else column.to_numpy()
    return values


def _settle(table: pa.Table, suspects: Indices, order: Indices | None) -> pa.Table:
    """The table in that order, with the suspects, which ascend, consolidated among themselves."""
    weights = numbers(table, WEIGHT)
    kept = weights != 0
    changed = False
    if len(suspects) > _FEW and HASH in table.column_names:
        suspects = _alike(table, suspects)
    if len(suspects):
        firsts, sums = _sums(table, suspects)
        kept[suspects] = False
        kept[firsts] = sums != 0
        changed = bool((weights[firsts] != sums).any())
        if changed:
            weights = weights.copy()
            weights[firsts] = sums
    if order is not None or not kept.all():
        rows = np.flatnonzero(kept) if order is None else order[kept[order]]
        table, weights = gather(table, rows), weights[rows]
    if not changed:
        return table
    place = table.schema.get_field_index(WEIGHT)
    return table.set_column(place, table.schema.field(place), pa.array(weights))


def _alike(table: pa.Table, suspects: Indices) -> Indices:
    """The suspects without most of those that are like no other: under one hash there are often many rows."""
    rows = gather(table, suspects) if len(suspects) < table.num_rows else table
    columns = bit_columns(rows.drop_columns([WEIGHT]).columns)
    return suspects[_repeated(fingerprints(columns, numbers(rows, HASH)).view(np.int64))]


def _sums(table: pa.Table, suspects: Indices) -> tuple[Indices, Indices]:
    """Of each different row among the suspects the first position, and the sum of its weights."""
    if len(suspects) < table.num_rows:
        table = gather(table, suspects)
    weights = numbers(table, WEIGHT)
    columns = bit_columns(table.drop_columns([WEIGHT]).columns)
    if not columns:
        return suspects[:1], weights.sum(keepdims=True)
    names = [str(number) for number in range(len(columns))]
    keyed = pa.table([*columns, suspects, weights], names=[*names, "row", "weight"])
    grouped = keyed.group_by(names, use_threads=False).aggregate([("row", "min"), ("weight", "sum")])
    return numbers(grouped, "row_min"), numbers(grouped, "weight_sum")


def _repeated(hashes: Indices) -> Indices:
    """The positions whose hash is also at another position, ascending."""
    if bool(np.all(hashes[1:] > hashes[:-1])):
        return np.arange(0)
    order = order_of(hashes)
    sorted_hashes = hashes[order]
    as_before = np.concatenate([[False], sorted_hashes[1:] == sorted_hashes[:-1]])
    as_behind = np.concatenate([as_before[1:], [False]])
    return np.sort(order[as_before | as_behind])


def _contested(hashes: Indices, source: Indices) -> Mask:
    """Which of the sorted hashes come from more than one source."""
    begins = np.concatenate([[True], hashes[1:] != hashes[:-1]])
    firsts = np.flatnonzero(begins)
    several = np.minimum.reduceat(source, firsts) != np.maximum.reduceat(source, firsts)
    contested: Mask = several[np.cumsum(begins) - 1]
    return contested
