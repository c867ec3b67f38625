"""Spark's expressions as those that need no Spark, where all of a fragment's are of kinds with one meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from math import copysign
from typing import Any

import pyarrow as pa
import pyarrow.types as arrow_types
from py4j.java_gateway import get_field

from headwater.errors import SchemaError
from headwater.expressions.evaluate import FIRST_MOMENT, LAST_MOMENT, Unsure, value_type
from headwater.expressions.expression import (
    ColumnReference,
    Direct,
    Expand,
    Expression,
    Filter,
    FunctionCall,
    Value,
)
from headwater.expressions.panes import with_panes
from headwater.expressions.patterns import groups, is_plain, only_group
from headwater.schema import parse
from headwater.spark.catalyst import Catalyst, Java, label

_UTC = "UTC"
_COMPARISONS = {
    "EqualTo": "equal",
    "LessThan": "less",
    "LessThanOrEqual": "less_equal",
    "GreaterThan": "greater",
    "GreaterThanOrEqual": "greater_equal",
    "EqualNullSafe": "same",
}
_LOGIC = {"And": "and", "Or": "or", "Not": "not", "IsNull": "is_null", "IsNotNull": "is_not_null"}
_ARITHMETIC = {"Add": "add", "Subtract": "subtract", "Multiply": "multiply", "UnaryMinus": "negate"}
_SEARCHES = {"Contains": "contains", "StartsWith": "starts", "EndsWith": "ends"}
_CASES = {"Lower": "lower", "Upper": "upper", "Length": "length"}
_CLOCK = {"Hour": (3_600_000_000, 24), "Minute": (60_000_000, 60), "Second": (1_000_000, 60)}
_UNITS = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}
_THROUGH = {"Alias", "KnownNullable", "KnownNotNull"}
_PARTS = re.compile(r"([A-Za-z])\1*|[-/:., ]")
_KNOWN_PARTS = re.compile(r"yyyy|MM|dd|HH|mm|ss|[-/:., ]")
_PLAIN = re.compile(
    r"VOID|BOOLEAN|TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)|STRING|BINARY|DATE|TIMESTAMP(_NTZ)?"
)
_ODD = re.compile(r"COLLATE|INTERVAL|TIME\(|VARIANT|MAP<")
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}


class _Unfit(Exception):
    """Only Spark can."""


def compile_direct(
    catalyst: Catalyst, steps: Iterable[Java], inputs: Sequence[str], outputs: Sequence[str], schema: pa.Schema
) -> Direct | None:
    """Steps over rows of `inputs`, the lowest first, that give `outputs`; None if Spark is to evaluate them."""
    compiler = _Compiler(catalyst)
    try:
        return with_panes(Direct(tuple(map(compiler.step, steps)), tuple(inputs), tuple(outputs), schema))
    except (_Unfit, SchemaError):
        return None


class _Compiler:
    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._known: dict[Expression, Expression] = {}
        self._types: dict[Expression, pa.DataType] = {}

    def step(self, step: Java) -> Filter | Expand:
        kind = step.nodeName()
        if kind == "Filter":
            return Filter(self.expression(step.condition()))
        if kind == "Project":
            return Expand(
                (tuple((label(each), self.expression(each)) for each in self._items(step.projectList())),)
            )
        if kind == "Expand":
            names = [label(each) for each in self._items(step.output())]
            several = [self._items(each) for each in self._items(step.projections())]
            return Expand(tuple(tuple(zip(names, map(self.expression, each), strict=True)) for each in several))
        raise _Unfit

    def _items(self, sequence: Java) -> list[Java]:
        return self._catalyst.items(sequence)

    def expression(self, given: Java) -> Expression:
        """The same expression, equal ones as one object; none that could never be evaluated."""
        made = self._known.setdefault(expression := self._expression(given), expression)
        if isinstance(made, FunctionCall) and made not in self._types:
            try:
                self._types[made] = value_type(made, [self._types.get(each) for each in made.arguments])
            except (Unsure, pa.ArrowException):
                raise _Unfit from None
        elif not isinstance(made, FunctionCall):
            self._types[made] = _type_of(given)
        return made

    def _expression(self, given: Java) -> Expression:  # noqa: PLR0911  one for each kind
        kind = given.nodeName()
        if kind == "AttributeReference":
            _type_of(given)
            return ColumnReference(label(given))
        if kind == "Literal":
            return Value(_scalar(given))
        if kind in _THROUGH:
            return self.expression(self._catalyst.children(given)[0])
        children = self._catalyst.children(given)
        for table in (_COMPARISONS, _LOGIC, _ARITHMETIC):
            if kind in table:
                return self._call(table[kind], given, children)
        if kind in _SEARCHES:
            return self._call(_SEARCHES[kind], given, children[:1], self._text(children[1]))
        if kind in _CASES:
            return self._call(_CASES[kind], given, self._texts(children))
        special: Callable[[Java, list[Java]], Expression] | None = getattr(self, f"_{kind.lower()}", None)
        if special is None:
            raise _Unfit
        return special(given, children)

    def _call(self, function: str, given: Java, children: Iterable[Java], *options: Any) -> FunctionCall:
        parts = tuple(self.expression(child) for child in children)
        return FunctionCall(function, parts, _type_of(given), options)

    def _constant(self, given: Java) -> Any:
        if given.nodeName() != "Literal":
            raise _Unfit
        found = _scalar(given)
        if not found.is_valid:
            raise _Unfit
        return found.as_py()

    def _text(self, given: Java) -> str:
        """A constant text that is not empty."""
        found = self._constant(given)
        if not isinstance(found, str) or not found:
            raise _Unfit
        return found

    def _texts(self, children: list[Java]) -> list[Java]:
        if any(_type_of(child) != pa.string() for child in children):
            raise _Unfit
        return children

    def _moments(self, given: Java, child: Java) -> list[Java]:
        """A moment that is looked at in UTC."""
        if not _is_moment(child) or self._catalyst.option(given.timeZoneId()) != _UTC:
            raise _Unfit
        return [child]

    # -- one for each kind of Spark's expressions, by the name of its class

    def _remainder(self, given: Java, children: list[Java]) -> Expression:
        divisor = self._constant(children[1])
        if not arrow_types.is_integer(_type_of(given)) or divisor <= 0:
            raise _Unfit
        return self._call("remainder", given, children)

    def _in(self, given: Java, children: list[Java]) -> Expression:
        kind = _type_of(children[0])
        if arrow_types.is_floating(kind):
            raise _Unfit
        values = [self._constant(each) for each in children[1:]]
        return self._call("is_in", given, children[:1], *(pa.scalar(each, kind) for each in values))

    def _if(self, given: Java, children: list[Java]) -> Expression:
        return self._call("case", given, children)

    def _casewhen(self, given: Java, children: list[Java]) -> Expression:
        parts = [self.expression(child) for child in children]
        if len(parts) % 2 == 0:
            parts.append(Value(pa.scalar(None, _type_of(given))))
        return FunctionCall("case", tuple(parts), _type_of(given))

    def _coalesce(self, given: Java, children: list[Java]) -> Expression:
        return self._call("coalesce", given, children)

    def _cast(self, given: Java, children: list[Java]) -> Expression:
        if not _widens(_type_of(children[0]), _type_of(given)):
            raise _Unfit
        return self._call("cast", given, children)

    def _precisetimestampconversion(self, given: Java, children: list[Java]) -> Expression:
        return self._call("moment", given, children)

    def _createnamedstruct(self, given: Java, children: list[Java]) -> Expression:
        return self._call("struct", given, children[1::2])

    def _getstructfield(self, given: Java, children: list[Java]) -> Expression:
        return self._call("field", given, children, given.ordinal())

    def _dateformatclass(self, given: Java, children: list[Java]) -> Expression:
        pattern = self._text(children[1])
        parts = [found[0] for found in _PARTS.finditer(pattern)]
        if "".join(parts) != pattern or not all(map(_KNOWN_PARTS.fullmatch, parts)):
            raise _Unfit
        return self._call("formatted", given, self._moments(given, children[0]), *parts)

    def _hour(self, given: Java, children: list[Java]) -> Expression:
        return self._call("clock", given, self._moments(given, children[0]), *_CLOCK[given.nodeName()])

    _minute = _second = _hour

    def _trunctimestamp(self, given: Java, children: list[Java]) -> Expression:
        unit = _UNITS.get(self._text(children[0]).upper())
        if unit is None:
            raise _Unfit
        return self._call("truncated", given, self._moments(given, children[1]), unit)

    def _timestampaddinterval(self, given: Java, children: list[Java]) -> Expression:
        return self._call("later", given, self._moments(given, children[0]), _microseconds(children[1]))

    def _substring(self, given: Java, children: list[Java]) -> Expression:
        start, length = (self._constant(each) for each in children[1:])
        if start < 1 or length < 0:
            raise _Unfit
        return self._call("from", given, self._texts(children[:1]), start - 1, start - 1 + length)

    def _stringreplace(self, given: Java, children: list[Java]) -> Expression:
        new = self._constant(children[2])
        return self._call("replaced", given, self._texts(children[:1]), self._text(children[1]), new)

    def _pattern(self, given: Java) -> str:
        """A constant regular expression that means the same to everybody."""
        found = self._text(given)
        if not is_plain(found):
            raise _Unfit
        return found

    def _rlike(self, given: Java, children: list[Java]) -> Expression:
        return self._call("matched", given, self._texts(children[:1]), self._pattern(children[1]))

    def _regexpextract(self, given: Java, children: list[Java]) -> Expression:
        pattern, group = self._pattern(children[1]), self._constant(children[2])
        if not 0 <= group <= groups(pattern):
            raise _Unfit
        return self._call("extracted", given, self._texts(children[:1]), only_group(pattern, group))

    def _concat(self, given: Java, children: list[Java]) -> Expression:
        return self._call("joined", given, self._texts(children))

    def _stringsplit(self, given: Java, children: list[Java]) -> Expression:
        by, limit = self._text(children[1]), self._constant(children[2])
        if len(by) != 1 or not (by.isalnum() or by in "/,;:-_=&@#%! ") or limit > 0:
            raise _Unfit
        return self._call("split", given, self._texts(children[:1]), by)

    def _getarrayitem(self, given: Java, children: list[Java]) -> Expression:
        place = self._constant(children[1])
        if place < 0:
            raise _Unfit
        return self._call("item", given, children[:1], place, given.failOnError())


def _type_of(expression: Java) -> pa.DataType:
    """The Arrow type, if it means the same as Spark's; texts are equal byte by byte."""
    text = expression.dataType().sql()
    if _ODD.search(text) or not (_PLAIN.fullmatch(text) or text.startswith(("STRUCT<", "ARRAY<"))):
        raise _Unfit
    return parse(f"x {text}").columns[0].type.arrow


