"""Expressions that need no Spark: those of which Arrow gives the very same values.

Rows need not cross to Java and back for `price < 10000`. The kinds here are few, and each has only one meaning; a
plan that holds any other is left to Spark. So are rows: where the two might differ (a number too large, a NaN,
letters beyond ASCII, a year of five digits), `Unsure` is raised and Spark evaluates the same rows, or says why it
cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from headwater.change.shape import shaped
from headwater.expressions.expression import (
    ColumnReference,
    Direct,
    Expand,
    Expression,
    Filter,
    FunctionCall,
    Panes,
    Value,
)

_DAY = 86_400_000_000
FIRST_MOMENT, LAST_MOMENT = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, in microseconds."""
_PLACES = {"yyyy": (0, 4), "MM": (5, 7), "dd": (8, 10), "HH": (11, 13), "mm": (14, 16), "ss": (17, 19)}
"""Where the parts of a moment are in its ISO form."""
_COARSE = {"yyyy": _DAY, "MM": _DAY, "dd": _DAY, "HH": 3_600_000_000, "mm": 60_000_000, "ss": 1_000_000}


class Unsure(Exception):
    """Spark may see these values otherwise."""


Datum = Any
"""An Arrow array, or a scalar that stands for all rows."""
Columns = dict[str, Datum]


def evaluate(direct: Direct, table: pa.Table) -> pa.Table:
    """The computed columns, for the inputs by position; `Unsure` if Spark should."""
    made: list[pa.Table] = []
    try:
        for batch in table.combine_chunks().to_batches():
            given = dict(zip(direct.inputs, batch.columns, strict=True))
            for columns, count in _stepped(direct.steps, given, batch.num_rows):
                arrays = [_filled(columns[name], count) for name in direct.outputs]
                made.append(shaped(pa.Table.from_arrays(arrays, direct.schema.names), direct.schema))
    except pa.ArrowException as error:
        raise Unsure from error
    return pa.concat_tables(made) if made else direct.schema.empty_table()


