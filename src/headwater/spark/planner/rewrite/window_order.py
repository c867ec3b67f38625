"""Windows over sorted rows: where a window leaves the order of its rows open, the one beneath decides.

    Window [row_number() OVER                becomes      Window [row_number() OVER
            (PARTITION BY sku)]                                    (PARTITION BY sku ORDER BY id DESC)]
    +- Project [sku, cents]
       +- Sort [id DESC]

Spark makes the first of a correlated `SELECT cents … ORDER BY id DESC LIMIT 1`, and relies on the rows to stay
sorted on their way. Ranks and frames of RANGE, for which an order has peers, are left alone.
"""

from __future__ import annotations

from headwater.spark.catalyst import Catalyst, Java
from headwater.spark.planner.order import ordered

_RANKS = {"Rank", "DenseRank", "PercentRank", "CumeDist"}


def order_windows(catalyst: Catalyst, plan: Java) -> Java:
    """The plan with the order beneath in every window that it can be part of."""
    return _changed(catalyst, plan) if {"Window", "Sort"} <= catalyst.kinds(plan) else plan


def _changed(catalyst: Catalyst, plan: Java) -> Java:
    plan = catalyst.map_children(plan, lambda child: _changed(catalyst, child))
    if plan.nodeName() != "Window":
        return plan
    below = plan.child()
    while below.nodeName() == "WindowGroupLimit":  # is found again
        below = below.child()
    found = ordered(catalyst, below)
    functions = catalyst.items(plan.windowExpressions())
    if found is None or not all(_takes_more_order(catalyst, each) for each in functions):
        return plan
    partition, order = catalyst.items(plan.partitionSpec()), [*catalyst.items(plan.orderSpec()), *found.order]

    def specified(part: Java) -> Java | None:
        if part.nodeName() != "WindowSpecDefinition":
            return None
        return catalyst.specified(partition, order, part.frameSpecification())

    made = catalyst.window([catalyst.rewrite(each, specified) for each in functions], partition, order, found.plan)
    return catalyst.project(catalyst.items(plan.output()), made)


def _takes_more_order(catalyst: Catalyst, named: Java) -> bool:
    """Whether a window function gives a right answer also if fewer rows are tied."""
    for part in catalyst.walk(named):
        if part.nodeName() in _RANKS:
            return False
        if part.nodeName() == "SpecifiedWindowFrame" and part.frameType().toString() != "RowFrame":
            ends = [each.nodeName() for each in catalyst.children(part)]
            return all(each.startswith("Unbounded") for each in ends)
    return True
