"""Limits that Spark's types have and Arrow's do not: years 1 to 9999, lengths of text, precision of times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.schema.converted import Converted, Failure, shorten, show, unfit
from headwater.schema.types import (
    Char,
    DataType,
    Date,
    DayTimeInterval,
    Time,
    Timestamp,
    TimestampNtz,
    Varchar,
)

_DAYS = (-719_162, 2_932_896)
_MICROSECONDS = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)
_NANOSECONDS_OF_DAY = (0, 86_400_000_000_000 - 1)
_INTERVAL_STEP = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1}


def within_limits(data_type: DataType, array: pa.Array) -> Converted:
    """The array without the values that its Spark type cannot hold; CHAR is padded with blanks.

    The array has the type's Arrow type. Costs nothing for types without such limits.
    """
    if isinstance(data_type, Timestamp | TimestampNtz):
        return _in_range(data_type, array, pa.int64(), _MICROSECONDS)
    if isinstance(data_type, Date):
        return _in_range(data_type, array, pa.int32(), _DAYS)
    if isinstance(data_type, Char | Varchar):
        return _in_length(data_type, array)
    if isinstance(data_type, Time):
        ranged = _in_range(data_type, array, pa.int64(), _NANOSECONDS_OF_DAY)
        return _in_steps(data_type, ranged, 10 ** (9 - data_type.precision))
    if isinstance(data_type, DayTimeInterval):
        return _in_steps(data_type, Converted(array, {}), _INTERVAL_STEP[data_type.end])
    return Converted(array, {})


def _in_range(data_type: DataType, array: pa.Array, integer: pa.DataType, limits: tuple[int, int]) -> Converted:
    numbers = array.view(integer)
    found = pc.min_max(numbers)
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is None or (limits[0] <= low and high <= limits[1]):
        return Converted(array, {})
    outside = pc.or_(pc.less(numbers, limits[0]), pc.greater(numbers, limits[1]))
    return _without(data_type, array, outside)


def _in_steps(data_type: DataType, column: Converted, step: int) -> Converted:
    array = column.array
    if step == 1 or array.null_count == len(array):
        return column
    numbers = array.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    uneven = numbers % step != 0
    if not uneven.any():
        return column
    checked = _without(data_type, array, pa.array(uneven))
    return Converted(checked.array, {**checked.failures, **column.failures})


def _in_length(data_type: Char | Varchar, array: pa.Array) -> Converted:
    too_long = pc.greater(pc.utf8_length(array), data_type.length)
    checked = _without(data_type, array, too_long) if pc.any(too_long).as_py() else Converted(array, {})
    if isinstance(data_type, Varchar):
        return checked
    return Converted(pc.utf8_rpad(checked.array, width=data_type.length, padding=" "), checked.failures)


def _without(data_type: DataType, array: pa.Array, bad: pa.Array) -> Converted:
    bad = bad.fill_null(False)
    rows = np.flatnonzero(bad).tolist()
    failures = {row: Failure((), unfit(data_type, _shown(array, row))) for row in rows}
    return Converted(pc.if_else(bad, pa.scalar(None, type=array.type), array), failures)


def _shown(array: pa.Array, row: int) -> str:
    if pa.types.is_string(array.type):
        return f"{shorten(show(array, row))} of {len(array[row].as_py())} characters"
    return show(array, row)
