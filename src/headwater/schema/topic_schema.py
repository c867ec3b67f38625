"""What the schema of a topic must be, beyond being DDL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headwater.errors import SchemaError
from headwater.schema import types
from headwater.schema.collation import BINARY
from headwater.schema.schema import Column, Schema


def check_topic(schema: Schema, key: str | Sequence[str] | None) -> tuple[str, ...]:
    """The key's columns as the schema writes them; SchemaError if this can be no topic's schema or key.

    Refused are: no columns; names that are empty, begin with `_` or occur twice in any case; types that cannot
    be exchanged as Arrow, also nested ones; keys that name an unknown column, a column twice, or one that cannot
    be compared bit by bit (arrays, maps, structs, variants and collations other than UTF8_BINARY).
    """
    if not schema.columns:
        what = "a topic needs at least one column"
        raise SchemaError(what, hint="for example 'id BIGINT, name STRING'")
    _check_unique(schema.columns, "")
    for column in schema:
        _check_name(column.name)
        _check_type(column.type, column.name)
    names = [key] if isinstance(key, str) else list(key or ())
    if key is not None and not names:
        what = "a key needs at least one column"
        raise SchemaError(what, hint="leave the key out for a topic without one")
    return tuple(_key_columns(schema, names))


def _check_name(name: str) -> None:
    if not name:
        what = "a column needs a name"
        raise SchemaError(what)
    if name.startswith("_"):
        what = "names beginning with _ are Headwater's own"
        raise SchemaError(what, column=name, hint=f"call it {name.lstrip('_') or 'something else'}")


def _check_unique(columns: Iterable[Column], path: str) -> None:
    seen: dict[str, str] = {}
    for column in columns:
        earlier = seen.get(column.name.lower())
        if earlier is not None:
            what = f"this name occurs twice, first as {earlier}: names are case-insensitive"
            raise SchemaError(what, column=path + column.name)
        seen[column.name.lower()] = column.name


def _check_type(data_type: types.DataType, path: str) -> None:
    if isinstance(data_type, types.YearMonthInterval | types.CalendarInterval | types.Void):
        why = "it is null in every row" if isinstance(data_type, types.Void) else "it cannot leave Spark as Arrow"
        what = f"{data_type.ddl} cannot be a column's type: {why}"
        hint = "store a number of months as INT" if isinstance(data_type, types.YearMonthInterval) else ""
        raise SchemaError(what, column=path, hint=hint)
    if isinstance(data_type, types.Struct):
        _check_unique(data_type.fields, f"{path}.")
        for field in data_type.fields:
            _check_type(field.type, f"{path}.{field.name}")
        return
    for part in data_type.parts:
        _check_type(part, path)
    _ = data_type.arrow


def _key_columns(schema: Schema, names: Sequence[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            what = f"a key is made of column names, got {name!r}"
            raise SchemaError(what)
        column = schema.column(name)
        if column.name in seen:
            what = "the key names this column twice"
            raise SchemaError(what, column=column.name)
        seen.add(column.name)
        _check_key_type(column)
        yield column.name


def _check_key_type(column: Column) -> None:
    if not column.type.atomic:
        what = f"a column of type {column.type.ddl} cannot be part of a key"
        raise SchemaError(what, column=column.name, hint="use columns of atomic types")
    collation = getattr(column.type, "collation", None)
    if collation not in (None, BINARY):
        what = f"a key is compared byte by byte, so it cannot have the collation {collation}"
        raise SchemaError(what, column=column.name, hint="use STRING and normalise it before appending")