def panes_of(panes: Panes, column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """What stands for each value of a column; None if there are nulls, or if Spark should say."""
    try:
        parts = [_Known({panes.column: chunk}).value(panes.value) for chunk in column.chunks]
    except (Unsure, pa.ArrowException):
        return None
    made = pa.chunked_array(parts, panes.value.type)
    return None if column.null_count or made.null_count else made


def _stepped(steps: tuple[Filter | Expand, ...], columns: Columns, count: int) -> Iterator[tuple[Columns, int]]:
    """The rows after all steps, in one part or several."""
    if not steps:
        yield columns, count
        return
    step, known = steps[0], _Known(columns)
    if isinstance(step, Filter):
        mask = _filled(known.value(step.condition), count)
        columns = {name: _picked(column, mask) for name, column in columns.items()}
        yield from _stepped(steps[1:], columns, pc.sum(mask).as_py() or 0)
        return
    for each in step.several:
        yield from _stepped(steps[1:], {name: known.value(expression) for name, expression in each}, count)


class _Known:
    """The values of expressions over some rows, each computed once."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._values: dict[int, Datum] = {}

    def value(self, expression: Expression) -> Datum:
        if isinstance(expression, ColumnReference):
            return self._columns[expression.name]
        if isinstance(expression, Value):
            return expression.scalar
        found = self._values.get(id(expression))
        if found is None:
            found = _called(expression, [self.value(each) for each in expression.arguments])
            self._values[id(expression)] = found
        return found


def _called(call: FunctionCall, values: Sequence[Datum]) -> Datum:
    made = FUNCTIONS[call.function](call, *values)
    return made if made.type == call.type else made.cast(call.type)


def value_type(call: FunctionCall, types: Sequence[pa.DataType]) -> pa.DataType:
    """The type of what a call gives for columns of some types; an error if there is nothing that it could give."""
    pairs = zip(call.arguments, types, strict=True)
    values = [each.scalar if isinstance(each, Value) else pa.array([], kind) for each, kind in pairs]
    return _called(call, values).type


def _picked(column: Datum, mask: pa.Array) -> Datum:
    return column if isinstance(column, pa.Scalar) else column.filter(mask)


def _filled(value: Datum, count: int) -> pa.Array:
    if not isinstance(value, pa.Scalar):
        return value
    return pa.repeat(value, count) if value.is_valid else pa.nulls(count, value.type)


# -- functions: the call, then the values of its arguments


def _compared(function: str) -> Callable[..., Datum]:
    def compare(call: FunctionCall, one: Datum, other: Datum) -> Datum:
        for each in (one, other):
            _without_nan(each)
        return pc.call_function(function, [one, other])

    return compare


def _without_nan(value: Datum) -> None:
    if arrow_types.is_floating(value.type) and pc.any(pc.is_nan(value)).as_py():
        raise Unsure


def _arithmetic(function: str) -> Callable[..., Datum]:
    def compute(call: FunctionCall, *values: Datum) -> Datum:
        checked = "" if arrow_types.is_decimal(call.type) or arrow_types.is_floating(call.type) else "_checked"
        made = pc.call_function(function + checked, list(values))
        if made.type != call.type:
            raise Unsure
        return made

    return compute


def _remainder(call: FunctionCall, value: Datum, divisor: pa.Scalar) -> Datum:
    """What is left of a division by a positive number, with the sign of what was divided."""
    return pc.subtract(value, pc.multiply(pc.divide(value, divisor), divisor))


def _is_in(call: FunctionCall, value: Datum) -> Datum:
    wanted = pa.array([each.as_py() for each in call.options], value.type)
    return pc.if_else(pc.is_valid(value), pc.is_in(value, value_set=wanted), pa.scalar(None, pa.bool_()))


def _case(call: FunctionCall, *parts: Datum) -> Datum:
    """Conditions and values in turn, and then what holds otherwise."""
    *pairs, result = parts
    for condition, value in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
        result = pc.if_else(pc.fill_null(condition, fill_value=False), value, result)
    return result


def _same(call: FunctionCall, one: Datum, other: Datum) -> Datum:
    """Whether two values are equal, or both null."""
    _without_nan(one)
    _without_nan(other)
    equal = pc.fill_null(pc.equal(one, other), fill_value=False)
    return pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other)))


def _cast(call: FunctionCall, value: Datum) -> Datum:
    return pc.cast(value, call.type)


def _moment(call: FunctionCall, value: Datum) -> Datum:
    """Microseconds as a moment, or the other way round."""
    return pc.cast(value, pa.int64()) if arrow_types.is_timestamp(value.type) else pc.cast(value, call.type)


def _struct(call: FunctionCall, *values: Datum) -> Datum:
    count = next((len(value) for value in values if not isinstance(value, pa.Scalar)), None)
    if count is None:
        raise Unsure
    return pa.StructArray.from_arrays([_filled(value, count) for value in values], fields=list(call.type))


def _field(call: FunctionCall, value: Datum) -> Datum:
    return pc.struct_field(value, [call.options[0]])


def _micros(value: Datum) -> npt.NDArray[np.int64]:
    """The moments as numbers, 0 for null; `Unsure` if one is in no year of four digits."""
    if isinstance(value, pa.Scalar):
        raise Unsure
    numbers: npt.NDArray[np.int64] = pc.fill_null(pc.cast(value, pa.int64()), 0).to_numpy()
    if len(numbers) and (numbers.min() < FIRST_MOMENT or numbers.max() > LAST_MOMENT):
        raise Unsure
    return numbers


def _formatted(call: FunctionCall, value: Datum) -> Datum:
    """Moments as text: the parts of a pattern, and what is between them as it is."""
    parts: tuple[str, ...] = call.options
    numbers = _micros(value)
    step = min((_COARSE[part] for part in parts if part in _COARSE), default=_DAY)
    encoded = pa.array(numbers // step).dictionary_encode()
    moments = encoded.dictionary.to_numpy()
    iso = np.datetime_as_string((moments * step).astype("datetime64[us]"), unit="us").astype("U26")
    letters = iso.view("U1").reshape(len(moments), 26)
    texts = [
        "".join("".join(row[slice(*_PLACES[part])]) if part in _PLACES else part for part in parts)
        for row in letters
    ]
    indices = pa.array(encoded.indices.to_numpy(), mask=_nulls(value))
    return pc.take(pa.array(texts, pa.string()), indices)


def _nulls(value: pa.Array) -> npt.NDArray[np.bool_] | None:
    return value.is_null().to_numpy(zero_copy_only=False) if value.null_count else None


def _clock(call: FunctionCall, value: Datum) -> Datum:
    """Which hour, minute or second it is: so many of a unit, beginning anew after so many."""
    unit, turn = call.options
    return pa.array((_micros(value) // unit % turn).astype(np.int32), mask=_nulls(value))


def _truncated(call: FunctionCall, value: Datum) -> Datum:
    (unit,) = call.options
    return pa.array(_micros(value) // unit * unit, mask=_nulls(value)).cast(call.type)


def _later(call: FunctionCall, value: Datum) -> Datum:
    """The moments so many microseconds later; `Unsure` if that is in no year of four digits."""
    moments = pa.array(_micros(value) + call.options[0], mask=_nulls(value)).cast(call.type)
    _micros(moments)
    return moments


def _ascii(value: Datum) -> Datum:
    """The text, if every character is one byte."""
    if not pc.all(pc.string_is_ascii(value)).as_py() and pc.any(pc.is_valid(value)).as_py():
        raise Unsure
    return value


def _length(call: FunctionCall, value: Datum) -> Datum:
    return pc.binary_length(_ascii(value))


def _lower(call: FunctionCall, value: Datum) -> Datum:
    return pc.ascii_lower(_ascii(value))


def _upper(call: FunctionCall, value: Datum) -> Datum:
    return pc.ascii_upper(_ascii(value))


def _from(call: FunctionCall, value: Datum) -> Datum:
    """The text from a character on, counted from 0."""
    return pc.utf8_slice_codeunits(_ascii(value), *call.options)


def _replaced(call: FunctionCall, value: Datum) -> Datum:
    old, new = call.options
    return pc.replace_substring(value, old, new)


def _found(function: str) -> Callable[..., Datum]:
    def find(call: FunctionCall, value: Datum) -> Datum:
        return pc.call_function(function, [value], pc.MatchSubstringOptions(call.options[0]))

    return find


def _matched(call: FunctionCall, value: Datum) -> Datum:
    return pc.match_substring_regex(_ascii(value), call.options[0])


def _extracted(call: FunctionCall, value: Datum) -> Datum:
    """What the pattern's one named group holds where it is first found; empty where it is not."""
    found = pc.struct_field(pc.extract_regex(_ascii(value), call.options[0]), [0])
    return pc.if_else(pc.is_valid(value), pc.fill_null(found, ""), found)


def _joined(call: FunctionCall, *values: Datum) -> Datum:
    return pc.binary_join_element_wise(*values, "", null_handling="emit_null")


def _split(call: FunctionCall, value: Datum) -> Datum:
    return pc.split_pattern(value, call.options[0])


def _item(call: FunctionCall, value: Datum) -> Datum:
    """An item of each list, null where there are fewer: an error of Spark's if it should not be so."""
    place, must_be = call.options
    if isinstance(value, pa.Scalar):
        raise Unsure
    offsets = value.offsets.to_numpy()
    wanted = offsets[:-1] + place
    missing = wanted >= offsets[1:]
    present = value.is_valid().to_numpy(zero_copy_only=False)
    if must_be and bool((missing & present).any()):
        raise Unsure
    return pc.take(value.values, pa.array(wanted, mask=missing | ~present))


FUNCTIONS: dict[str, Callable[..., Datum]] = {
    "equal": _compared("equal"),
    "less": _compared("less"),
    "less_equal": _compared("less_equal"),
    "greater": _compared("greater"),
    "greater_equal": _compared("greater_equal"),
    "same": _same,
    "and": lambda _, one, other: pc.and_kleene(one, other),
    "or": lambda _, one, other: pc.or_kleene(one, other),
    "not": lambda _, value: pc.invert(value),
    "is_null": lambda _, value: pc.is_null(value),
    "is_not_null": lambda _, value: pc.is_valid(value),
    "is_in": _is_in,
    "add": _arithmetic("add"),
    "subtract": _arithmetic("subtract"),
    "multiply": _arithmetic("multiply"),
    "negate": _arithmetic("negate"),
    "remainder": _remainder,
    "case": _case,
    "coalesce": lambda _, *values: pc.coalesce(*values),
    "cast": _cast,
    "moment": _moment,
    "struct": _struct,
    "field": _field,
    "formatted": _formatted,
    "clock": _clock,
    "truncated": _truncated,
    "later": _later,
    "length": _length,
    "lower": _lower,
    "upper": _upper,
    "from": _from,
    "replaced": _replaced,
    "contains": _found("match_substring"),
    "starts": _found("starts_with"),
    "ends": _found("ends_with"),
    "matched": _matched,
    "extracted": _extracted,
    "joined": _joined,
    "split": _split,
    "item": _item,
}
