"""The least and the greatest, in Spark's order, in which NaN is greater than any number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from headwater.change.canonical import canonical_order
from headwater.operators.aggregate_call import AggregateCall, Arrays, Codes, fulfilling, times_counted

Mask = npt.NDArray[np.bool_]


class Extreme:
    """The least or the greatest value."""

    def __init__(self, call: AggregateCall, given: pa.DataType) -> None:
        self._call = call
        self.fields = [("value", given)]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        """Those of a change alone."""
        counted = times_counted(self._call, change, weights) > 0
        column = change.column(self._call.arguments[0]).combine_chunks()
        return [self._best(column.filter(pa.array(counted)), groups[counted], count)]

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        """Those of both."""
        choose = pc.min_element_wise if self._call.function == "Min" else pc.max_element_wise
        best = choose(_as_number(old[0]), _as_number(new[0]), skip_nulls=True)
        return [_from_number(best, self.fields[0][1])]

    def result(self, values: Arrays) -> pa.Array:
        """What was kept."""
        return values[0]

    def _best(self, values: pa.Array, groups: Codes, count: int) -> pa.Array:
        if values.null_count:
            valid = values.is_valid()
            values, groups = values.filter(valid), groups[valid.to_numpy(zero_copy_only=False)]
        numbers = _as_number(values)
        if arrow_types.is_signed_integer(numbers.type):
            return _from_number(self._best_number(numbers.cast(pa.int64()), groups, count), values.type)
        ranks, ordered = _ranked(values)
        return ordered.take(self._best_number(pa.array(ranks), groups, count))

    def _best_number(self, numbers: pa.Array, groups: Codes, count: int) -> pa.Array:
        least, best = self._call.function == "Min", np.iinfo(np.int64)
        found, seen = np.full(count, best.max if least else best.min), np.zeros(count, np.bool_)
        (np.minimum if least else np.maximum).at(found, groups, numbers.to_numpy())
        seen[groups] = True
        return pa.array(found, mask=~seen)


class ExtremeBy:
    """The value of the row with the least or the greatest of another column, not null there.

    Of rows that are tied it is the last, in the canonical order of the values.
    """

    def __init__(self, call: AggregateCall, given: pa.DataType, by: pa.DataType) -> None:
        self._call = call
        self.fields = [("value", given), ("by", by)]

    def partial(self, change: pa.Table, weights: Codes, groups: Codes, count: int) -> Arrays:
        """Those of a change alone."""
        columns = [change.column(name).combine_chunks() for name in self._call.arguments]
        return self._best(columns, fulfilling(self._call, change) & (weights > 0), groups, count)

    def merge(self, old: Arrays, new: Arrays) -> Arrays:
        """Those of both."""
        count = len(new[0])
        columns = [pa.concat_arrays(pair) for pair in zip(old, new, strict=True)]
        return self._best(columns, np.ones(2 * count, np.bool_), np.tile(np.arange(count), 2), count)

    def result(self, values: Arrays) -> pa.Array:
        """What was kept."""
        return values[0]

    def _best(self, columns: Arrays, rows: Mask, groups: Codes, count: int) -> Arrays:
        value, by = columns
        places = np.flatnonzero(rows & by.is_valid().to_numpy(zero_copy_only=False))
        numbers = _numbers(by.take(pa.array(places)))
        numbers = ~numbers if self._call.function == "MinBy" else numbers
        best = np.full(count, np.iinfo(np.int64).min)
        np.maximum.at(best, groups[places], numbers)
        places = places[numbers == best[groups[places]]]
        if len(places) > len(np.unique(groups[places])):
            places = places[canonical_order(pa.table({"value": value.take(pa.array(places))}))]
        chosen = np.full(count, -1, np.int64)
        chosen[groups[places]] = places  # the last
        index = pa.array(chosen, mask=chosen < 0)
        return [column.take(index) for column in columns]


def _numbers(values: pa.Array) -> Codes:
    """Whole numbers in the order of values without nulls, the same for the same."""
    numbers = _as_number(values)
    if arrow_types.is_signed_integer(numbers.type):
        found: Codes = numbers.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return found
    return _ranked(values)[0]


def _ranked(values: pa.Array) -> tuple[Codes, pa.Array]:
    """The rank of each value, and the different values in order."""
    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy().astype(np.int64)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[encoded.indices.to_numpy()], encoded.dictionary.take(pa.array(order))


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
