"""Single Python values, each taken only if its type can hold it exactly.

`pa.array([1.5], type=pa.int64())` gives 1 without a word, so values are judged by their Python type before Arrow
sees them. Each function here takes a value that is not None and gives what Arrow stores for it, or raises Refused.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from headwater.schema import types
from headwater.schema.converted import text_of, unfit, wrong_type
from headwater.schema.types import DataType

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (the epoch of zoneless timestamps)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_DATE_UNITS = {"Y", "M", "W", "D"}

Accept = Callable[[Any, Any, ZoneInfo], object]


class Refused(Exception):
    """A value that its column cannot hold, with the reason."""


def accept(data_type: DataType, value: object, zone: ZoneInfo) -> object:
    """What Arrow stores for the value in a column of an atomic type; None for null; Refused if it cannot."""
    plain = _plain(data_type, value)
    return None if plain is None else _ACCEPT[type(data_type)](plain, data_type, zone)


def is_missing(value: object) -> bool:
    """Whether the value is pandas' way of saying null (NaT or NA)."""
    kind = type(value)
    return kind.__name__ in {"NaTType", "NAType"} and kind.__module__.startswith("pandas")


def mismatch(data_type: DataType, value: object) -> Refused:
    """The refusal of a value of the wrong Python type."""
    return Refused(wrong_type(data_type, type(value).__name__, text_of(value)))


def _too_large(data_type: DataType, value: object) -> Refused:
    return Refused(unfit(data_type, str(value) if isinstance(value, decimal.Decimal) else text_of(value)))


def _plain(data_type: DataType, value: object) -> object:
    """The value without numpy and pandas around it; None if it is their null; Refused if that loses something."""
    if value is None or is_missing(value):
        return None
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _plain_numpy_time(data_type, value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dt.datetime | dt.timedelta) and type(value).__module__.startswith("pandas"):
        if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):
            raise _too_large(data_type, value)
        return value.to_pydatetime() if isinstance(value, dt.datetime) else value.to_pytimedelta()  # type: ignore[attr-defined]
    return value


def _plain_numpy_time(data_type: DataType, value: np.datetime64 | np.timedelta64) -> object:
    if np.isnat(value):
        return None
    if isinstance(value, np.datetime64) and np.datetime_data(value.dtype)[0] in _DATE_UNITS:
        return value.item()
    exact = value.astype("M8[us]" if isinstance(value, np.datetime64) else "m8[us]")
    plain = exact.item()
    if exact != value or isinstance(plain, int):
        raise _too_large(data_type, value)
    return plain


def _boolean(value: object, data_type: DataType, _: ZoneInfo) -> bool:
    if not isinstance(value, bool):
        raise mismatch(data_type, value)
    return value


def _integer(value: object, data_type: DataType, _: ZoneInfo) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise mismatch(data_type, value)
    limit = 1 << (data_type.arrow.bit_width - 1)
    if not -limit <= value < limit:
        raise _too_large(data_type, value)
    return int(value)


def _floating(value: object, data_type: DataType, _: ZoneInfo) -> float:
    """Python's floats have 64 bits, so a FLOAT takes the nearest one; whole numbers must be exact."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise mismatch(data_type, value)
    try:
        wide = float(value)
        with np.errstate(over="ignore"):
            held = float(np.float32(wide)) if isinstance(data_type, types.Float) else wide
    except OverflowError:
        raise _too_large(data_type, value) from None
    inexact = held != value if isinstance(value, int) else math.isinf(held) and not math.isinf(wide)
    if inexact:
        raise _too_large(data_type, value)
    return wide


def _decimal(value: object, data_type: types.Decimal, _: ZoneInfo) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, int | decimal.Decimal):
        raise mismatch(data_type, value)
    number = decimal.Decimal(value)
    if number.is_finite() and not number:
        return decimal.Decimal(0)
    try:
        pa.scalar(number, type=data_type.arrow)
    except (pa.ArrowException, ValueError):
        raise _too_large(data_type, value) from None
    return number


def _string(value: object, data_type: DataType, _: ZoneInfo) -> str:
    if not isinstance(value, str):
        raise mismatch(data_type, value)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        reason = f"invalid text: a lone surrogate at character {error.start}"
        raise Refused(reason) from None
    return str.__str__(value)


def _binary(value: object, data_type: DataType, _: ZoneInfo) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise mismatch(data_type, value)
    return bytes(value)


def _date(value: object, data_type: DataType, _: ZoneInfo) -> dt.date:
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise mismatch(data_type, value)
    return value


def _timestamp(value: object, data_type: DataType, zone: ZoneInfo) -> int:
    if not isinstance(value, dt.datetime):
        raise mismatch(data_type, value)
    instant = value if value.utcoffset() is not None else value.replace(tzinfo=zone)
    return (instant - _EPOCH_UTC) // _MICROSECOND


def _timestamp_ntz(value: object, data_type: DataType, _: ZoneInfo) -> int:
    if not isinstance(value, dt.datetime) or value.utcoffset() is not None:
        raise mismatch(data_type, value)
    return (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND


def _time(value: object, data_type: DataType, _: ZoneInfo) -> int:
    """Python's times end at microseconds; an Arrow scalar carries nanoseconds."""
    if isinstance(value, pa.Time32Scalar | pa.Time64Scalar):
        return int(value.cast(pa.time64("ns")).value)
    if not isinstance(value, dt.time) or value.tzinfo is not None:
        raise mismatch(data_type, value)
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return (seconds * 1_000_000 + value.microsecond) * 1000


def _interval(value: object, data_type: DataType, _: ZoneInfo) -> int:
    if not isinstance(value, dt.timedelta):
        raise mismatch(data_type, value)
    microseconds = value // _MICROSECOND
    if not -(2**63) <= microseconds < 2**63:
        raise _too_large(data_type, value)
    return microseconds


_ACCEPT: dict[type[DataType], Accept] = {
    types.Boolean: _boolean,
    types.Byte: _integer,
    types.Short: _integer,
    types.Integer: _integer,
    types.Long: _integer,
    types.Float: _floating,
    types.Double: _floating,
    types.Decimal: _decimal,
    types.String: _string,
    types.Char: _string,
    types.Varchar: _string,
    types.Binary: _binary,
    types.Date: _date,
    types.Timestamp: _timestamp,
    types.TimestampNtz: _timestamp_ntz,
    types.Time: _time,
    types.DayTimeInterval: _interval,
}
