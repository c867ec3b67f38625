"""The calls of a GROUP BY, and what accumulates one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.plan.operators import Field, Names
from headwater.plan.registry import register

Codes = npt.NDArray[np.int64]
Arrays = list[pa.Array]


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


def times_counted(call: AggregateCall, change: pa.Table, weights: Codes) -> Codes:
    """The weights of the rows that the call looks at: those that fulfil its condition and have no null argument."""
    valid = fulfilling(call, change)
    for name in call.arguments:
        column = change.column(name)
        if column.null_count:
            valid &= column.is_valid().to_numpy()
    return np.where(valid, weights, 0)


def fulfilling(call: AggregateCall, change: pa.Table) -> npt.NDArray[np.bool_]:
    """Which rows fulfil the condition of the call."""
    if call.condition is None:
        return np.ones(change.num_rows, np.bool_)
    found = change.column(call.condition).combine_chunks().fill_null(False).to_numpy(zero_copy_only=False)
    return np.array(found)
