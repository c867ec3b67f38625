"""Columns that have become others: rows that were written under an earlier schema, seen under a later one.

The schema of rows whose topic was altered is *marked*: it says how often that was, and of each column by which id
it is known where rows lie, if that is not its name, and what rows have that were written before it was there. An id
is never used twice, so a name that is used again does not bring back what once was under it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from headwater.change.shape import typed
from headwater.errors import DeclarationChanged

OPERATION = "_op"
"""What was done to a row, in the log; of a row that was deleted, only the key is known."""
DELETE = 2
_ALTERED, _ID, _DEFAULT = b"altered", b"id", b"default"
Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def marked(schema: pa.Schema, number: int, ids: Mapping[str, str], defaults: Mapping[str, str]) -> pa.Schema:
    """The schema of a topic that was altered so often; the same if it never was."""
    if not number:
        return schema
    fields = []
    for field in schema:
        said = {_ID: ids.get(field.name), _DEFAULT: defaults.get(field.name)}
        known = {each: value.encode() for each, value in said.items() if value is not None}
        fields.append(field.with_metadata(known) if known else field)
    return pa.schema(fields, {_ALTERED: str(number).encode()})


def altered(schema: pa.Schema) -> int:
    """How often the topic had been altered of which this is the schema."""
    metadata = schema.metadata
    return int(metadata.get(_ALTERED, 0)) if metadata else 0


def only_mark(schema: pa.Schema) -> Mapping[bytes, bytes] | None:
    """What a schema with further columns has to say to be of the same alteration; None if there was none."""
    number = altered(schema)
    return {_ALTERED: str(number).encode()} if number else None


def identity(field: pa.Field) -> str:
    """By what a column is known where rows lie."""
    said = (field.metadata or {}).get(_ID)
    return str(field.name) if said is None else str(said.decode())


def conformed(rows: Rows, schema: pa.Schema) -> Rows:
    """The rows with the columns of a schema, which is of the same alteration or a later one.

    Columns are found by their ids; those that are gone are left out, those that came later have their default, or
    null. `DeclarationChanged`, which goes away by looking again, if the rows know of a later alteration.
    """
    there, here = altered(rows.schema), altered(schema)
    if there == here:
        return rows
    if there > here:
        msg = "the topic was altered in this moment"
        raise DeclarationChanged(msg, hint="ask for it again", retry=True)
    places = {identity(field): place for place, field in enumerate(rows.schema)}
    columns = [_column(rows, places.get(identity(field)), field) for field in schema]
    made: Rows = type(rows).from_arrays(columns, schema=schema)
    return made


def schema_text(schema: pa.Schema) -> str:
    """A schema as text, so that it can travel with plain data."""
    return base64.b64encode(schema.serialize()).decode()


@lru_cache(maxsize=256)
def schema_of(text: str) -> pa.Schema:
    """The schema of which `schema_text` gave this."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def _column(rows: pa.Table | pa.RecordBatch, place: int | None, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    if place is None:
        return _absent(rows, field)
    column = rows.column(place)
    if column.type == field.type:
        return column
    if isinstance(column, pa.ChunkedArray):
        chunks = [typed(chunk, field.type, safe=False) for chunk in column.chunks]
        return pa.chunked_array(chunks, type=field.type)
    return typed(column, field.type, safe=False)


def _absent(rows: pa.Table | pa.RecordBatch, field: pa.Field) -> pa.Array:
    """A column that was not there when the rows were written."""
    said = (field.metadata or {}).get(_DEFAULT)
    if said is None:
        return pa.nulls(rows.num_rows, field.type)
    value = constant(said.decode(), field.type)
    if OPERATION not in rows.schema.names:
        return pa.repeat(value, rows.num_rows)
    operations = rows.column(OPERATION)
    if isinstance(operations, pa.ChunkedArray):
        operations = operations.combine_chunks()
    return pc.if_else(pc.equal(operations, DELETE), pa.scalar(None, field.type), value)


def constant(text: str, kind: pa.DataType) -> pa.Scalar:
    """A value by its text; ArrowInvalid if it has none in this type."""
    return pa.scalar(text, pa.string()).cast(kind)


def as_text(text: str, kind: pa.DataType, wider: pa.DataType) -> str:
    """The text of what a constant of one type is in a wider one."""
    value = typed(pa.array([constant(text, kind)], kind), wider, safe=False)
    return str(value.cast(pa.string())[0].as_py())
