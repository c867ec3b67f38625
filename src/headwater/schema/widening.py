"""What the type of a column can become: Spark's `Cast.canUpCast`, as far as values need no Spark.

Left out of what Spark allows is what depends on the time zone (dates and instants), what would cut values off (an
interval in fewer fields), and texts of anything but whole numbers and booleans, which are not the same everywhere.
"""

from __future__ import annotations

from headwater.schema.types import (
    Array,
    Boolean,
    Byte,
    Char,
    DataType,
    DayTimeInterval,
    Decimal,
    Double,
    Float,
    Integer,
    Long,
    Map,
    Short,
    String,
    Struct,
    Varchar,
)

_NUMBERS: tuple[type[DataType], ...] = (Byte, Short, Integer, Long, Float, Double)
"""Each can become one that follows it; of large whole numbers floats have the nearest."""
_DIGITS: dict[type[DataType], int] = {Byte: 3, Short: 5, Integer: 10, Long: 20}
"""Of decimals that have all values of a type."""
_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")


def widens(old: DataType, new: DataType) -> bool:
    """Whether a column of one type can become one of the other; a type widens to itself."""
    if old == new:
        return True
    if isinstance(new, String | Varchar):
        return _text_widens(old, new)
    if isinstance(old, Decimal) or isinstance(new, Decimal):
        return _decimal_widens(old, new)
    if type(old) in _NUMBERS and type(new) in _NUMBERS:
        return _NUMBERS.index(type(old)) < _NUMBERS.index(type(new))
    if isinstance(old, DayTimeInterval) and isinstance(new, DayTimeInterval):
        return _UNITS.index(new.start) <= _UNITS.index(old.start) and _UNITS.index(old.end) <= _UNITS.index(new.end)
    return _nested_widens(old, new)


def _text_widens(old: DataType, new: String | Varchar) -> bool:
    if isinstance(old, String | Char | Varchar):
        fits = isinstance(new, String) or (not isinstance(old, String) and old.length <= new.length)
        return old.collation == new.collation and fits
    return new == String() and type(old) in {Byte, Short, Integer, Long, Boolean}


def _decimal_widens(old: DataType, new: DataType) -> bool:
    if isinstance(new, Decimal):
        if isinstance(old, Decimal):
            return old.precision - old.scale <= new.precision - new.scale and old.scale <= new.scale
        return type(old) in _DIGITS and _DIGITS[type(old)] <= new.precision - new.scale
    is_whole = isinstance(old, Decimal) and old.scale == 0
    return is_whole and type(new) in _DIGITS and old.precision < _DIGITS[type(new)]  # type: ignore[attr-defined]


def _nested_widens(old: DataType, new: DataType) -> bool:
    if isinstance(old, Array) and isinstance(new, Array):
        return (new.contains_null or not old.contains_null) and widens(old.element, new.element)
    if isinstance(old, Map) and isinstance(new, Map):
        nulls = new.value_contains_null or not old.value_contains_null
        return nulls and widens(old.key, new.key) and widens(old.value, new.value)
    if isinstance(old, Struct) and isinstance(new, Struct) and len(old.fields) == len(new.fields):
        return all(
            before.name == after.name
            and (after.nullable or not before.nullable)
            and widens(before.type, after.type)
            for before, after in zip(old.fields, new.fields, strict=True)
        )
    return False
