"""Subqueries that give one value: a join with the one row that they are.

    WHERE x > (SELECT max(y) FROM b)   becomes   a join with SELECT max(y) AS v FROM b on x > v

Without a row the value is null; more than one row is an error, as in Spark.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.errors import ViewRefused
from headwater.spark.catalyst import Catalyst, Java

_TOO_MANY = "raise_error('a subquery used as an expression returned more than one row')"
Replacements = list[tuple[Java, Java]]


def rewrite_scalar_subqueries(catalyst: Catalyst, plan: Java) -> Java:
    """The plan without scalar subqueries."""
    if "ScalarSubquery" not in catalyst.kinds(plan):
        return plan
    return _Rewriting(catalyst).plan(plan)


class _Rewriting:
    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def plan(self, plan: Java) -> Java:
        """A plan, its inputs first."""
        plan = self._catalyst.map_children(plan, self.plan)
        found = self._found(self._catalyst.items(plan.expressions()))
        if not found:
            return plan
        kind = plan.nodeName()
        if kind == "Filter":
            return self._filter(plan)
        if kind == "Project":
            child, pairs = self._joined(plan.child(), found)
            return self._catalyst.project(self._replaced(self._catalyst.items(plan.projectList()), pairs), child)
        if kind == "Aggregate":
            return self._aggregate(plan)
        special = {
            "Join": self._join,
            "Sort": self._sort_or_generate,
            "Generate": self._sort_or_generate,
            "BatchEvalPython": self._calls_of_python,
            "ArrowEvalPython": self._calls_of_python,
        }
        if kind in special:
            return special[kind](plan, found)
        what = f"a subquery in {kind} is not maintained yet"
        raise ViewRefused(what, hint="compute it in a subquery of FROM first")

    def _found(self, expressions: Sequence[Java]) -> list[Java]:
        """The subqueries in some expressions, each once."""
        return self._parts("ScalarSubquery", expressions)

    def _parts(self, kind: str, expressions: Sequence[Java]) -> list[Java]:
        found: list[Java] = []
        for expression in expressions:
            for part in self._catalyst.walk(expression):
                if part.nodeName() == kind and not any(part.semanticEquals(each) for each in found):
                    found.append(part)
        return found

    def _replaced(self, expressions: Sequence[Java], pairs: Replacements) -> list[Java]:
        return [self._catalyst.replaced(expression, pairs) for expression in expressions]

    # -- operators

    def _joined(self, child: Java, subqueries: Sequence[Java]) -> tuple[Java, Replacements]:
        """An input with the values of subqueries as columns."""
        pairs: Replacements = []
        for subquery in subqueries:
            single, value = self._value(subquery)
            pairs.append((subquery, value))
            child = self._catalyst.join(child, single, self._catalyst.inner, None)
        return child, pairs

    def _filter(self, plan: Java) -> Java:
        """Each condition goes to the join that brings the last value it needs: an equality can be its key."""
        catalyst = self._catalyst
        waiting = catalyst.conjuncts(plan.condition())
        plain = [each for each in waiting if not self._found([each])]
        waiting = [each for each in waiting if self._found([each])]
        child = catalyst.filter(catalyst.conjunction(plain), plan.child()) if plain else plan.child()
        pairs: Replacements = []
        for subquery in self._found(waiting):
            single, value = self._value(subquery)
            pairs.append((subquery, value))
            replaced = [(each, catalyst.replaced(each, pairs)) for each in waiting]
            ready = [new for _, new in replaced if not self._found([new])]
            waiting = [old for old, new in replaced if self._found([new])]
            child = catalyst.join(child, single, catalyst.inner, catalyst.conjunction(ready) if ready else None)
        return catalyst.project(catalyst.items(plan.output()), child)

    def _aggregate(self, plan: Java) -> Java:
        """Subqueries inside aggregates and groups go below; those beside them above."""
        catalyst = self._catalyst
        groups = catalyst.items(plan.groupingExpressions())
        results = catalyst.items(plan.aggregateExpressions())
        calls = self._parts("AggregateExpression", results)
        child, below = self._joined(plan.child(), self._found([*groups, *calls]))
        inner_groups, inner_calls = self._replaced(groups, below), self._replaced(calls, below)
        keys = [catalyst.alias(each, "key") for each in inner_groups]
        values = [catalyst.alias(each, "value") for each in inner_calls]
        grouped = catalyst.aggregate(inner_groups, [*keys, *values], child)
        outside = [(old, new.toAttribute()) for old, new in zip([*calls, *groups], [*values, *keys], strict=True)]
        named = [
            catalyst.named(new, old) for new, old in zip(self._replaced(results, outside), results, strict=True)
        ]
        above, pairs = self._joined(grouped, self._found(named))
        return catalyst.project(self._replaced(named, pairs), above)

    def _join(self, plan: Java, found: Sequence[Java]) -> Java:
        catalyst = self._catalyst
        left, pairs = self._joined(plan.left(), found)
        condition = catalyst.replaced(catalyst.option(plan.condition()), pairs)
        joined = catalyst.join(left, plan.right(), plan.joinType(), condition)
        return catalyst.project(catalyst.items(plan.output()), joined)

    def _sort_or_generate(self, plan: Java, found: Sequence[Java]) -> Java:
        catalyst = self._catalyst
        child, pairs = self._joined(plan.child(), found)
        if plan.nodeName() == "Generate":
            made = catalyst.generate(plan, catalyst.replaced(plan.generator(), pairs), child)
        else:
            order = self._replaced(catalyst.items(plan.order()), pairs)
            made = catalyst.sort(order, child, everywhere=getattr(plan, "global")())
        return catalyst.project(catalyst.items(plan.output()), made)

    def _calls_of_python(self, plan: Java, found: Sequence[Java]) -> Java:
        """Spark has taken the calls of Python functions out of the expression that they were in."""
        catalyst = self._catalyst
        child, pairs = self._joined(plan.child(), found)
        calls = catalyst.sequence(self._replaced(catalyst.items(plan.udfs()), pairs))
        kind = [plan.evalType()] if plan.nodeName() == "ArrowEvalPython" else []
        made = plan.copy(calls, plan.resultAttrs(), child, *kind)
        return catalyst.project(catalyst.items(plan.output()), made)

    # -- one row

    def _value(self, subquery: Java) -> tuple[Java, Java]:
        """A subquery as a plan of exactly one row, and its column."""
        single = self._single(self.plan(subquery.plan()))
        return single, self._catalyst.items(single.output())[0]

    def _single(self, plan: Java) -> Java:
        """A plan of one column as exactly one row."""
        base = plan
        while base.nodeName() == "Project":
            base = base.child()
        if base.nodeName() == "Aggregate" and not base.groupingExpressions().size():
            return plan
        if (tested := self._tested(plan)) is not None:
            return self._catalyst.derived(tested, ("count(1) AS n",), ("if(n > 0, 1, NULL) AS v",))
        value = self._catalyst.items(plan.output())[0]
        named = self._catalyst.project([self._catalyst.alias(value, "v")], plan)
        checked = f"if(n > 1, {_TOO_MANY}, v) AS v"
        return self._catalyst.derived(named, ("first(v) AS v", "count(1) AS n"), (checked,))

    def _tested(self, plan: Java) -> Java | None:
        """What EXISTS asks for, which Spark writes as `SELECT 1 … LIMIT 1`."""
        if plan.nodeName() != "GlobalLimit" or plan.limitExpr().toString() != "1":
            return None
        below = plan.child().child()
        if below.nodeName() != "Project":
            return None
        (only,) = self._catalyst.items(below.projectList())
        return below.child() if only.toString().startswith("1 AS ") else None
