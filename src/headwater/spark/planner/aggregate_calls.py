"""The aggregates of a query, as calls that our accumulators understand."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as arrow_types

from headwater.operators.accumulators import BITS, COUNTED, EXACT_MOMENT_DIGITS, ONLY
from headwater.operators.aggregate_call import AggregateCall
from headwater.schema import parse
from headwater.schema.types import Decimal
from headwater.spark.catalyst import Catalyst, Java, label
from headwater.spark.planner.fields import field_of, oddity

_MOMENTS = {"VariancePop", "VarianceSamp", "StddevPop", "StddevSamp"}
_WHOLE_NUMBERS = {"TINYINT", "SMALLINT", "INT", "BIGINT"}
_EXTREMES_BY = {"MaxBy", "MinBy"}
_KNOWN = {"Count", "Sum", "Average", "Min", "Max"} | _MOMENTS | _EXTREMES_BY | BITS.keys()


Alone = Callable[[Java], bool]


class NotAddedError(Exception):
    """A change cannot just be added to what is kept of a group; says why."""


class AggregateCalls:
    """Finds the aggregates in the results of a GROUP BY."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def of(
        self, results: list[Java], wanted: list[Java], *, retracts: bool, alone: Alone
    ) -> tuple[tuple[AggregateCall, ...], list[tuple[Java, Java]]]:
        """The calls, and each aggregate with the attribute that takes its place; or `NotAddedError`.

        What the calls need of the input is added to `wanted`. `alone` tells of a condition whether at most one row
        of a group fulfils it.
        """
        calls: list[AggregateCall] = []
        found: list[tuple[Java, Java]] = []
        for result in results:
            for part in self._catalyst.walk(result):
                if part.nodeName() != "AggregateExpression" or any(part.semanticEquals(old) for old, _ in found):
                    continue
                attribute = part.resultAttribute()
                found.append((part, attribute))
                calls.append(self._call(part, attribute, wanted, retracts=retracts, alone=alone))
        return tuple(calls), found

    def _call(
        self, part: Java, attribute: Java, wanted: list[Java], *, retracts: bool, alone: Alone
    ) -> AggregateCall:
        function = part.aggregateFunction()
        kind, condition = function.nodeName(), self._catalyst.option(part.filter())
        if kind == "First" and condition is not None and alone(condition):
            kind = ONLY
        if part.isDistinct():
            raise NotAddedError(f"{function.prettyName()} is of DISTINCT values")
        if kind not in _KNOWN | {ONLY} or function.prettyName().startswith("try_"):
            raise NotAddedError(f"{function.prettyName()} cannot be added to")
        arguments = self._arguments(function, kind)
        columns = [self._column(argument, wanted) for argument in arguments]
        if retracts and kind in COUNTED and arguments[0].dataType().sql() == "BOOLEAN":
            kind = COUNTED[kind]
        checked = list(zip(arguments, columns, strict=True))[1 if kind in _EXTREMES_BY else 0 :]
        for argument, column in checked if kind not in {"Count", ONLY, *COUNTED.values()} else ():
            self._check(part, kind, argument, column, retracts=retracts)
        result = field_of(attribute)
        return AggregateCall(
            kind,
            tuple(label(column) for column in columns),
            result,
            None if condition is None else label(self._column(condition, wanted)),
        )

    def _arguments(self, function: Java, kind: str) -> list[Java]:
        arguments = self._catalyst.children(function)
        if kind == "Count":
            return [argument for argument in arguments if argument.nullable()]
        if kind in _MOMENTS:
            return [self._exact(arguments[0])]
        return arguments[: 2 if kind in _EXTREMES_BY else 1]

    def _exact(self, argument: Java) -> Java:
        """Spark casts to double before it takes a variance; whole numbers and decimals are summed exactly."""
        if argument.nodeName() == "Cast":
            inner = self._catalyst.children(argument)[0]
            kind = parse(f"x {inner.dataType().sql()}").columns[0].type
            if kind.ddl in _WHOLE_NUMBERS or (isinstance(kind, Decimal) and kind.precision <= EXACT_MOMENT_DIGITS):
                return inner
        return argument

    def _column(self, expression: Java, wanted: list[Java]) -> Java:
        """The expression as a column of the input."""
        column = expression
        if expression.nodeName() != "AttributeReference":
            for known in wanted:
                if known.nodeName() == "Alias" and self._catalyst.children(known)[0].semanticEquals(expression):
                    return known
            column = self._catalyst.alias(expression, "argument")
        wanted.append(column)
        return column

    def _check(self, part: Java, kind: str, argument: Java, column: Java, *, retracts: bool) -> None:
        given = field_of(column if column.nodeName() == "AttributeReference" else column.toAttribute())
        name = part.aggregateFunction().prettyName()
        if kind in {"Min", "Max"} | _EXTREMES_BY | BITS.keys():
            if not given.atomic or oddity(argument):
                raise NotAddedError(f"{name} is of {argument.dataType().sql()}")
            if retracts:
                raise NotAddedError(f"the {name} may be deleted")
        elif not _numeric(given.type):
            raise NotAddedError(f"{name} is of {argument.dataType().sql()}")
        elif arrow_types.is_floating(given.type) and retracts:
            raise NotAddedError(f"{name} of floats would drift when rows are deleted")
        elif kind in {"Sum", "Average"} and not arrow_types.is_floating(given.type) and not self._catalyst.ansi:
            raise NotAddedError(f"{name} may be too large, which without ANSI is no error")


def _numeric(given: pa.DataType) -> bool:
    return bool(
        arrow_types.is_signed_integer(given) or arrow_types.is_floating(given) or arrow_types.is_decimal(given)
    )
