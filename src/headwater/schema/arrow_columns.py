"""Arrow arrays turned into the exact Arrow type of a column, wherever that loses nothing.

An array that has the type already is only checked for valid text and for the limits of its Spark type. Allowed
are other widths of integers, wider floats, other decimals, integers for decimals and floats, other units and
zones of times, other layouts of the same thing (large, view, dictionary, run-end), structs by field name, and
nulls; each checked value by value. All else is a wrong type.
"""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from headwater.errors import SchemaError
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
    null_rows,
    nullness,
    show,
    unfit,
    wrong_type,
)
from headwater.schema.limits import within_limits
from headwater.schema.python_columns import from_python, unknown_name
from headwater.schema.types import Column, DataType

_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


def from_arrow(data_type: DataType, array: pa.Array, zone: ZoneInfo) -> Converted:
    """The array in the type's Arrow type. Zoneless timestamps for a TIMESTAMP are taken in the zone."""
    array = _decoded(array)
    if arrow_types.is_null(array.type):
        return Converted(pa.nulls(len(array), data_type.arrow), {})
    if isinstance(data_type, types.Array) and _is_list(array.type):
        return _from_lists(data_type, array, zone)
    if isinstance(data_type, types.Map) and arrow_types.is_map(array.type):
        return _from_maps(data_type, array, zone)
    if isinstance(data_type, types.Struct | types.Variant) and arrow_types.is_struct(array.type):
        return _from_structs(data_type, array, zone)
    if data_type.atomic:
        return _from_atoms(data_type, array, zone)
    return _refused(data_type, array)


def fields_from_arrow(
    fields: Sequence[Column],
    refusals: Sequence[str | None],
    given: Sequence[tuple[str, Converted | pa.Array]],
    length: int,
    zone: ZoneInfo,
    *,
    ignored: frozenset[str] = frozenset(),
    absent: frozenset[int] = frozenset(),
) -> tuple[list[pa.Array], dict[int, Failure]]:
    """One array per field from named arrays, and the first failure of each of the `length` rows.

    A field without an array, and an array whose name no field has, fail every row that is not `absent`.
    """
    present = [row for row in range(length) if row not in absent] if absent else range(length)
    by_name: dict[str, list[Converted | pa.Array]] = {}
    for name, array in given:
        by_name.setdefault(name.lower(), []).append(array)
    columns = [_find(field, by_name.get(field.name.lower(), []), length, present, zone) for field in fields]
    failures = merge_fields([field.name for field in fields], refusals, columns, absent)
    known = {field.name.lower() for field in fields} | ignored
    for name, _ in given:
        if name.lower() not in known:
            failure = unknown_name(name, [field.name for field in fields])
            for row in present:
                failures.setdefault(row, failure)
    return [column.array for column in columns], failures


def _find(
    field: Column, found: Sequence[Converted | pa.Array], length: int, present: Sequence[int], zone: ZoneInfo
) -> Converted:
    """The field's column, from the one array that was given for it."""
    if len(found) == 1:
        return found[0] if isinstance(found[0], Converted) else from_arrow(field.type, found[0], zone)
    failure = Failure((), "is given twice" if found else "is missing")
    return Converted(pa.nulls(length, field.type.arrow), dict.fromkeys(present, failure))


def _decoded(array: pa.Array) -> pa.Array:
    """The array without dictionary or run-end encoding."""
    if arrow_types.is_dictionary(array.type):
        words = array.dictionary
        if arrow_types.is_string_view(words.type) or arrow_types.is_binary_view(words.type):
            words = words.cast(pa.large_string() if arrow_types.is_string_view(words.type) else pa.large_binary())
        return words.take(array.indices)
    if arrow_types.is_run_end_encoded(array.type):
        return pc.run_end_decode(array)
    return array


def _refused(data_type: DataType, array: pa.Array) -> Converted:
    """Every value is of the wrong type."""
    failures = {
        row: Failure((), wrong_type(data_type, str(array.type), show(array, row)))
        for row in np.flatnonzero(array.is_valid()).tolist()
    }
    return Converted(pa.nulls(len(array), data_type.arrow), failures)


def _from_atoms(data_type: DataType, array: pa.Array, zone: ZoneInfo) -> Converted:
    target = data_type.arrow
    if array.type != target:
        if not _same_kind(data_type, array.type):
            return _refused(data_type, array)
        if arrow_types.is_timestamp(target) or arrow_types.is_duration(target):
            return _from_times(data_type, array, zone)
    if arrow_types.is_string(target):
        return _from_text(data_type, array)
    if array.type != target:
        try:
            array = _cast(array, target)
        except pa.ArrowInvalid:
            return from_python(data_type, array.to_pylist(), zone)
    return within_limits(data_type, array)


def _same_kind(data_type: DataType, given: pa.DataType) -> bool:
    """Whether values of the given type may fit, one by one."""
    target = data_type.arrow
    if arrow_types.is_integer(target):
        return bool(arrow_types.is_integer(given))
    if arrow_types.is_floating(target):
        narrower = arrow_types.is_floating(given) and given.bit_width <= target.bit_width
        return bool(narrower or arrow_types.is_integer(given))
    if arrow_types.is_decimal(target):
        return bool(arrow_types.is_decimal(given) or arrow_types.is_integer(given))
    if isinstance(data_type, types.TimestampNtz):
        return bool(arrow_types.is_timestamp(given) and given.tz is None)
    kinds = {
        types.Timestamp: (arrow_types.is_timestamp,),
        types.DayTimeInterval: (arrow_types.is_duration,),
        types.Date: (arrow_types.is_date,),
        types.Time: (arrow_types.is_time,),
        types.Binary: (
            arrow_types.is_binary,
            arrow_types.is_large_binary,
            arrow_types.is_binary_view,
            arrow_types.is_fixed_size_binary,
        ),
    }
    text = (arrow_types.is_string, arrow_types.is_large_string, arrow_types.is_string_view)
    if arrow_types.is_string(target):
        return any(is_kind(given) for is_kind in text)
    return any(is_kind(given) for is_kind in kinds.get(type(data_type), ()))


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    """A checked cast; ArrowInvalid if any value would change."""
    if arrow_types.is_decimal(target) and arrow_types.is_integer(array.type):
        array = array.cast(pa.decimal128(20, 0))
    return array.cast(target)