def _is_moment(expression: Java) -> bool:
    return bool(arrow_types.is_timestamp(_type_of(expression)) and expression.dataType().sql() == "TIMESTAMP")


def _scalar(literal: Java) -> pa.Scalar:  # noqa: PLR0911  one for each kind
    kind, value = _type_of(literal), literal.value()
    if value is None:
        return pa.scalar(None, kind)
    if arrow_types.is_string(kind):
        return pa.scalar(value.toString(), kind)
    if arrow_types.is_decimal(kind):
        return pa.scalar(Decimal(value.toString()), kind)
    if arrow_types.is_date(kind) and _FIRST_DAY <= value <= _LAST_DAY:  # Python knows no others
        return pa.scalar(value, pa.int32()).cast(kind)
    if arrow_types.is_timestamp(kind) and FIRST_MOMENT <= value <= LAST_MOMENT:
        return pa.scalar(value, pa.int64()).cast(kind)
    if arrow_types.is_float64(kind) and (value or copysign(1, value) > 0):  # -0.0 equals another constant
        return pa.scalar(value, kind)
    if arrow_types.is_integer(kind) or arrow_types.is_boolean(kind):
        return pa.scalar(value, kind)
    raise _Unfit


def _microseconds(literal: Java) -> int:
    """How long a constant interval is, where every day has 24 hours."""
    kind = literal.dataType().sql()
    value = literal.value() if literal.nodeName() == "Literal" else None
    if value is None or kind.startswith(("INTERVAL YEAR", "INTERVAL MONTH")):
        raise _Unfit
    if kind == "INTERVAL":
        months, days, rest = (get_field(value, each) for each in ("months", "days", "microseconds"))
        if months:
            raise _Unfit
        value = days * _UNITS["DAY"] + rest
    if abs(value) > LAST_MOMENT:
        raise _Unfit
    return int(value)


def _widens(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of a type is one of another, and the same."""
    if arrow_types.is_signed_integer(given):
        if arrow_types.is_decimal(wanted):
            return bool(wanted.precision - wanted.scale >= _DIGITS[given.bit_width])
        return bool(arrow_types.is_signed_integer(wanted) and given.bit_width <= wanted.bit_width)
    if arrow_types.is_decimal(given) and arrow_types.is_decimal(wanted):
        whole = wanted.precision - wanted.scale >= given.precision - given.scale
        return bool(whole and wanted.scale >= given.scale)
    return False
