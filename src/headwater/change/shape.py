"""Tables in exactly the types that are expected."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as arrow_types

from headwater.change.hash import compact


def shaped(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns, by position, with these names and types: whether inner fields may be null often differs."""
    columns = [
        column if column.type == field.type else _typed_chunks(column, field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _typed_chunks(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([typed(chunk, wanted) for chunk in column.chunks], type=wanted)


def typed(array: pa.Array, wanted: pa.DataType, *, safe: bool = True) -> pa.Array:
    """The array in another type; Arrow's own cast refuses a null struct whose fields may not be null.

    If it need not be `safe`, numbers are rounded where the type has not all of their digits.
    """
    given = array.type
    if given == wanted:
        return array
    if arrow_types.is_struct(given) and arrow_types.is_struct(wanted) and given.num_fields == wanted.num_fields > 0:
        parts = [typed(part, field.type, safe=safe) for part, field in zip(array.flatten(), wanted, strict=True)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=mask)
    if arrow_types.is_list(given) and arrow_types.is_list(wanted):
        lists = compact(array)
        values = typed(lists.values, wanted.value_type, safe=safe)
        return pa.ListArray.from_arrays(lists.offsets, values, type=wanted, mask=lists.is_null())
    if arrow_types.is_map(given) and arrow_types.is_map(wanted):
        maps = compact(array)
        keys = typed(maps.keys, wanted.key_type, safe=safe)
        items = typed(maps.items, wanted.item_type, safe=safe)
        return pa.MapArray.from_arrays(maps.offsets, keys, items, type=wanted, mask=maps.is_null())
    return array.cast(wanted, safe=safe)
