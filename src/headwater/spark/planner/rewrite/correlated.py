"""Equalities with the outer row in subqueries that have other conditions on it too, kept as keys.

    SELECT (SELECT count(*) FROM b WHERE b.k = a.k AND b.at < a.at) FROM a

Spark joins b with the different values of those outer columns alone for which it has no equal column inside: with
a.at, on b.at < a.at, and groups by b.k behind. So all pairs are made, whatever their keys. An equality whose inner
side is an expression, as coalesce(b.k) is one, brings in the outer column as well, and becomes a condition of that
join; there it is simplified to what it was, the join's key.
"""

from __future__ import annotations

from headwater.spark.catalyst import Catalyst, Java

_OUTER = "OuterReference"


def keep_equalities(catalyst: Catalyst, analysed: Java) -> Java:
    """The resolved plan, to be optimised, with such equalities written so that they become keys."""
    if not catalyst.kinds(analysed) & {"ScalarSubquery", "LateralJoin"}:
        return analysed
    return _Keeping(catalyst).plan(analysed)


class _Keeping:
    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def plan(self, plan: Java) -> Java:
        """A plan and all subqueries in it."""
        catalyst = self._catalyst
        plan = catalyst.map_children(plan, self.plan)
        kind = plan.nodeName()
        if kind == "LateralJoin":
            return plan.copy(plan.left(), self._subquery(plan.right()), plan.joinType(), plan.condition())
        if kind == "Project":
            return catalyst.project(self._expressions(plan.projectList()), plan.child())
        if kind == "Filter":
            return catalyst.filter(self._condition(self._expression(plan.condition())), plan.child())
        if kind == "Aggregate":
            groups, results = map(self._expressions, (plan.groupingExpressions(), plan.aggregateExpressions()))
            return catalyst.aggregate(groups, results, plan.child())
        return plan

    def _expressions(self, expressions: Java) -> list[Java]:
        return [self._expression(each) for each in self._catalyst.items(expressions)]

    def _expression(self, expression: Java) -> Java:
        def change(part: Java) -> Java | None:
            return self._subquery(part) if part.nodeName() == "ScalarSubquery" else None

        return self._catalyst.rewrite(expression, change)

    def _subquery(self, subquery: Java) -> Java:
        return subquery.withNewPlan(self.plan(subquery.plan()))

    def _condition(self, condition: Java) -> Java:
        """A condition with expressions in its equalities with the outer row, if other parts are on that row too."""
        catalyst = self._catalyst
        parts = catalyst.conjuncts(condition)
        correlated = [each for each in parts if self._is_outer(each)]
        equal = [each for each in correlated if each.nodeName() == "EqualTo"]
        if len(equal) in {0, len(correlated)}:
            return condition
        return catalyst.conjunction([self._of_expressions(each) if each in equal else each for each in parts])

    def _of_expressions(self, equality: Java) -> Java:
        sides = self._catalyst.children(equality)
        made = [side if self._is_outer(side) else self._catalyst.coalesce([side]) for side in sides]
        return self._catalyst.with_children(equality, made)

    def _is_outer(self, expression: Java) -> bool:
        return any(part.nodeName() == _OUTER for part in self._catalyst.walk(expression))
