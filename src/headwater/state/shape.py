"""Tables in exactly the types that are expected."""

from __future__ import annotations

import pyarrow as pa


def shaped(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns, by position, with these names and types: whether inner fields may be null often differs."""
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)
