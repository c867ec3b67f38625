"""Rows checked on the way in: strict, lossless, and each bad row reported with its reason.

Nothing is guessed. A value is stored exactly as it was given or its row is refused: no text is read as a number, no
number rounded, no missing column filled in. What users may give is in `check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from headwater.errors import SchemaError
from headwater.schema.arrow_columns import fields_from_arrow
from headwater.schema.converted import Converted, Failure, shorten, show, text_of
from headwater.schema.python_columns import fields_from_python, from_python
from headwater.schema.python_values import is_missing
from headwater.schema.raw import encodable, raw_json
from headwater.schema.schema import Column, Schema

_ACCEPTED = "give dicts, a pyarrow Table or RecordBatch, or a pandas or Polars DataFrame"


@dataclass(frozen=True, eq=False)
class BadRow:
    """A refused row: its number from 0, its first bad column (None: the whole row), why, and its JSON text.

    All of its texts can be written as UTF-8.
    """

    row: int
    column: str | None
    reason: str
    row_at: Callable[[int], object] = field(repr=False)

    @cached_property
    def raw(self) -> str:
        """The row as JSON text, made when it is first asked for: of refused rows it seldom is."""
        return raw_json(self.row_at(self.row))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BadRow):
            return NotImplemented
        mine, others = ((bad.row, bad.column, bad.reason) for bad in (self, other))
        return mine == others and self.raw == other.raw

    def __hash__(self) -> int:
        return hash((self.row, self.column, self.reason))


@dataclass(frozen=True)
class Checked:
    """The good rows in order, in `schema.stored`, and the bad ones."""

    batch: pa.RecordBatch
    bad: tuple[BadRow, ...]


@dataclass(frozen=True)
class _Frame:
    """Rows given by column: Arrow arrays, or Python values where a pandas column has objects."""

    columns: list[tuple[str, pa.Array | list[object]]]
    length: int

    def row(self, number: int) -> dict[str, object]:
        return {name: _value(column, number) for name, column in self.columns}


def check(schema: Schema, rows: object, *, timezone: str = "UTC", required: Sequence[str] = ()) -> Checked:
    """The rows that fit the schema as one batch, and the others with the reason.

    `rows` is an iterable of dicts, a pyarrow Table or RecordBatch, a pandas or Polars DataFrame, or anything with
    `__arrow_c_stream__`; SchemaError for all else. Names match in any case; all columns must be given and no other.
    `required` columns (the key) may not be null. A datetime without a zone in a TIMESTAMP column is taken in
    `timezone`. In a pandas DataFrame NaN, NaT, NA and None all mean null, also in a float column: pandas cannot
    tell them apart. The batch has `schema.stored`, in which every column is nullable.
    """
    keys = {schema.column(name).name for name in required}
    return _check(schema.columns, keys, rows, _zone(timezone), frozenset()).expanded(schema)


def check_keys(schema: Schema, key: Sequence[str], keys: object, *, timezone: str = "UTC") -> Checked:
    """The keys of rows to delete, as a batch of the whole schema with nulls outside of the key.

    `keys` is what `check` takes, with at least the key's columns (other columns of the schema are ignored), or an
    iterable of plain values if the key is one column.
    """
    columns = tuple(schema.column(name) for name in key)
    names = {column.name for column in columns}
    ignored = frozenset(name.lower() for name in schema.names if name not in names)
    return _check(columns, names, keys, _zone(timezone), ignored, of_keys=True).expanded(schema)


@dataclass(frozen=True)
class _Outcome:
    """Arrays for some columns of a schema, and the rows that are bad."""

    columns: Sequence[Column]
    arrays: list[pa.Array]
    length: int
    bad: tuple[BadRow, ...]

    def expanded(self, schema: Schema) -> Checked:
        """The outcome in the whole schema: nulls in the columns that were not asked for, bad rows left out."""
        found = {column.name: array for column, array in zip(self.columns, self.arrays, strict=True)}
        arrays = [
            found[field.name] if field.name in found else pa.nulls(self.length, field.type)
            for field in schema.stored
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema.stored)
        if self.bad:
            good = np.ones(self.length, dtype=bool)
            good[[bad.row for bad in self.bad]] = False
            batch = batch.filter(pa.array(good))
        return Checked(batch, self.bad)


def _check(
    columns: Sequence[Column],
    keys: set[str],
    rows: object,
    zone: ZoneInfo,
    ignored: frozenset[str],
    *,
    of_keys: bool = False,
) -> _Outcome:
    refusals = [_refusal(column, keys) for column in columns]
    frame = _frame(rows)
    if frame is not None:
        given = [(name, _converted(name, column, columns, zone)) for name, column in frame.columns]
        arrays, failures = fields_from_arrow(columns, refusals, given, frame.length, zone, ignored=ignored)
        bad = _bad_rows(failures, frame.row)
        return _Outcome(columns, arrays, frame.length, bad)
    listed = _listed(rows)
    name_of_scalars = columns[0].name if of_keys and len(columns) == 1 else None
    mappings, strangers = _mappings(listed, name_of_scalars)
    arrays, failures = fields_from_python(columns, refusals, mappings, zone, ignored)
    bad = _bad_rows({**failures, **strangers}, listed.__getitem__)
    return _Outcome(columns, arrays, len(listed), bad)


def _refusal(column: Column, keys: set[str]) -> str | None:
    if column.name in keys:
        return "a key column cannot be null"
    return None if column.nullable else "cannot be null"


def _bad_rows(failures: dict[int, Failure], row_at: Callable[[int], object]) -> tuple[BadRow, ...]:
    return tuple(_bad_row(number, failures[number], row_at) for number in sorted(failures))


def _bad_row(number: int, failure: Failure, row_at: Callable[[int], object]) -> BadRow:
    column = failure.path[0] if failure.path else None
    reason = failure.reason
    if len(failure.path) > 1:
        inside = "".join(step if step.startswith("[") else f".{step}" for step in failure.path[1:])
        reason = f"{column}{inside}: {reason}"
    return BadRow(number, None if column is None else encodable(column), encodable(reason), row_at)


def _zone(timezone: str) -> ZoneInfo:
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        what = f"unknown time zone {timezone!r}"
        raise SchemaError(what, hint="for example UTC or Europe/Oslo") from None


def _frame(rows: object) -> _Frame | None:
    """The rows by column if they come that way, else None."""
    if isinstance(rows, pa.RecordBatch):
        return _Frame(list(zip(rows.schema.names, rows.columns, strict=True)), rows.num_rows)
    if isinstance(rows, pa.Table):
        return _Frame([(name, _whole(column)) for name, column in _named(rows)], rows.num_rows)
    if any(kind.__name__ == "DataFrame" and kind.__module__.startswith("pandas.") for kind in type(rows).__mro__):
        return _pandas_frame(rows)
    if hasattr(rows, "__arrow_c_stream__"):
        try:
            return _frame(pa.RecordBatchReader.from_stream(rows).read_all())
        except (pa.ArrowException, TypeError, ValueError) as error:
            what = f"this {type(rows).__name__} does not hold rows: {shorten(str(error))}"
            raise SchemaError(what, hint=_ACCEPTED) from error
    return None


def _named(table: pa.Table) -> Iterable[tuple[str, pa.ChunkedArray]]:
    return zip(table.column_names, table.columns, strict=True)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    try:
        return column.combine_chunks()
    except pa.ArrowInvalid as error:
        what = f"too much at once: {error}"
        raise SchemaError(what, hint="append in smaller batches") from error


def _pandas_frame(frame: object) -> _Frame:
    names = list(frame.columns)  # type: ignore[attr-defined]
    columns = [_pandas_column(frame.iloc[:, place]) for place in range(len(names))]  # type: ignore[attr-defined]
    return _Frame([(str(name), column) for name, column in zip(names, columns, strict=True)], len(frame))  # type: ignore[arg-type]


def _pandas_column(series: object) -> pa.Array | list[object]:
    if str(series.dtype) != "object":  # type: ignore[attr-defined]
        try:
            array = pa.Array.from_pandas(series)
        except (pa.ArrowException, TypeError, ValueError):
            return list(series)  # type: ignore[call-overload]
        return _whole(array) if isinstance(array, pa.ChunkedArray) else array
    return [None if _is_null(value) else value for value in series]  # type: ignore[attr-defined]


def _is_null(value: object) -> bool:
    return value is None or (isinstance(value, float) and value != value) or is_missing(value)  # noqa: PLR0124


def _converted(
    name: str, column: pa.Array | list[object], columns: Sequence[Column], zone: ZoneInfo
) -> Converted | pa.Array:
    """Python values converted for the column of their name; arrays, and values of no known column, as they are."""
    if not isinstance(column, list):
        return column
    for known in columns:
        if known.name.lower() == name.lower():
            return from_python(known.type, column, zone)
    return pa.nulls(len(column))


def _listed(rows: object) -> Sequence[object]:
    if isinstance(rows, Mapping | str | bytes | bytearray) or not isinstance(rows, Iterable):
        what = f"cannot take rows from {type(rows).__name__}"
        hint = f"{_ACCEPTED}; put a single row in a list" if isinstance(rows, Mapping) else _ACCEPTED
        raise SchemaError(what, hint=hint)
    return rows if isinstance(rows, list | tuple) else list(rows)


def _mappings(
    rows: Sequence[object], name_of_scalars: str | None
) -> tuple[list[Mapping[str, object] | None], dict[int, Failure]]:
    """The rows as dicts, a plain value as a dict of one column if it has a name; what is neither fails."""
    if set(map(type, rows)) <= {dict}:
        return list(rows), {}  # type: ignore[arg-type]
    mappings: list[Mapping[str, object] | None] = []
    strangers: dict[int, Failure] = {}
    for number, row in enumerate(rows):
        if isinstance(row, Mapping):
            mappings.append(row)
        elif name_of_scalars is not None:
            mappings.append({name_of_scalars: row})
        else:
            mappings.append(None)
            reason = f"expected a row as a dict, got {type(row).__name__} {shorten(text_of(row))}"
            strangers[number] = Failure((), reason)
    return mappings, strangers


def _value(column: pa.Array | list[object], number: int) -> object:
    """The value for the report of a bad row, which may be one that Python cannot hold."""
    if isinstance(column, list):
        return column[number]
    try:
        return column[number].as_py()
    except (ValueError, OverflowError):
        return show(column, number)
