"""Columns in fewer bytes: whole numbers, decimals and dates as the smallest integers that hold what is there.

State is looked up all over, so what a lookup costs follows from the pages that it has, and merging from its bytes.
A packed stream says in its schema what its columns are. `_hash` is never packed: it is what is searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from headwater.change import HASH
from headwater.change.bits import decimal_halves

_ROWS = 4096
"""As long as there are fewer at a time, they are not packed."""
_UNPACKED = b"unpacked"
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


class Packing:
    """Packs tables of one schema, one after the other, from the first on that is not small.

    `schema` is that of the last one: from then on columns may become wider, and never narrower.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = self._unpacked = schema
        self._least = schema.types
        self._packs = False

    def pack(self, table: pa.Table) -> pa.Table:
        """The table in as few bytes as it, and those before it, can be had."""
        if not self._packs and table.num_rows >= _ROWS:
            self._packs = True
            self._least = [_INTEGERS[0] if _can_be(field) else field.type for field in self._unpacked]
        columns = list(map(_packed, table.columns, self._least))
        types = [column.type for column in columns]
        if types != self.schema.types:
            fields = map(pa.Field.with_type, self._unpacked, types)
            self.schema = pa.schema(fields, {_UNPACKED: self._unpacked.serialize().to_pybytes()})
        self._least = types
        return pa.Table.from_arrays(columns, schema=self.schema)


def unpacked_schema(schema: pa.Schema) -> pa.Schema:
    """What the columns of a stream are, packed or not; ValueError if they cannot be that."""
    said = (schema.metadata or {}).get(_UNPACKED)
    if said is None:
        return schema
    found = pa.ipc.read_schema(pa.py_buffer(said))
    fits = map(_is_packed, schema, found) if len(schema) == len(found) else [False]
    if not all(fits):
        msg = "packed columns are not what they are said to be"
        raise ValueError(msg)
    return found


def _is_packed(field: pa.Field, unpacked: pa.Field) -> bool:
    """Whether a column is another one, packed or as it is."""
    narrower = field.type in _INTEGERS and _can_be(unpacked) and field.type.bit_width < unpacked.type.bit_width
    return field.name == unpacked.name and (field.type == unpacked.type or narrower)


def unpacked(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The rows of batches that may be packed in several ways."""
    tables = []
    for _, alike in groupby(batches, key=lambda batch: batch.schema):
        table = pa.Table.from_batches(list(alike))
        columns = list(map(_unpacked, table.columns, schema.types))
        tables.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _can_be(field: pa.Field) -> bool:
    given = field.type
    is_whole = arrow_types.is_signed_integer(given) and given != _INTEGERS[0]
    is_other = arrow_types.is_decimal128(given) or arrow_types.is_date32(given)
    return bool(field.name != HASH and (is_whole or is_other))


def _packed(column: pa.ChunkedArray, least: pa.DataType) -> pa.ChunkedArray:
    """The column as integers, of this type or a wider one; as it is, if that saves nothing."""
    given = column.type
    if given == least:
        return column
    chunks = list(map(_whole, column.chunks))
    if any(chunk is None for chunk in chunks):
        return column
    numbers = pa.chunked_array(chunks) if chunks else pa.chunked_array([], _INTEGERS[0])
    bounds = pc.min_max(numbers).as_py()
    low, high = bounds["min"] or 0, bounds["max"] or 0
    for kind in _INTEGERS:
        bits = kind.bit_width
        if least.bit_width <= bits < given.bit_width and -(1 << bits - 1) <= low and high < 1 << bits - 1:
            return numbers.cast(kind)
    return column


def _whole(column: pa.Array) -> pa.Array | None:
    """The values as integers; None if they have more than 64 bits."""
    if arrow_types.is_date32(column.type):
        return column.view(pa.int32())
    if not arrow_types.is_decimal128(column.type):
        return column
    low, high = decimal_halves(column)
    nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    fits = high == low >> 63
    if not (fits if nulls is None else fits | nulls).all():
        return None
    return pa.array(low, mask=nulls)


def _unpacked(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | pa.Array:
    if column.type == wanted:
        return column
    numbers = column.combine_chunks()
    if arrow_types.is_date32(wanted):
        return numbers.cast(pa.int32()).view(wanted)
    if not arrow_types.is_decimal128(wanted):
        return numbers.cast(wanted)
    low = pc.fill_null(numbers, 0).to_numpy()
    halves = np.empty((len(low), 2), np.int64)
    halves[:, 0] = low
    halves[:, 1] = halves[:, 0] >> 63
    made = pa.Array.from_buffers(wanted, len(low), [None, pa.py_buffer(halves)])
    return pc.if_else(numbers.is_valid(), made, pa.scalar(None, wanted)) if numbers.null_count else made
