"""Columns of Python values turned into Arrow arrays.

A column whose values all have the one obvious Python type is handed to Arrow in one call; only if that fails, or
if other types occur, are the values judged one by one. Nested values are flattened, so the same holds inside.
"""

from __future__ import annotations

import datetime as dt
import decimal
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.schema import types
from headwater.schema.converted import (
    Converted,
    Failure,
    Nesting,
    build_list,
    build_map,
    build_struct,
    fields_of,
    list_failures,
    merge_fields,
    nullness,
)
from headwater.schema.limits import within_limits
from headwater.schema.python_values import Refused, accept, is_missing, mismatch
from headwater.schema.types import Column, DataType

_OBVIOUS: dict[type[DataType], frozenset[type]] = {
    types.Boolean: frozenset({bool}),
    types.Byte: frozenset({int}),
    types.Short: frozenset({int}),
    types.Integer: frozenset({int}),
    types.Long: frozenset({int}),
    types.Float: frozenset({float}),
    types.Double: frozenset({int, float}),
    types.Decimal: frozenset({int, decimal.Decimal}),
    types.String: frozenset({str}),
    types.Char: frozenset({str}),
    types.Varchar: frozenset({str}),
    types.Binary: frozenset({bytes}),
    types.Date: frozenset({dt.date}),
    types.Timestamp: frozenset({dt.datetime}),
    types.TimestampNtz: frozenset({dt.datetime}),
    types.Time: frozenset({dt.time}),
    types.DayTimeInterval: frozenset({dt.timedelta}),
}
_ZONELESS = (types.TimestampNtz, types.Time)
_STORED_AS_NUMBERS = (types.Timestamp, types.TimestampNtz, types.Time, types.DayTimeInterval)
_MISSING = object()


def from_python(data_type: DataType, values: Sequence[object], zone: ZoneInfo) -> Converted:
    """The values as an Arrow array of the type. Zoneless datetimes in a TIMESTAMP are taken in the zone."""
    if isinstance(data_type, types.Array):
        return _from_lists(data_type, values, zone)
    if isinstance(data_type, types.Map):
        return _from_mappings(data_type, values, zone)
    if isinstance(data_type, types.Struct | types.Variant):
        return _from_structs(data_type, values, zone)
    array = _at_once(data_type, values, zone)
    if array is not None:
        return within_limits(data_type, array)
    return _one_by_one(data_type, values, zone)


def fields_from_python(
    fields: Sequence[Column],
    refusals: Sequence[str | None],
    rows: Sequence[Mapping[str, object] | None],
    zone: ZoneInfo,
    ignored: frozenset[str] = frozenset(),
) -> tuple[list[pa.Array], dict[int, Failure]]:
    """One array per field, and the first failure of each row.

    Names are matched in any case. A field that a row lacks and a name that no field has are failures, except
    `ignored` names (in lower case). Rows that are None have no failures.
    """
    columns, missing, unknown = _split(fields, rows, ignored)
    converted = [from_python(field.type, column, zone) for field, column in zip(fields, columns, strict=True)]
    for field, lacking in zip(converted, missing, strict=True):
        for row in lacking:
            field.failures[row] = Failure((), "is missing")
    absent = frozenset(row for row, value in enumerate(rows) if value is None)
    failures = merge_fields([field.name for field in fields], refusals, converted, absent)
    for row, failure in unknown.items():
        failures.setdefault(row, failure)
    return [column.array for column in converted], failures


def unknown_name(name: object, known: Iterable[str]) -> Failure:
    """The failure of a row that has a name which its schema lacks."""
    names = {each.lower(): each for each in known}
    close = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.7)
    advice = f"; did you mean {names[close[0]]}?" if close else ""
    return Failure((str(name),), f"is not in the schema{advice}")


def _at_once(data_type: DataType, values: Sequence[object], zone: ZoneInfo) -> pa.Array | None:
    """The array if all values have the obvious type and Arrow takes them, else None."""
    if not set(map(type, values)) <= _OBVIOUS[type(data_type)] | {type(None)}:
        return None
    if isinstance(data_type, _ZONELESS) and any(v is not None and v.tzinfo is not None for v in values):  # type: ignore[attr-defined]
        return None
    try:
        if isinstance(data_type, types.Float):
            return _narrowed(pa.array(values, type=pa.float64()))
        if isinstance(data_type, types.Timestamp) and zone.key != "UTC":
            values = [_in_zone(value, zone) for value in values]
        return pa.array(values, type=data_type.arrow)
    except (pa.ArrowException, OverflowError, ValueError):
        return None


def _in_zone(value: object, zone: ZoneInfo) -> object:
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=zone)
    return value


def _narrowed(wide: pa.Array) -> pa.Array | None:
    narrow = wide.cast(pa.float32(), safe=False)
    overflowed = pc.any(pc.not_equal(pc.is_inf(wide), pc.is_inf(narrow))).as_py()
    return None if overflowed else narrow


def _one_by_one(data_type: DataType, values: Sequence[object], zone: ZoneInfo) -> Converted:
    stored, failures = _each(values, lambda value: accept(data_type, value, zone))
    if isinstance(data_type, _STORED_AS_NUMBERS):
        array = pa.array(stored, type=pa.int64()).view(data_type.arrow)
    else:
        array = pa.array(stored, type=data_type.arrow)
    checked = within_limits(data_type, array)
    return Converted(checked.array, {**checked.failures, **failures})


