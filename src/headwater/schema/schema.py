"""A schema: columns in order."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from headwater.errors import SchemaError
from headwater.schema.types import Array, Column, DataType, Map, Struct

__all__ = ["Column", "Schema"]


@dataclass(frozen=True)
class Schema:
    """The columns of a topic or view. Names are found whatever their case; `parse(schema.ddl) == schema`.

    It may hold what only some uses allow (no columns, the same name twice): `check_topic` refuses those.
    """

    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __str__(self) -> str:
        return self.ddl

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names as they were declared."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The columns by their name in lower case; the first of those with the same name."""
        return {column.name.lower(): column for column in reversed(self.columns)}

    def column(self, name: str) -> Column:
        """The column of that name in any case; SchemaError if there is none."""
        found = self.by_name.get(name.lower())
        if found is None:
            what = f"there is no column {name}"
            raise SchemaError(what, column=name, hint=self.suggest(name))
        return found

    def suggest(self, name: str) -> str:
        """A hint for someone who wrote a name that does not exist."""
        close = difflib.get_close_matches(name.lower(), self.by_name, n=1)
        if close:
            return f"did you mean {self.by_name[close[0]].name}?"
        return f"the columns are {', '.join(self.names)}" if self.columns else "there are no columns"

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema with NOT NULL where it was declared."""
        return pa.schema([column.arrow for column in self.columns])

    @cached_property
    def stored(self) -> pa.Schema:
        """The Arrow schema of stored batches: every column nullable, because a delete has only its key."""
        return pa.schema([pa.field(column.name, column.type.arrow) for column in self.columns])

    @cached_property
    def ddl(self) -> str:
        """Canonical DDL."""
        return ", ".join(column.ddl for column in self.columns)

    @property
    def without_comments(self) -> Schema:
        """The same columns; comments say nothing to us."""
        return Schema(tuple(map(_without_comment, self.columns)))

    def difference(self, other: Schema) -> str:
        """What an earlier schema (self) and a later one (other) differ in, for people; empty if they are equal."""
        if self == other:
            return ""
        gone = [f"column {c.name} is gone" for c in self if c.name.lower() not in other.by_name]
        new = [f"column {c.name} is new" for c in other if c.name.lower() not in self.by_name]
        changed = [
            text
            for name, before in self.by_name.items()
            if (after := other.by_name.get(name)) is not None
            for text in _changes(before, after)
        ]
        return "; ".join(gone + new + changed) or _arrangement(self, other)


def _changes(before: Column, after: Column) -> Iterator[str]:
    if before.type != after.type:
        yield f"column {before.name} was {before.type.ddl} and is now {after.type.ddl}"
    if before.nullable != after.nullable:
        words = {True: "nullable", False: "NOT NULL"}
        yield f"column {before.name} was {words[before.nullable]} and is now {words[after.nullable]}"
    if before.name != after.name:
        yield f"column {before.name} is now written {after.name}"
    if before.comment != after.comment:
        yield f"the comment of column {before.name} has changed"


def _arrangement(before: Schema, after: Schema) -> str:
    was, now = ", ".join(before.names), ", ".join(after.names)
    return f"the columns were {was} and are now {now}"


def _without_comment(column: Column) -> Column:
    return replace(column, type=_plain(column.type), comment=None)


def _plain(data_type: DataType) -> DataType:
    if isinstance(data_type, Struct):
        return replace(data_type, fields=tuple(map(_without_comment, data_type.fields)))
    if isinstance(data_type, Array):
        return replace(data_type, element=_plain(data_type.element))
    if isinstance(data_type, Map):
        return replace(data_type, key=_plain(data_type.key), value=_plain(data_type.value))
    return data_type
