"""Rows that stand alone in their group, as they are where Spark takes several DISTINCT aggregates apart.

Spark gives every input row several times, once for each of those, told apart by a number; groups them by the keys,
what is to be distinct, and that number; and groups the result by the keys. Where what is to be distinct is null for
a number, a group of the second kind has one row with that number at most.
"""

from __future__ import annotations

from headwater.spark.catalyst import Catalyst, Java, number


def stands_alone(catalyst: Catalyst, outer: Java, condition: Java) -> bool:
    """Whether at most one row of each group of `outer`, a GROUP BY, fulfils the condition."""
    found = _compared(catalyst, condition)
    inner = _below_projections(catalyst, outer)
    if found is None or inner.nodeName() != "Aggregate":
        return False
    numbering, value = found
    expand = _below_projections(catalyst, inner)
    groups = catalyst.items(inner.groupingExpressions())
    if expand.nodeName() != "Expand" or not _are_attributes(
        [*groups, *catalyst.items(outer.groupingExpressions())]
    ):
        return False
    keys = {number(each) for each in catalyst.items(outer.groupingExpressions())}
    grouped = {number(each) for each in groups}
    if not keys | {numbering} <= grouped:
        return False
    places = {number(each): place for place, each in enumerate(catalyst.items(expand.output()))}
    projections = [catalyst.items(each) for each in catalyst.items(expand.projections())]
    if numbering not in places or not all(_is_number(each[places[numbering]]) for each in projections):
        return False
    chosen = [each for each in projections if each[places[numbering]].toString() == value]
    distinct = grouped - keys - {numbering}
    return len(chosen) <= 1 and all(
        each in places and _is_null(projection[places[each]]) for projection in chosen for each in distinct
    )


def _compared(catalyst: Catalyst, condition: Java) -> tuple[int, str] | None:
    """The attribute, and the number that it is to be equal to."""
    if condition.nodeName() != "EqualTo":
        return None
    left, right = catalyst.children(condition)
    if left.nodeName() != "AttributeReference" or not _is_number(right):
        return None
    return number(left), right.toString()


def _below_projections(catalyst: Catalyst, plan: Java) -> Java:
    """The input of an operator, without projections that only select columns."""
    below = plan.child()
    while below.nodeName() == "Project" and _are_attributes(catalyst.items(below.projectList())):
        below = below.child()
    return below


def _are_attributes(expressions: list[Java]) -> bool:
    return all(each.nodeName() == "AttributeReference" for each in expressions)


def _is_number(expression: Java) -> bool:
    return bool(expression.nodeName() == "Literal" and expression.dataType().sql() in {"INT", "BIGINT"})


def _is_null(expression: Java) -> bool:
    return bool(expression.nodeName() == "Literal" and expression.toString() == "null")
