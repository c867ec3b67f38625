"""Which rows may disappear, told from Spark's plan, and the kinds of its operators that this is told by."""

from __future__ import annotations

from collections.abc import Callable

from headwater.spark.catalyst import Catalyst, Java
from headwater.spark.planner.unmatched import equalities, kind_of

PASSING = {
    "SubqueryAlias",
    "View",
    "ResolvedHint",
    "Sort",
    "RebalancePartitions",
    "RepartitionByExpression",
    "Repartition",
    "LocalLimit",
    "WindowGroupLimit",
}
"""Operators that change no answer. The last two only keep the one above from seeing rows that it does not need."""
SOURCES = {"LogicalRDD", "ExternalRDD"}
LINEAR = {"Project", "Filter", "Generate", "Expand", "BatchEvalPython", "ArrowEvalPython"}
LIMITS = {"GlobalLimit", "Offset"}
PAIRING = {"Inner", "Cross"}


def may_retract(catalyst: Catalyst, plan: Java, changes: Callable[[Java], bool]) -> bool:
    """Whether rows of an operator may ever disappear; `changes` says so of a source."""

    def below(plan: Java) -> bool:
        return any(may_retract(catalyst, child, changes) for child in catalyst.children(plan))

    kind = plan.nodeName()
    if kind in SOURCES:
        return changes(plan)
    if kind == "Aggregate" and "AggregateExpression" in catalyst.kinds(plan):
        return True
    if kind == "Join" and kind_of(plan) not in PAIRING:
        stays = kind_of(plan) == "LeftSemi" and bool(equalities(catalyst, plan)[0])
        return not stays or below(plan)
    if kind in LIMITS or kind == "Window" or kind not in PASSING | LINEAR | {"Union", "Join", "Aggregate"}:
        return bool(catalyst.children(plan))
    return below(plan)
