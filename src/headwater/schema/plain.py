"""Types as Spark's queries see them."""

from __future__ import annotations

from dataclasses import replace

from headwater.schema.schema import Schema
from headwater.schema.types import Array, Char, DataType, Map, String, Struct, Varchar


def plain(schema: Schema) -> Schema:
    """The columns with CHAR and VARCHAR as STRING: within a query Spark knows no lengths of texts."""
    return Schema(tuple(replace(column, type=_plain(column.type)) for column in schema))


def _plain(kind: DataType) -> DataType:
    if isinstance(kind, Char | Varchar):
        return String(kind.collation)
    if isinstance(kind, Array):
        return replace(kind, element=_plain(kind.element))
    if isinstance(kind, Map):
        return replace(kind, key=_plain(kind.key), value=_plain(kind.value))
    if isinstance(kind, Struct):
        return replace(kind, fields=tuple(replace(field, type=_plain(field.type)) for field in kind.fields))
    return kind
