"""Rows as JSON, in and out.

    TIMESTAMP, TIMESTAMP_NTZ    ISO 8601, the first with Z             DECIMAL    text
    DATE, TIME                  ISO 8601                               BINARY     base64
    INTERVAL DAY TO SECOND      ISO 8601 (P1DT2H), or seconds          MAP        an object, or [[key, value], …]
    FLOAT, DOUBLE               a number, "NaN", "Infinity"            VARIANT    {"value": …, "metadata": …} base64

`from_json(schema, loads(line))` for each line of `to_json(batch)` gives the rows of the batch back.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as arrow_types

from headwater.change.hash import compact
from headwater.schema import types
from headwater.schema.converted import VARIANT_FIELDS
from headwater.schema.schema import Schema
from headwater.schema.types import Column, DataType

_FRACTION = re.compile(r"[.,](\d+)")
_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,6})?)S)?)?\Z"
)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?\Z")
_SPECIAL_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def loads(text: str) -> Any:
    """The JSON document, with decimal numbers exact."""
    return json.loads(text, parse_float=decimal.Decimal)


def from_json(schema: Schema, value: Mapping[str, object]) -> dict[str, object]:
    """A row for `check` from a JSON object read with `loads`.

    What does not convert stays as it is, for `check` to refuse with its reason; so do unknown names.
    """
    return _fields_from_json(schema.by_name, value)


def _fields_from_json(fields: Mapping[str, Column], value: Mapping[str, object]) -> dict[str, object]:
    return {
        name: _from_json(fields[name.lower()].type, item) if name.lower() in fields else item
        for name, item in value.items()
    }


def _from_json(data_type: DataType, value: Any) -> object:
    reader = _READERS.get(type(data_type))
    if value is None or reader is None:
        return value
    try:
        return reader(data_type, value)
    except (ValueError, TypeError, ArithmeticError, AttributeError, binascii.Error):
        return value


def _floating(_: DataType, value: Any) -> object:
    if isinstance(value, str):
        return _SPECIAL_FLOATS.get(value, value)
    if isinstance(value, decimal.Decimal) and math.isfinite(float(value)):
        return float(value)
    return value


def _decimal(_: DataType, value: Any) -> object:
    return decimal.Decimal(value) if isinstance(value, str) else value


def _binary(_: DataType, value: Any) -> object:
    return base64.b64decode(value, validate=True) if isinstance(value, str) else value


def _date(_: DataType, value: Any) -> object:
    return dt.date.fromisoformat(value) if isinstance(value, str) else value


def _timestamp(_: DataType, value: Any) -> object:
    """Only with a time of day, and with no digits that Python would drop."""
    if not isinstance(value, str) or ":" not in value:
        return value
    fraction = _FRACTION.search(value)
    if fraction and fraction[1][6:].strip("0"):
        return value
    return dt.datetime.fromisoformat(value)


def _time(_: DataType, value: Any) -> object:
    match = _TIME.match(value)
    if match is None:
        return value
    hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
    nanoseconds = int((match[4] or "0").ljust(9, "0"))
    if nanoseconds % 1000 == 0:
        return dt.time(hours, minutes, seconds, nanoseconds // 1000)
    of_day = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds) // dt.timedelta(seconds=1)
    return pa.scalar(of_day * 1_000_000_000 + nanoseconds, type=pa.time64("ns")) if of_day < 86_400 else value


def _interval(_: DataType, value: Any) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | decimal.Decimal):
        return _seconds(decimal.Decimal(value))
    match = _DURATION.match(value)
    if match is None or not any(match[unit] for unit in ("days", "hours", "minutes", "seconds")):
        return value
    days, hours, minutes = (int(match[unit] or 0) for unit in ("days", "hours", "minutes"))
    length = dt.timedelta(days=days, hours=hours, minutes=minutes) + _seconds(
        decimal.Decimal(match["seconds"] or 0)
    )
    return -length if match["sign"] == "-" else length


def _seconds(number: decimal.Decimal) -> dt.timedelta:
    """The length of time; ArithmeticError if it has more digits than microseconds hold."""
    strict = decimal.Context(prec=40, traps=[decimal.Inexact, decimal.InvalidOperation])
    with decimal.localcontext(strict):
        return dt.timedelta(microseconds=int((number * 1_000_000).quantize(decimal.Decimal(1))))


def _array(data_type: types.Array, value: Any) -> object:
    return [_from_json(data_type.element, item) for item in value] if isinstance(value, list) else value


def _map(data_type: types.Map, value: Any) -> object:
    """An object has text for its keys; pairs carry keys of any type."""
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list) or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        return value
    return [(_from_json(data_type.key, key), _from_json(data_type.value, item)) for key, item in pairs]


def _struct(data_type: types.Struct, value: Any) -> object:
    return _fields_from_json({field.name.lower(): field for field in data_type.fields}, value)


def _variant(_: types.Variant, value: Any) -> object:
    return _fields_from_json({field.name: field for field in VARIANT_FIELDS}, value)


_READERS: dict[type[DataType], Callable[[Any, Any], object]] = {
    types.Float: _floating,
    types.Double: _floating,
    types.Decimal: _decimal,
    types.Binary: _binary,
    types.Date: _date,
    types.Timestamp: _timestamp,
    types.TimestampNtz: _timestamp,
    types.Time: _time,
    types.DayTimeInterval: _interval,
    types.Array: _array,
    types.Map: _map,
    types.Struct: _struct,
    types.Variant: _variant,
}


def to_json(rows: pa.RecordBatch | pa.Table) -> Iterator[str]:
    """One compact JSON object per row."""
    batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
    for batch in batches:
        columns = [_plain(column) for column in batch.columns]
        for number in range(batch.num_rows):
            row = {name: column[number] for name, column in zip(batch.schema.names, columns, strict=True)}
            yield json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _plain(array: pa.Array) -> list[Any]:
    """The values as JSON has them."""
    given = array.type
    for is_kind, nested in _NESTED:
        if is_kind(given):
            return nested(array)
    for is_kind, convert in _WRITERS:
        if is_kind(given):
            return [None if value is None else convert(value, given) for value in _raw(array)]
    return list(array.to_pylist())


def _raw(array: pa.Array) -> list[Any]:
    """The values as Python has them, times as numbers, so that none is out of Python's range."""
    counted = (arrow_types.is_timestamp, arrow_types.is_time64, arrow_types.is_duration)
    if any(is_kind(array.type) for is_kind in counted):
        return list(array.view(pa.int64()).to_pylist())
    if arrow_types.is_date32(array.type):
        return list(array.view(pa.int32()).to_pylist())
    return list(array.to_pylist())


