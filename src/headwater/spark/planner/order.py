"""The order in which an operator gets its rows, where the query says it below: that of the `Sort` beneath.

    Aggregate [first(cents)]           first(cents) is that of the row with the greatest id:
    +- Project [cents]                 the order is `id DESC`, and the input is the rows
       +- Sort [id DESC]               with `id` as one more column
          +- prices

An order counts through projections, filters, generators and limits. Joins, groups, windows and UNION have none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from headwater.spark.catalyst import Catalyst, Java, number
from headwater.spark.planner.refusals import Refusals

_OF_ANY_ORDER = {
    "Min",
    "Max",
    "Count",
    "Sum",
    "Average",
    "VariancePop",
    "VarianceSamp",
    "StddevPop",
    "StddevSamp",
    "bit_and",
    "bit_or",
    "bit_xor",
    "Percentile",
    "HyperLogLogPlusPlus",
    "Corr",
    "CovPopulation",
    "CovSample",
    "Skewness",
    "Kurtosis",
}
"""Aggregates that give the same for rows in any order, but for the last digits of sums of floats."""
_BY_ORDER = {"First", "Last", "CollectList", "ListAgg"}
"""Aggregates for which an order is what they are about."""
_LIMITS = {"GlobalLimit", "LocalLimit", "Offset"}
_KEEPING = {
    "Project",
    "Filter",
    "Generate",
    "Expand",
    "BatchEvalPython",
    "ArrowEvalPython",
    "WindowGroupLimit",
    "SubqueryAlias",
    "View",
    "ResolvedHint",
    "RebalancePartitions",
    "RepartitionByExpression",
    "Repartition",
    *_LIMITS,
}
"""Operators that give their rows in the order in which they get them, or could."""


@dataclass(frozen=True)
class Ordered:
    """Rows in an order; `plan` has all the columns that the order reads."""

    order: tuple[Java, ...]
    plan: Java


def ordered(catalyst: Catalyst, plan: Java) -> Ordered | None:
    """The rows of a plan with the order that they are in; None if they are in none."""
    sort = sort_beneath(catalyst, plan)
    if sort is None:
        return None
    order = tuple(catalyst.items(sort.order()))
    needed = {number(each): each for one in order for each in catalyst.items(one.references().toSeq())}
    return Ordered(order, carrying(catalyst, plan, list(needed.values())))


def order_of_calls(catalyst: Catalyst, aggregate: Java, refusals: Refusals) -> Ordered | None:
    """The rows of a GROUP BY in their order, if that may decide what a call of it gives."""
    results = catalyst.items(aggregate.aggregateExpressions())
    calls = [part for each in results for part in catalyst.walk(each) if part.nodeName() == "AggregateExpression"]
    kinds = {call.aggregateFunction().nodeName() for call in calls}
    if kinds <= _OF_ANY_ORDER:
        return None
    if kinds & _BY_ORDER:
        _refuse_lost(catalyst, aggregate.child(), refusals)
    return ordered(catalyst, aggregate.child())


def order_of_ties(catalyst: Catalyst, window: Java, below: Java, refusals: Refusals) -> Ordered | None:
    """The rows below a window in their order, unless the window has that order itself."""
    order = catalyst.items(window.orderSpec())
    if not order:
        _refuse_lost(catalyst, below, refusals)
    found = ordered(catalyst, below)
    if found is None or _ends_with(order, found.order):
        return None
    return found


def _ends_with(order: Sequence[Java], end: Sequence[Java]) -> bool:
    last = order[-len(end) :]
    return len(last) == len(end) and all(map(_same, last, end))


def _same(one: Java, other: Java) -> bool:
    return bool(one.semanticEquals(other))


def _refuse_lost(catalyst: Catalyst, plan: Java, refusals: Refusals) -> None:
    """Refuse an order that counts and that a UNION, of which it is one side, does not keep."""
    union = _beneath(catalyst, plan, _KEEPING - _LIMITS)
    if union.nodeName() != "Union":
        return
    for side in catalyst.children(union):
        below = _beneath(catalyst, side, _KEEPING - _LIMITS)
        if below.nodeName() == "Sort":
            raise refusals.lost_order(below)
        _refuse_lost(catalyst, below, refusals)


def sort_beneath(catalyst: Catalyst, plan: Java) -> Java | None:
    """The operator that puts the rows of a plan in an order."""
    found = _beneath(catalyst, plan, _KEEPING)
    return found if found.nodeName() == "Sort" else None


def _beneath(catalyst: Catalyst, plan: Java, kinds: Collection[str]) -> Java:
    """The first operator that is of none of these kinds."""
    while plan.nodeName() in kinds:
        plan = catalyst.children(plan)[0]
    return plan


def carrying(catalyst: Catalyst, plan: Java, wanted: Sequence[Java]) -> Java:
    """A plan that also gives some columns of the operators beneath it."""
    present = {number(each) for each in catalyst.items(plan.output())}
    missing = [each for each in wanted if number(each) not in present]
    if not missing:
        return plan
    kind = plan.nodeName()
    if not catalyst.children(plan):
        return plan  # of another input
    below = catalyst.map_children(plan, lambda child: carrying(catalyst, child, missing))
    if kind == "Project":
        found = {number(each) for each in catalyst.items(below.child().output())}
        added = [each for each in missing if number(each) in found]
        return catalyst.project([*catalyst.items(plan.projectList()), *added], below.child())
    if kind == "Generate":
        return catalyst.generate(below)
    if kind == "Expand":
        projections = [[*catalyst.items(each), *missing] for each in catalyst.items(plan.projections())]
        return catalyst.expand(projections, [*catalyst.items(plan.output()), *missing], below.child())
    return below
