"""Rewrites of Spark's optimised plan into one that can be maintained, or with less work, in this order."""

from __future__ import annotations

from headwater.spark.catalyst import Catalyst, Java
from headwater.spark.planner.rewrite.distinct import rewrite_distinct
from headwater.spark.planner.rewrite.nearest import tell_rows_apart
from headwater.spark.planner.rewrite.not_in import rewrite_not_in
from headwater.spark.planner.rewrite.scalar import rewrite_scalar_subqueries
from headwater.spark.planner.rewrite.window_order import order_windows

RULES = (rewrite_scalar_subqueries, rewrite_not_in, tell_rows_apart, order_windows, rewrite_distinct)


def rewritten(catalyst: Catalyst, plan: Java) -> Java:
    """The plan after all rewrites, optimised again if there were any."""
    before = plan
    for rule in RULES:
        plan = rule(catalyst, plan)
    return plan if plan is before else catalyst.optimise(plan)