def _from_text(data_type: DataType, array: pa.Array) -> Converted:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            what = f"damaged Arrow data: {error}"
            raise SchemaError(what) from error
        return _valid_text(data_type, array)
    if not arrow_types.is_string(array.type):
        array = array.cast(pa.string())
    return within_limits(data_type, array)


def _valid_text(data_type: DataType, array: pa.Array) -> Converted:
    failures: dict[int, Failure] = {}
    texts: list[str | None] = []
    for row, raw in enumerate(array.cast(pa.large_binary()).to_pylist()):
        try:
            texts.append(None if raw is None else raw.decode())
        except UnicodeDecodeError as error:
            texts.append(None)
            failures[row] = Failure((), f"invalid UTF-8 at byte {error.start}")
    checked = within_limits(data_type, pa.array(texts, type=pa.string()))
    return Converted(checked.array, {**checked.failures, **failures})


def _from_times(data_type: DataType, array: pa.Array, zone: ZoneInfo) -> Converted:
    """Timestamps and durations of another unit or zone."""
    target = data_type.arrow
    zoneless = arrow_types.is_timestamp(array.type) and array.type.tz is None
    unit = pa.timestamp("us", tz=array.type.tz) if arrow_types.is_timestamp(target) else target
    try:
        exact = Converted(array.cast(unit), {})
    except pa.ArrowInvalid:
        exact = _exact(data_type, array, unit)
    checked = within_limits(types.TimestampNtz() if zoneless else data_type, exact.array)
    failures = {**checked.failures, **exact.failures}
    if zoneless and target.tz is not None:
        return _localised(data_type, Converted(checked.array, failures), zone)
    return Converted(checked.array.cast(target), failures)


def _exact(data_type: DataType, array: pa.Array, unit: pa.DataType) -> Converted:
    """The times in microseconds, one by one; those that have more digits or are too far away fail."""
    per_second = _PER_SECOND[array.type.unit]
    failures: dict[int, Failure] = {}
    numbers: list[int | None] = array.view(pa.int64()).to_pylist()
    for row, number in enumerate(numbers):
        if number is not None:
            microseconds, rest = divmod(number * 1_000_000, per_second)
            numbers[row] = microseconds
            if rest or not -(2**63) <= microseconds < 2**63:
                numbers[row] = None
                failures[row] = Failure((), unfit(data_type, f"{number} {array.type.unit}"))
    return Converted(pa.array(numbers, type=pa.int64()).view(unit), failures)


def _localised(data_type: DataType, column: Converted, zone: ZoneInfo) -> Converted:
    """Zoneless microseconds as instants in the zone.

    Arrow's own conversion knows no rule that agrees with Python's and Java's for hours that a change of the
    clock skips, so such arrays go value by value.
    """
    if zone.key == "UTC":
        return Converted(column.array.cast(data_type.arrow), column.failures)
    try:
        local = pc.assume_timezone(column.array, zone.key, ambiguous="earliest", nonexistent="raise")
        checked = within_limits(data_type, local.cast(data_type.arrow))
    except pa.ArrowInvalid:
        checked = from_python(data_type, column.array.to_pylist(), zone)
    return Converted(checked.array, {**checked.failures, **column.failures})


def _is_list(given: pa.DataType) -> bool:
    kinds = (arrow_types.is_list, arrow_types.is_large_list, arrow_types.is_fixed_size_list)
    return any(is_kind(given) for is_kind in kinds)


def _from_lists(data_type: types.Array, array: pa.Array, zone: ZoneInfo) -> Converted:
    nesting = Nesting(pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False))
    element = from_arrow(data_type.element, array.flatten(), zone)
    refusal = None if data_type.contains_null else "cannot be null"
    failures = list_failures(nesting, element, refusal)
    absent = array.is_null()
    return Converted(build_list(data_type, nesting, element.array, absent), failures)


def _from_maps(data_type: types.Map, array: pa.Array, zone: ZoneInfo) -> Converted:
    offsets = array.offsets.to_numpy()  # keys and items know nothing of slices and nulls
    entries = slice(offsets[0], offsets[-1]) if len(array) else slice(0, 0)
    nesting = Nesting(np.diff(offsets) if len(array) else [])
    keys = from_arrow(data_type.key, array.keys[entries], zone)
    items = from_arrow(data_type.value, array.items[entries], zone)
    refusal = None if data_type.value_contains_null else "cannot be null"
    failures = list_failures(nesting, items, refusal)
    failures.update(list_failures(nesting, keys, "the key of a map cannot be null"))
    for row in null_rows(array):
        failures.pop(row, None)
    return Converted(build_map(data_type, nesting, keys.array, items.array, array.is_null()), failures)


def _from_structs(data_type: types.Struct | types.Variant, array: pa.Array, zone: ZoneInfo) -> Converted:
    fields = fields_of(data_type)
    names = [field.name for field in array.type]
    given = list(zip(names, array.flatten(), strict=True))
    absent = array.is_null()
    gone = frozenset(np.flatnonzero(absent).tolist()) if array.null_count else frozenset()
    arrays, failures = fields_from_arrow(fields, nullness(fields), given, len(array), zone, absent=gone)
    return Converted(build_struct(data_type, arrays, absent), failures)