def _write_float(value: float, given: pa.DataType) -> float | str:
    if math.isfinite(value):
        return float(str(np.float32(value))) if arrow_types.is_float32(given) else value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _write_timestamp(value: int, given: pa.DataType) -> str:
    per_second = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}[given.unit]
    instant = np.datetime64(value * 1_000_000 // per_second, "us")  # of any year, unlike Python's own
    return str(instant).removesuffix(".000000") + ("" if given.tz is None else "Z")


def _write_time(value: int, given: pa.DataType) -> str:
    nanoseconds = value * (1000 if given.unit == "us" else 1)
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{rest:09}".rstrip("0") if rest else text


def _write_duration(value: int, given: pa.DataType) -> str:
    per_second = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}[given.unit]
    days, rest = divmod(abs(value), 86_400 * per_second)
    seconds, fraction = divmod(rest, per_second)
    digits = f".{fraction * 1_000_000 // per_second:06}".rstrip("0") if fraction else ""
    clock = f"T{seconds // 3600}H{seconds // 60 % 60}M{seconds % 60}{digits}S" if rest else ""
    return f"{'-' if value < 0 else ''}P{days}D{clock}"


def _plain_struct(array: pa.Array) -> list[Any]:
    names = [field.name for field in array.type]
    columns = [_plain(child) for child in array.flatten()]
    return [
        {name: column[row] for name, column in zip(names, columns, strict=True)} if valid else None
        for row, valid in enumerate(array.is_valid().to_pylist())
    ]


def _plain_list(array: pa.Array) -> list[Any]:
    elements = iter(_plain(array.flatten()))
    lengths = array.value_lengths().to_pylist()
    return [None if length is None else [next(elements) for _ in range(length)] for length in lengths]


def _plain_map(array: pa.Array) -> list[Any]:
    """Maps with text for keys as objects, others as pairs."""
    maps = compact(array)
    keys, items = _plain(maps.keys), _plain(maps.items)
    offsets = maps.offsets.to_pylist()
    form = dict if arrow_types.is_string(array.type.key_type) else _as_lists
    return [
        form(zip(keys[offsets[row] : offsets[row + 1]], items[offsets[row] : offsets[row + 1]], strict=True))
        if valid
        else None
        for row, valid in enumerate(array.is_valid().to_pylist())
    ]


def _as_lists(pairs: Any) -> list[list[Any]]:
    return [list(pair) for pair in pairs]


_NESTED: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[Any]]], ...] = (
    (arrow_types.is_struct, _plain_struct),
    (arrow_types.is_map, _plain_map),
    (arrow_types.is_list, _plain_list),
    (arrow_types.is_large_list, _plain_list),
)
_WRITERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType], Any]], ...] = (
    (arrow_types.is_floating, _write_float),
    (arrow_types.is_timestamp, _write_timestamp),
    (arrow_types.is_time64, _write_time),
    (arrow_types.is_duration, _write_duration),
    (arrow_types.is_decimal, lambda value, _: str(value)),
    (arrow_types.is_date32, lambda value, _: str(np.datetime64(value, "D"))),
    (arrow_types.is_binary, lambda value, _: base64.b64encode(value).decode()),
    (arrow_types.is_large_binary, lambda value, _: base64.b64encode(value).decode()),
)
