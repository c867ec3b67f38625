"""Accumulators: what is kept of a group so that a change can be added to it, or of a node of a tree.

Sums of whole numbers and decimals are exact, whatever the order and however large on the way; only the result must
fit its type. From sums of floats, bits, and the least and the greatest (`extremes.py`), nothing can be taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from headwater.evaluation.errors import EvaluationFailed
from headwater.expressions.moments import exact_moment, float_moment, merged_moments, moments_of
from headwater.expressions.rounding import divided
from headwater.operators.aggregate_call import Accumulator, AggregateCall, Arrays, Codes, fulfilling, times_counted
from headwater.operators.extremes import Extreme, ExtremeBy

_WHOLE = pa.decimal128(37, 0)
_DIGITS = 60
_SAFE = 2**62
ONLY = "Only"
"""The function of a call that looks at one row of each group at most."""
BITS: dict[str, tuple[np.ufunc, Callable[[pa.Array, pa.Array], pa.Array], int]] = {
    "bit_and": (np.bitwise_and, pc.bit_wise_and, -1),
    "bit_or": (np.bitwise_or, pc.bit_wise_or, 0),
    "bit_xor": (np.bitwise_xor, pc.bit_wise_xor, 0),
}
"""Functions of bits: how they are put together in numpy and in Arrow, and what nothing is."""
COUNTED = {"Min": "Every", "Max": "Any"}
"""The functions of calls that give the least or greatest of booleans which may be deleted."""
EXACT_MOMENT_DIGITS = 27
"""Squares of decimals with more digits than this do not fit; their variance is taken as of floats."""


def accumulator(call: AggregateCall, schema: pa.Schema) -> Accumulator:
    """The accumulator of a call over an input with these columns."""
    if call.function == "Count":
        return _Count(call)
    given, *others = (schema.field(name).type for name in call.arguments)
    if call.function in _OF_OTHERS:
        return _OF_OTHERS[call.function](call, given, *others)
    exact = not arrow_types.is_floating(given)
    if call.function in {"Sum", "Average"}:
        return _ExactSum(call, given) if exact else _FloatSum(call)
    return _ExactMoment(call, given) if exact else _FloatMoment(call)


def _sums(values: Codes, groups: Codes, count: int) -> Codes:
    """Sums by group of numbers that are small enough to be added."""
    made = np.zeros(count, np.int64)
    np.add.at(made, groups, values)
    return made


def _plus(old: pa.Array, new: pa.Array) -> pa.Array:
    """Both added, nothing counting as zero, in the same type."""
    return pc.add(old.fill_null(_zero(new.type)), new).cast(new.type)


def _zero(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(Decimal(0) if arrow_types.is_decimal(kind) else 0, kind)


def _nothingcounted(counts: pa.Array) -> pa.Array:
    return pc.equal(counts, 0)


class _Count:
    def __init__(self, call: AggregateCall) -> None:
        self._call = call
        self.fields = [("count", pa.int64())]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        return [pa.array(_sums(times_counted(self._call, change, weights), groups, count))]

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        return [_plus(old[0], new[0])]

    def result(self, values: Arrays) -> pa.Array:
        return values[0]


class _ExactSum:
    """The sum and the number of values, for `sum` and `avg` of whole numbers and decimals."""

    def __init__(self, call: AggregateCall, given: pa.DataType) -> None:
        self._call = call
        self._given = given
        self._total = pa.decimal256(_DIGITS, given.scale) if arrow_types.is_decimal(given) else _WHOLE
        self.fields = [("sum", self._total), ("count", pa.int64())]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        counted = times_counted(self._call, change, weights)
        column = change.column(self._call.arguments[0]).combine_chunks()
        total = weighted_sums(column, counted, groups, count, self._total)
        return [total, pa.array(_sums(counted, groups, count))]

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        return [_plus(old[0], new[0]), _plus(old[1], new[1])]

    def result(self, values: Arrays) -> pa.Array:
        total, counts = values
        nothing = _nothingcounted(counts)
        total = pc.if_else(nothing, pa.scalar(None, total.type), total)
        if self._call.function == "Sum":
            return _fitted(total, self._call.result.type)
        if arrow_types.is_decimal(self._call.result.type):
            return divided(total, counts, self._call.result.type)
        return pc.divide(total.cast(pa.float64()), counts.cast(pa.float64()))


def weighted_sums(column: pa.Array, weights: Codes, groups: Codes, count: int, total: pa.DataType) -> pa.Array:
    """The exact sums by group of values times weights."""
    if arrow_types.is_signed_integer(column.type):
        numbers = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        largest = max(abs(int(numbers.max(initial=0))), abs(int(numbers.min(initial=0))))
        if largest * int(np.abs(weights).max(initial=0)) * max(len(numbers), 1) < _SAFE:
            return pa.array(_sums(numbers * weights, groups, count)).cast(total)
        column = pa.array(numbers).cast(pa.decimal256(19, 0))
    wide = column.cast(pa.decimal256(max(column.type.precision, 1), column.type.scale))
    factors = pa.array(weights).cast(pa.decimal256(19, 0))
    products = pc.multiply(wide.fill_null(_zero(wide.type)), factors)
    return _summed(products, groups, count, total)


def _summed(products: pa.Array, groups: Codes, count: int, total: pa.DataType) -> pa.Array:
    """Sums by group; every group is there at least once."""
    table = pa.table({"group": pa.array(groups), "value": products})
    grouped = table.group_by("group", use_threads=False).aggregate([("value", "sum")])
    order = np.full(count, -1, np.int64)
    order[grouped.column("group").to_numpy()] = np.arange(grouped.num_rows)
    sums = grouped.column("value_sum").combine_chunks().take(pa.array(order, mask=order < 0))
    return sums.fill_null(_zero(sums.type)).cast(total)


def _fitted(total: pa.Array, wanted: pa.DataType) -> pa.Array:
    try:
        return total.cast(wanted)
    except pa.ArrowInvalid as error:
        msg = f"a sum does not fit {wanted}: [ARITHMETIC_OVERFLOW]"
        raise EvaluationFailed(
            msg, hint="cast the argument to a wider type, as in sum(CAST(x AS DECIMAL(38, 0)))"
        ) from error


class _FloatSum:
    """The sum and the number of values of floats that are never taken back."""

    def __init__(self, call: AggregateCall) -> None:
        self._call = call
        self.fields = [("sum", pa.float64()), ("count", pa.int64())]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        counted = times_counted(self._call, change, weights)
        values = floats(change.column(self._call.arguments[0]))
        products = np.where(counted != 0, values * counted, 0.0)
        total = np.zeros(count)
        with np.errstate(invalid="ignore", over="ignore"):
            np.add.at(total, groups, products)
        return [pa.array(total), pa.array(_sums(counted, groups, count))]

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        return [_plus(old[0], new[0]), _plus(old[1], new[1])]

    def result(self, values: Arrays) -> pa.Array:
        total = pc.if_else(_nothingcounted(values[1]), pa.scalar(None, pa.float64()), values[0])
        return total if self._call.function == "Sum" else pc.divide(total, values[1].cast(pa.float64()))


def floats(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """A column as floats, zero for null."""
    found: npt.NDArray[np.float64] = (
        column.combine_chunks().cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    )
    return found


class _Bits:
    """The bits of whole numbers put together: those that all have, that any has, or that an odd number has."""

    def __init__(self, call: AggregateCall, given: pa.DataType) -> None:
        self._call = call
        self._put, self._merge, self._none = BITS[call.function]
        self.fields = [("value", given)]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        times = times_counted(self._call, change, weights)
        column, rows = change.column(self._call.arguments[0]).combine_chunks(), times > 0
        found, seen = np.full(count, self._none), np.zeros(count, np.bool_)
        seen[groups[rows]] = True
        if self._call.function == "bit_xor":
            rows &= times % 2 == 1  # the same twice is nothing
        numbers = column.filter(pa.array(rows)).cast(pa.int64()).to_numpy(zero_copy_only=False)
        self._put.at(found, groups[rows], numbers)
        return [pa.array(found, mask=~seen).cast(self.fields[0][1])]

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        return [pc.coalesce(self._merge(old[0], new[0]), old[0], new[0])]

    def result(self, values: Arrays) -> pa.Array:
        return values[0]


class _CountedExtreme:
    """How often each of the two booleans is there: so the greatest, which is true, or the least may be deleted."""

    def __init__(self, call: AggregateCall, given: pa.DataType) -> None:
        self._call = call
        self.fields = [("true", pa.int64()), ("false", pa.int64())]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        counted = times_counted(self._call, change, weights)
        column = change.column(self._call.arguments[0]).combine_chunks()
        values = column.fill_null(False).to_numpy(zero_copy_only=False)
        return [pa.array(_sums(np.where(values == each, counted, 0), groups, count)) for each in (True, False)]

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        return [_plus(a, b) for a, b in zip(old, new, strict=True)]

    def result(self, values: Arrays) -> pa.Array:
        true, false = (pc.greater(each, 0) for each in values)
        found = true if self._call.function == COUNTED["Max"] else pc.invert(false)
        return pc.if_else(pc.or_(true, false), found, pa.scalar(None, pa.bool_()))


class _Only:
    """The value of the only row that fulfils the condition, null if there is none."""

    def __init__(self, call: AggregateCall, given: pa.DataType) -> None:
        self._call = call
        self.fields = [("value", given)]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        looked_at = np.flatnonzero(fulfilling(self._call, change) & (weights != 0))
        came = looked_at[weights[looked_at] > 0]
        chosen, touched = np.full(count, -1, np.int64), np.zeros(count, np.bool_)
        chosen[groups[came]] = came
        touched[groups[looked_at]] = True
        column = change.column(self._call.arguments[0]).combine_chunks()
        return [column.take(pa.array(chosen, mask=chosen < 0)), pa.array(touched)]

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        value, touched = new
        return [pc.if_else(touched, value, old[0])]

    def result(self, values: Arrays) -> pa.Array:
        return values[0]


class _ExactMoment:
    """The number, the sum and the sum of squares of exact numbers, for variances and standard deviations."""

    def __init__(self, call: AggregateCall, given: pa.DataType) -> None:
        self._call = call
        scale = given.scale if arrow_types.is_decimal(given) else 0
        self._scale = scale
        self._given = pa.decimal256(given.precision if arrow_types.is_decimal(given) else 19, scale)
        self.fields = [
            ("sum", pa.decimal256(_DIGITS, scale)),
            ("squares", pa.decimal256(75, 2 * scale)),
            ("count", pa.int64()),
        ]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        counted = times_counted(self._call, change, weights)
        column = change.column(self._call.arguments[0]).combine_chunks().cast(self._given)
        squares = pc.multiply(column, column)
        total = weighted_sums(column, counted, groups, count, self.fields[0][1])
        squared = weighted_sums(squares, counted, groups, count, self.fields[1][1])
        return [total, squared, pa.array(_sums(counted, groups, count))]

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        return [_plus(a, b) for a, b in zip(old, new, strict=True)]

    def result(self, values: Arrays) -> pa.Array:
        return _by_group(lambda *group: exact_moment(self._call.function, *group), values)


class _FloatMoment:
    """The number, the mean and the sum of squared deviations of floats that are never taken back."""

    def __init__(self, call: AggregateCall) -> None:
        self._call = call
        self.fields = [("count", pa.float64()), ("mean", pa.float64()), ("deviations", pa.float64())]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        counted = times_counted(self._call, change, weights).astype(np.float64)
        values = floats(change.column(self._call.arguments[0]))
        return [pa.array(part) for part in moments_of(values, counted, groups, count)]

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        before = [array.fill_null(0.0).to_numpy(zero_copy_only=False) for array in old]
        after = [array.to_numpy(zero_copy_only=False) for array in new]
        return [pa.array(part) for part in merged_moments(before, after)]

    def result(self, values: Arrays) -> pa.Array:
        return _by_group(lambda *group: float_moment(self._call.function, *group), values)


def _by_group(function: Callable[..., float | None], values: Sequence[pa.Array]) -> pa.Array:
    """A function of the accumulators, group by group."""
    columns = [array.to_pylist() for array in values]
    return pa.array([function(*group) for group in zip(*columns, strict=True)], pa.float64())


_OF_OTHERS: dict[str, Callable[..., Accumulator]] = {
    **dict.fromkeys(("Min", "Max"), Extreme),
    **dict.fromkeys(("MinBy", "MaxBy"), ExtremeBy),
    **dict.fromkeys(BITS, _Bits),
    **dict.fromkeys(COUNTED.values(), _CountedExtreme),
    ONLY: _Only,
}
"""What accumulates calls that need not be of numbers that are added up."""
