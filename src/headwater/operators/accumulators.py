"""Accumulators: what is kept of a group so that a change can be added to it.

Sums of whole numbers and decimals are exact, whatever the order and however large on the way; only the result must
fit its type. Sums of floats, and the least and the greatest, are kept for inputs that never take rows back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from headwater.evaluation.errors import EvaluationFailed
from headwater.expressions.moments import exact_moment, float_moment, merged_moments, moments_of
from headwater.expressions.rounding import divided
from headwater.plan.operators import Field, Names
from headwater.plan.registry import register

Codes = npt.NDArray[np.int64]
Arrays = list[pa.Array]
_WHOLE = pa.decimal128(37, 0)
_DIGITS = 60
_SAFE = 2**62
ONLY = "Only"
"""The function of a call that looks at one row of each group at most."""
EXACT_MOMENT_DIGITS = 27
"""Squares of decimals with more digits than this do not fit; their variance is taken as of floats."""


@register("Call")
@dataclass(frozen=True)
class AggregateCall:
    """One aggregate: `function` over columns of the input, where the column `condition`, if given, is true."""

    function: str
    arguments: tuple[str, ...]
    result: Field
    condition: str | None = None

    def renamed(self, names: Names) -> AggregateCall:
        """The same of columns with other names."""
        condition = None if self.condition is None else names[self.condition]
        (result,) = names.fields((self.result,))
        return replace(self, arguments=names.all(self.arguments), result=result, condition=condition)


class Accumulator(Protocol):
    """One call's share of a group's state. All arrays have one value per group."""

    fields: list[tuple[str, pa.DataType]]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        """The accumulators of the change alone."""
        ...

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        """The accumulators of both together; old ones are null where there was no group."""
        ...

    def result(self, values: Arrays) -> pa.Array:
        """What the call gives."""
        ...


def accumulator(call: AggregateCall, schema: pa.Schema) -> Accumulator:
    """The accumulator of a call over an input with these columns."""
    if call.function == "Count":
        return _Count(call)
    given = schema.field(call.arguments[0]).type
    if call.function in {"Min", "Max"}:
        return _Extreme(call, given)
    if call.function == ONLY:
        return _Only(call, given)
    exact = not arrow_types.is_floating(given)
    if call.function in {"Sum", "Average"}:
        return _ExactSum(call, given) if exact else _FloatSum(call)
    return _ExactMoment(call, given) if exact else _FloatMoment(call)


def _counted(call: AggregateCall, change: pa.Table, weights: Codes) -> Codes:
    """The weights of the rows that the call looks at: those that fulfil its condition and have no null argument."""
    valid = _fulfilling(call, change)
    for name in call.arguments:
        column = change.column(name)
        if column.null_count:
            valid &= column.is_valid().to_numpy()
    return np.where(valid, weights, 0)


def _fulfilling(call: AggregateCall, change: pa.Table) -> npt.NDArray[np.bool_]:
    """Which rows fulfil the condition of the call."""
    if call.condition is None:
        return np.ones(change.num_rows, np.bool_)
    found = change.column(call.condition).combine_chunks().fill_null(False).to_numpy(zero_copy_only=False)
    return np.array(found)


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


def _nothing_counted(counts: pa.Array) -> pa.Array:
    return pc.equal(counts, 0)


class _Count:
    def __init__(self, call: AggregateCall) -> None:
        self._call = call
        self.fields = [("count", pa.int64())]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        return [pa.array(_sums(_counted(self._call, change, weights), groups, count))]

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
        counted = _counted(self._call, change, weights)
        column = change.column(self._call.arguments[0]).combine_chunks()
        total = weighted_sums(column, counted, groups, count, self._total)
        return [total, pa.array(_sums(counted, groups, count))]

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        return [_plus(old[0], new[0]), _plus(old[1], new[1])]

    def result(self, values: Arrays) -> pa.Array:
        total, counts = values
        nothing = _nothing_counted(counts)
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
        counted = _counted(self._call, change, weights)
        values = floats(change.column(self._call.arguments[0]))
        products = np.where(counted != 0, values * counted, 0.0)
        total = np.zeros(count)
        with np.errstate(invalid="ignore", over="ignore"):
            np.add.at(total, groups, products)
        return [pa.array(total), pa.array(_sums(counted, groups, count))]

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        return [_plus(old[0], new[0]), _plus(old[1], new[1])]

    def result(self, values: Arrays) -> pa.Array:
        total = pc.if_else(_nothing_counted(values[1]), pa.scalar(None, pa.float64()), values[0])
        return total if self._call.function == "Sum" else pc.divide(total, values[1].cast(pa.float64()))


def floats(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """A column as floats, zero for null."""
    found: npt.NDArray[np.float64] = (
        column.combine_chunks().cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    )
    return found


class _Extreme:
    """The least or the greatest value so far, in Spark's order: NaN is greater than any number."""

    def __init__(self, call: AggregateCall, given: pa.DataType) -> None:
        self._call = call
        self.fields = [("value", given)]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        counted = _counted(self._call, change, weights) > 0
        column = change.column(self._call.arguments[0]).combine_chunks()
        return [self._best(column.filter(pa.array(counted)), groups[counted], count)]

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        choose = pc.min_element_wise if self._call.function == "Min" else pc.max_element_wise
        best = choose(_as_number(old[0]), _as_number(new[0]), skip_nulls=True)
        return [_from_number(best, self.fields[0][1])]

    def result(self, values: Arrays) -> pa.Array:
        return values[0]

    def _best(self, values: pa.Array, groups: Codes, count: int) -> pa.Array:
        if values.null_count:
            valid = values.is_valid()
            values, groups = values.filter(valid), groups[valid.to_numpy(zero_copy_only=False)]
        numbers = _as_number(values)
        if arrow_types.is_signed_integer(numbers.type):
            return _from_number(self._best_number(numbers.cast(pa.int64()), groups, count), values.type)
        encoded = values.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary).to_numpy().astype(np.int64)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        ranks = pa.array(rank[encoded.indices.to_numpy()])
        return encoded.dictionary.take(pa.array(order).take(self._best_number(ranks, groups, count)))

    def _best_number(self, numbers: pa.Array, groups: Codes, count: int) -> pa.Array:
        least, best = self._call.function == "Min", np.iinfo(np.int64)
        found, seen = np.full(count, best.max if least else best.min), np.zeros(count, np.bool_)
        (np.minimum if least else np.maximum).at(found, groups, numbers.to_numpy())
        seen[groups] = True
        return pa.array(found, mask=~seen)


