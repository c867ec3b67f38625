"""Ranges in the conditions of joins: by which rows of one side are found in order, for those of the other.

    a.at < b.at                       a comparison of a value of one side with one of the other
    a.x BETWEEN b.lo AND b.hi         two, in opposite directions; best where one side has one value in both
    a.lo <= b.hi AND b.lo <= a.hi     two of stretches that overlap

The condition stays a filter above the join, with all that is in it: the join gives some pairs more. An expression
becomes a column of its side, so it is evaluated for rows that meet no other, too: it must have a value for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from headwater.change.ordinals import has_ordinals
from headwater.errors import SchemaError
from headwater.operators.range_join import RangeJoin
from headwater.plan.operators import Node
from headwater.schema import parse
from headwater.spark.catalyst import Catalyst, Java, number
from headwater.spark.planner.fields import oddity

_COLUMN = "AttributeReference"
_SMALLER, _GREATER = {"LessThan", "LessThanOrEqual"}, {"GreaterThan", "GreaterThanOrEqual"}
_SUMS, _NEVER_TOO_LARGE = {"Add", "Subtract"}, ("double", "float", "decimal")
_LATER = {"TimestampAddInterval", "TimestampAddYMInterval"}
"""What is past the year 294,000 alone has no value."""
Ends = tuple[Java | None, Java | None]
"""Where the rows of a side begin and end; None where that is open."""
MakeSide = Callable[[Java, Sequence[Java]], tuple[Node, tuple[str, ...]]]
"""Makes a side of a join with columns for some expressions, and gives the names of these."""
TableKey = Callable[[Java], tuple[str, ...]]
"""Gives the names of the key of the table that an operator of Spark's reads; none if it reads none."""


class RangeCondition(NamedTuple):
    """Rows of both sides meet if neither begins behind the end of the other."""

    left: Ends
    right: Ends


class _Comparison(NamedTuple):
    """A value of the left side and one of the right, of which the one or the other is not greater."""

    left: Java
    right: Java
    is_left_smaller: bool


def range_condition(catalyst: Catalyst, join: Java, condition: Java | None) -> RangeCondition | None:
    """The range in the condition of a join by which rows are best found; None if there is none."""
    if condition is None:
        return None
    sides = [{number(each) for each in catalyst.items(side.output())} for side in (join.left(), join.right())]
    found = [_comparison(catalyst, part, sides) for part in catalyst.conjuncts(condition)]
    smaller = [each for each in found if each is not None and each.is_left_smaller]
    greater = [each for each in found if each is not None and not each.is_left_smaller]
    if smaller and greater:
        both = [(one, other) for one in smaller for other in greater]
        one, other = next((pair for pair in both if _has_one_value(*pair)), both[0])
        return RangeCondition((one.left, other.left), (other.right, one.right))
    for one in smaller:
        return RangeCondition((one.left, None), (None, one.right))
    for one in greater:
        return RangeCondition((None, one.left), (one.right, None))
    return None


def _has_one_value(one: _Comparison, other: _Comparison) -> bool:
    return bool(one.left.semanticEquals(other.left) or one.right.semanticEquals(other.right))


def _comparison(catalyst: Catalyst, part: Java, sides: Sequence[set[int]]) -> _Comparison | None:
    if part.nodeName() not in _SMALLER | _GREATER or not part.deterministic():
        return None
    one, other = catalyst.children(part)
    if not all(_is_orderable(each) and _has_a_value(catalyst, each) for each in (one, other)):
        return None
    is_smaller = part.nodeName() in _SMALLER
    of_one, of_other = catalyst.references(one), catalyst.references(other)
    if not of_one or not of_other:
        return None
    if of_one <= sides[0] and of_other <= sides[1]:
        return _Comparison(one, other, is_smaller)
    if of_one <= sides[1] and of_other <= sides[0]:
        return _Comparison(other, one, not is_smaller)
    return None


def _is_orderable(expression: Java) -> bool:
    try:
        kind = parse(f"x {expression.dataType().sql()}").columns[0].type.arrow
    except SchemaError:
        return False
    return has_ordinals(kind) and not oddity(expression)


def _has_a_value(catalyst: Catalyst, expression: Java) -> bool:
    """Whether an expression cannot fail: sums of floats and of few digits, moments so much later, wider types."""
    kind, parts = expression.nodeName(), catalyst.children(expression)
    if kind in {_COLUMN, "Literal"}:
        return True
    if kind == "Cast":
        wider = catalyst.can_be_wider(parts[0].dataType(), expression.dataType())
    else:
        wider = kind in _SUMS and expression.dataType().typeName().startswith(_NEVER_TOO_LARGE)
    return (wider or kind in _LATER) and all(_has_a_value(catalyst, each) for each in parts)


def range_join(
    catalyst: Catalyst, join: Java, pairs: Sequence[tuple[Java, Java]], ranges: RangeCondition, side: MakeSide
) -> RangeJoin:
    """The join of sides by the pairs of equal keys and a range; it has no name and no columns yet."""
    count = len(pairs)
    (left, left_names), (right, right_names) = (
        side(child, [*(pair[place] for pair in pairs), *_columns(catalyst, ends)])
        for place, (child, ends) in enumerate(zip((join.left(), join.right()), ranges, strict=True))
    )
    return RangeJoin(
        (),
        left=left,
        right=right,
        left_keys=left_names[:count],
        right_keys=right_names[:count],
        left_span=_span(ranges.left, left_names[count:]),
        right_span=_span(ranges.right, right_names[count:]),
    )


def _columns(catalyst: Catalyst, ends: Ends) -> list[Java]:
    """The columns that a side has to have, each once; expressions are called what they are."""
    first, last = ends
    found = [each for each in ends if each is not None]
    if first is not None and last is not None and first.semanticEquals(last):
        found = [first]
    return [each if each.nodeName() == _COLUMN else catalyst.alias(each, each.sql()) for each in found]


def _span(ends: Ends, names: Sequence[str]) -> tuple[str, str]:
    """The names of a side's columns, which are those of `_columns`; empty where it is open."""
    return ("" if ends[0] is None else names[0], "" if ends[1] is None else names[-1])


def has_few(catalyst: Catalyst, side: Java, keys: Sequence[Java], table_key: TableKey) -> bool:
    """Whether a side of a join has a row or none of each key, so that none need be searched for.

    That is told of tables, and of groups, below what only chooses rows and columns.
    """
    numbers = {number(key) for key in keys if key.nodeName() == _COLUMN}
    while (kind := side.nodeName()) in {"Project", "Filter"}:
        for each in catalyst.items(side.projectList()) if kind == "Project" else ():
            inner = catalyst.children(each)[0] if each.nodeName() == "Alias" else each
            if number(each) in numbers and inner.nodeName() == _COLUMN:
                numbers.add(number(inner))
        side = side.child()
    if kind == "Aggregate":
        unique = catalyst.items(side.groupingExpressions())
    else:
        wanted = table_key(side)
        unique = [each for each in catalyst.items(side.output()) if each.name() in wanted]
    return bool(unique) and all(each.nodeName() == _COLUMN and number(each) in numbers for each in unique)