def _each(values: Sequence[object], convert: Callable[[object], object]) -> tuple[list[object], dict[int, Failure]]:
    """Each value converted, or None and a failure."""
    converted: list[object] = []
    failures: dict[int, Failure] = {}
    for row, value in enumerate(values):
        try:
            converted.append(None if value is None else convert(value))
        except Refused as refused:
            converted.append(None)
            failures[row] = Failure((), str(refused))
    return converted, failures


def _from_lists(data_type: types.Array, values: Sequence[object], zone: ZoneInfo) -> Converted:
    lists, failures = _each(values, lambda value: _as_list(data_type, value))
    nesting, flat, absent = _flatten(lists)
    element = from_python(data_type.element, flat, zone)
    refusal = None if data_type.contains_null else "cannot be null"
    failures.update(list_failures(nesting, element, refusal))
    return Converted(build_list(data_type, nesting, element.array, absent), failures)


def _as_list(data_type: DataType, value: object) -> object:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return value.tolist() if value.dtype.kind in "biuf" else list(value)
    if is_missing(value):
        return None
    raise mismatch(data_type, value)


def _flatten(lists: Sequence[object]) -> tuple[Nesting, list[object], list[bool]]:
    present: list[Sequence[object]] = [value if isinstance(value, list | tuple) else () for value in lists]
    nesting = Nesting([len(value) for value in present])
    return nesting, list(chain.from_iterable(present)), [value is None for value in lists]


def _from_mappings(data_type: types.Map, values: Sequence[object], zone: ZoneInfo) -> Converted:
    pairs, failures = _each(values, lambda value: _as_pairs(data_type, value))
    nesting, flat, absent = _flatten(pairs)
    keys = from_python(data_type.key, [pair[0] for pair in flat], zone)  # type: ignore[index]
    items = from_python(data_type.value, [pair[1] for pair in flat], zone)  # type: ignore[index]
    refusal = None if data_type.value_contains_null else "cannot be null"
    failures.update(list_failures(nesting, items, refusal))
    failures.update(list_failures(nesting, keys, "the key of a map cannot be null"))
    return Converted(build_map(data_type, nesting, keys.array, items.array, absent), failures)


def _as_pairs(data_type: DataType, value: object) -> object:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list | tuple) and all(isinstance(each, tuple) and len(each) == 2 for each in value):
        return value
    if is_missing(value):
        return None
    raise mismatch(data_type, value)


def _from_structs(data_type: types.Struct | types.Variant, values: Sequence[object], zone: ZoneInfo) -> Converted:
    rows, failures = _each(values, lambda value: _as_mapping(data_type, value))
    mappings = [row if isinstance(row, Mapping) else None for row in rows]
    fields = fields_of(data_type)
    arrays, inner = fields_from_python(fields, nullness(fields), mappings, zone)
    array = build_struct(data_type, arrays, [row is None for row in mappings])
    return Converted(array, {**inner, **failures})


def _as_mapping(data_type: DataType, value: object) -> object:
    if isinstance(data_type, types.Variant):
        return _as_variant(data_type, value)
    if isinstance(value, Mapping):
        return value
    if is_missing(value):
        return None
    raise mismatch(data_type, value)


def _as_variant(data_type: types.Variant, value: object) -> object:
    names = {str(name).lower() for name in value} if isinstance(value, Mapping) else set()
    if names and names <= {field.name for field in fields_of(data_type)}:
        return value
    if hasattr(value, "value") and hasattr(value, "metadata"):
        return {"value": value.value, "metadata": value.metadata}
    if is_missing(value):
        return None
    advice = "give pyspark.sql.types.VariantVal.parseJson(…), or keep JSON in a STRING and use parse_json in SQL"
    raise Refused(f"{mismatch(data_type, value)}; {advice}")


Split = tuple[list[list[object]], list[list[int]], dict[int, Failure]]


def _split(fields: Sequence[Column], rows: Sequence[Mapping[str, object] | None], ignored: frozenset[str]) -> Split:
    """The rows as one list per field, the rows that lack each field, and the rows with unknown names."""
    nothing = dict.fromkeys((field.name for field in fields), None)
    whole = [nothing if row is None else row for row in rows]
    # Only of a plain dict is it known that asking for a name neither makes up a value nor adds it to the dict.
    if set(map(type, whole)) <= {dict} and all(len(row) == len(fields) for row in whole):
        try:
            columns = [list(map(itemgetter(field.name), whole)) for field in fields]
        except KeyError:
            pass
        else:
            return columns, [[] for _ in fields], {}
    return _split_by_row(fields, whole, ignored)


def _split_by_row(fields: Sequence[Column], rows: Sequence[Mapping[str, object]], ignored: frozenset[str]) -> Split:
    places = {field.name.lower(): place for place, field in enumerate(fields)}
    columns: list[list[object]] = [[_MISSING] * len(rows) for _ in fields]
    failures: dict[int, Failure] = {}
    for row, given in enumerate(rows):
        for name, value in given.items():
            place = places.get(name.lower()) if isinstance(name, str) else None
            if place is None:
                if not (isinstance(name, str) and name.lower() in ignored):
                    failures.setdefault(row, unknown_name(name, [field.name for field in fields]))
            elif columns[place][row] is not _MISSING:
                failures.setdefault(row, Failure((fields[place].name,), "is given twice"))
            else:
                columns[place][row] = value
    missing = [[row for row, value in enumerate(column) if value is _MISSING] for column in columns]
    cleared = [[None if value is _MISSING else value for value in column] for column in columns]
    return cleared, missing, failures