def _as_number(values: pa.Array) -> pa.Array:
    """Values that are numbers underneath as whole ones, in the same order; others as they are.

    -0.0 is less than 0.0, so that which of them is given does not depend on the order of rows.
    """
    if arrow_types.is_floating(values.type):
        return _in_order_of_floats(values)
    if arrow_types.is_boolean(values.type):
        return values.cast(pa.int8())
    return values.view(pa.int64()) if arrow_types.is_timestamp(values.type) else values


def _from_number(numbers: pa.Array, kind: pa.DataType) -> pa.Array:
    if arrow_types.is_floating(kind):
        bits = _turned(numbers.fill_null(0).to_numpy(zero_copy_only=False)).view(np.float64)
        return pa.array(bits, mask=_nulls(numbers)).cast(kind)
    return numbers.view(kind) if arrow_types.is_timestamp(kind) else numbers.cast(kind)


def _in_order_of_floats(values: pa.Array) -> pa.Array:
    given = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(given), np.nan, given).view(np.int64)
    return pa.array(_turned(bits), mask=_nulls(values))


def _turned(bits: Codes) -> Codes:
    """Bits of floats as numbers in the same order, and back."""
    return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)


def _nulls(values: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = values.is_null().to_numpy(zero_copy_only=False)
    return found


class _Only:
    """The value of the only row that fulfils the condition, null if there is none."""

    def __init__(self, call: AggregateCall, given: pa.DataType) -> None:
        self._call = call
        self.fields = [("value", given)]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        looked_at = np.flatnonzero(_fulfilling(self._call, change) & (weights != 0))
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
        counted = _counted(self._call, change, weights)
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
        counted = _counted(self._call, change, weights).astype(np.float64)
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
