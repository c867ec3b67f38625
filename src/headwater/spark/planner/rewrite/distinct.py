"""Aggregates of DISTINCT values in two steps: each value of a group once, with its count, and then the groups.

    SELECT k, count(DISTINCT s) …  becomes  SELECT k, count(s) … FROM (SELECT DISTINCT k, s …)  by k

Beside other aggregates every row goes twice, as Spark has it for several sets of DISTINCT arguments, told apart by
a number: once with s, and once with null for it and what the others need. These are made in the first step, where
the rows of the second kind are one group, and the second step takes what that one gives.

Spark itself takes several sets apart, and calls with FILTER; so what is left are calls with one set of arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.spark.catalyst import Catalyst, Java
from headwater.spark.planner.fields import oddity

_OF_DISTINCT = {"Count", "Sum", "Average"}
_BESIDE = {*_OF_DISTINCT, "Min", "Max", "VariancePop", "VarianceSamp", "StddevPop", "StddevSamp"}
_OTHERS, _DISTINCT = "0", "1"
Pairs = list[tuple[Java, Java]]


def rewrite_distinct(catalyst: Catalyst, plan: Java) -> Java:
    """The plan with every GROUP BY that has calls of DISTINCT values in two steps, where both can be kept."""
    plan = catalyst.map_children(plan, lambda child: rewrite_distinct(catalyst, child))
    if plan.nodeName() != "Aggregate":
        return plan
    calls = _calls(catalyst, plan)
    distinct = [call for call in calls if call.isDistinct()]
    others = [call for call in calls if not call.isDistinct()]
    values = _values(catalyst, distinct)
    keys = [*catalyst.items(plan.groupingExpressions()), *values]
    if not values or any(map(oddity, keys)) or not all(_kind(call) in _BESIDE for call in others):
        return plan
    return _Steps(catalyst, plan, distinct, others, values).plan()


def _calls(catalyst: Catalyst, plan: Java) -> list[Java]:
    """The aggregates of a GROUP BY, each once."""
    found: list[Java] = []
    for result in catalyst.items(plan.aggregateExpressions()):
        for part in catalyst.walk(result):
            if part.nodeName() == "AggregateExpression" and not any(part.semanticEquals(each) for each in found):
                found.append(part)
    return found


def _values(catalyst: Catalyst, distinct: Sequence[Java]) -> list[Java]:
    """What is to be distinct; nothing if it is not the same for all, or nothing at all."""
    several = [
        _each_once([each for each in catalyst.children(call.aggregateFunction()) if not each.foldable()])
        for call in distinct
    ]
    fits = all(_kind(call) in _OF_DISTINCT and not call.filter().isDefined() for call in distinct)
    if not several or not fits:
        return []
    first = several[0]
    same = all(len(each) == len(first) and all(_has(first, value) for value in each) for each in several)
    return first if same else []


def _kind(call: Java) -> str:
    function = call.aggregateFunction()
    return "" if function.prettyName().startswith("try_") else str(function.nodeName())


def _is_column(expression: Java) -> bool:
    return bool(expression.nodeName() == "AttributeReference")


def _has(known: Sequence[Java], expression: Java) -> bool:
    return any(expression.semanticEquals(each) for each in known)


def _each_once(expressions: Sequence[Java]) -> list[Java]:
    found: list[Java] = []
    for each in expressions:
        if not _has(found, each):
            found.append(each)
    return found


@dataclass
class _Steps:
    """The two steps of one GROUP BY, whose `distinct` calls are of these `values`."""

    catalyst: Catalyst
    aggregate: Java
    distinct: Sequence[Java]
    others: Sequence[Java]
    values: Sequence[Java]

    def plan(self) -> Java:
        """Both steps."""
        groups = self.catalyst.items(self.aggregate.groupingExpressions())
        return self._beside_others(groups) if self.others else self._alone(groups)

    def _alone(self, groups: Sequence[Java]) -> Java:
        catalyst = self.catalyst
        given = [*groups, *(value for value in self.values if not _has(groups, value))]
        named = [each if _is_column(each) else catalyst.alias(each, each.sql()) for each in given]
        replaced = [(each, column.toAttribute()) for each, column in zip(given, named, strict=True)]
        calls = [(call, self._over(call, replaced, None)) for call in self.distinct]
        return self._second(groups, replaced, calls, catalyst.aggregate(given, named, self.aggregate.child()))

    def _beside_others(self, groups: Sequence[Java]) -> Java:
        catalyst = self.catalyst
        needed = _each_once([each for call in self.others for each in self._needed(call)])
        keys, values, inputs = (self._columns(each) for each in (groups, self.values, needed))
        which = catalyst.attribute("which", catalyst.expression(_OTHERS).dataType())
        nothing = [[catalyst.null(each.dataType()) for each in several] for several in (self.values, needed)]
        projections = [
            [*groups, *nothing[0], *needed, catalyst.expression(_OTHERS)],
            [*groups, *self.values, *nothing[1], catalyst.expression(_DISTINCT)],
        ]
        columns = [attribute for pairs in (keys, values, inputs) for _, attribute in pairs]
        twice = catalyst.expand(projections, [*columns, which], self.aggregate.child())
        first = [*(attribute for pairs in (keys, values) for _, attribute in pairs), which]
        made = [catalyst.alias(self._of_inputs(call, inputs), call.sql()) for call in self.others]
        inner = catalyst.aggregate(first, [*first, *made], twice)
        is_distinct, is_other = (catalyst.equal(which, catalyst.expression(each)) for each in (_DISTINCT, _OTHERS))
        calls = [(call, self._over(call, values, is_distinct)) for call in self.distinct]
        for call, given in zip(self.others, made, strict=True):
            found = catalyst.first_of(given.toAttribute(), is_other)
            default = catalyst.option(call.aggregateFunction().defaultResult())
            calls.append((call, found if default is None else catalyst.coalesce([found, default])))
        return self._second(groups, keys, calls, inner)

    def _second(self, groups: Sequence[Java], replaced: Pairs, calls: Pairs, inner: Java) -> Java:
        """The second step over the first one."""
        catalyst = self.catalyst
        keys = [next(new for old, new in replaced if old.semanticEquals(each)) for each in groups]
        of_groups = [pair for pair in replaced if _has(groups, pair[0])]
        results = catalyst.items(self.aggregate.aggregateExpressions())
        named = [catalyst.named(catalyst.replaced(each, [*calls, *of_groups]), each) for each in results]
        return catalyst.aggregate(keys, named, inner)

    def _columns(self, expressions: Sequence[Java]) -> Pairs:
        """New attributes for expressions."""
        names = (each.name() if _is_column(each) else each.sql() for each in expressions)
        return [
            (each, self.catalyst.attribute(name, each.dataType()))
            for each, name in zip(expressions, names, strict=True)
        ]

    def _needed(self, call: Java) -> list[Java]:
        """What a call reads; before a cast, which tells whether numbers are exact."""
        condition = self.catalyst.option(call.filter())
        given = [*self.catalyst.children(call.aggregateFunction()), *([] if condition is None else [condition])]
        below = (self.catalyst.children(each)[0] if each.nodeName() == "Cast" else each for each in given)
        return [each for each in below if not each.foldable()]

    def _of_inputs(self, call: Java, inputs: Pairs) -> Java:
        """A call of the first step."""
        condition = self.catalyst.option(call.filter())
        return self._over(call, inputs, None if condition is None else self.catalyst.replaced(condition, inputs))

    def _over(self, call: Java, pairs: Pairs, condition: Java | None) -> Java:
        """A call over other columns, where a condition is true, and not of DISTINCT values."""
        return self.catalyst.called(self.catalyst.replaced(call.aggregateFunction(), pairs), condition)
