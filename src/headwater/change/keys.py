"""Keys: which rows belong together, by SQL's equality with null as a value.

Key columns that reach this module compare by their bits, except that -0.0 is 0.0 and every NaN the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from headwater.change import HASH, WEIGHT
from headwater.change.bits import bit_columns
from headwater.change.columns import only_mark
from headwater.change.consolidate import identical
from headwater.change.hash import hash_rows

Codes = npt.NDArray[np.int64]
_NO_KEY = 42
_TOGETHER = 1 << 30
_COMPARED = 1 << 20
"""So many pairs of keys are compared at a time: of long texts, a column of all might not hold them."""


def hashes(table: pa.Table, key: Sequence[str]) -> Codes:
    """The hash of each row's key; the same for all if there is no key."""
    if not key:
        return np.full(table.num_rows, _NO_KEY, np.int64)
    if table.nbytes <= _TOGETHER:
        return hash_rows([_one_array(table.column(name)) for name in key])
    batches = table.select(list(key)).to_batches()  # together they might not fit into one array
    return np.concatenate([hash_rows(batch.columns) for batch in batches] or [np.zeros(0, np.int64)])


def with_hash(table: pa.Table, key: Sequence[str], *, matches: bool = False) -> pa.Table:
    """A change with the hash of its key, which goes before the weight.

    Where keys only `match` others, a row with a null in its key belongs to no other: it gets the hash of all of it,
    so that such rows are not all in one place.
    """
    place = table.schema.get_field_index(WEIGHT)
    found = hashes(table, key)
    if matches and any(table.column(name).null_count for name in key):
        columns = [name for name in table.column_names if name != WEIGHT]
        missing = np.any([table.column(name).is_null().to_numpy() for name in key], axis=0)
        found = np.where(missing, hashes(table, columns), found)
    return table.add_column(place, pa.field(HASH, pa.int64()), pa.array(found))


def hashed_schema(columns: pa.Schema) -> pa.Schema:
    """The columns of an arrangement of a relation with these columns."""
    own = [pa.field(HASH, pa.int64()), pa.field(WEIGHT, pa.int64())]
    return pa.schema([*columns, *own], only_mark(columns))


def without_nulls(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The rows that have no null in these columns."""
    valid = None
    for name in columns:
        column = table.column(name)
        if column.null_count:
            present = column.is_valid()
            valid = present if valid is None else pc.and_(valid, present)
    return table if valid is None else table.filter(valid)


def codes(keys: Sequence[Sequence[pa.ChunkedArray]], *, bitwise: bool = False) -> list[Codes]:
    """A number for each row of each table, the same exactly where the keys are the same. They begin at 0."""
    lengths = [len(columns[0]) if columns else 0 for columns in keys]
    parts = [
        pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)
        for columns in zip(*keys, strict=True)
    ]
    total = np.zeros(sum(lengths), np.int64)
    for column in bit_columns(parts if bitwise else [_normal(part) for part in parts]):
        encoded = _one_array(pc.dictionary_encode(column, null_encoding="encode"))
        indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        total = _dense(pa.array(total * len(encoded.dictionary) + indices)) if total.any() else indices
    return np.split(total, np.cumsum(lengths)[:-1])


def grouped(tables: Sequence[pa.Table], key: Sequence[str]) -> list[Codes]:
    """The same as `codes` for a key of tables that have its `_hash`: quicker, if the key is of several columns."""
    parts = [table.select(list(key)) for table in tables]
    if len(bit_columns(parts[0].slice(0, 0).columns)) > 1:
        hashed = pa.chunked_array([chunk for table in tables for chunk in table.column(HASH).chunks], pa.int64())
        numbers = _dense(hashed)
        first = np.zeros(numbers.max(initial=-1) + 1, np.int64)
        first[numbers[::-1]] = np.arange(len(numbers))[::-1]
        whole = pa.concat_tables(parts)
        if same_keys(whole, np.arange(len(numbers)), whole, first[numbers]).all():  # else some hashes are the same
            return np.split(numbers, np.cumsum([table.num_rows for table in tables])[:-1])
    return codes([part.columns for part in parts])


def same_keys(one: pa.Table, rows: Codes, other: pa.Table, others: Codes) -> npt.NDArray[np.bool_]:
    """For each pair of rows of two tables, whether the keys, which are all their columns, are the same."""

    def picked(table: pa.Table, places: Codes) -> pa.Table:
        columns = [_normal(column).take(pa.array(places)) for column in table.columns]
        return pa.table(columns, names=[str(number) for number in range(len(columns))])

    parts = [slice(start, start + _COMPARED) for start in range(0, len(rows), _COMPARED)] or [slice(0)]
    return np.concatenate([identical(picked(one, rows[part]), picked(other, others[part])) for part in parts])


def _dense(numbers: pa.Array | pa.ChunkedArray) -> Codes:
    encoded = _one_array(pc.dictionary_encode(numbers))
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)


def _normal(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.add(column, pa.scalar(0.0, column.type)) if arrow_types.is_floating(column.type) else column


def _one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
