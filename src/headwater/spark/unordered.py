"""Which columns of a query are lists in no particular order."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from headwater.spark.catalyst import Catalyst, Java, number

_COLLECTING = {"CollectList", "CollectSet"}


def unordered(catalyst: Catalyst, frame: DataFrame) -> set[str]:
    """The columns that are just what `collect_list` or `collect_set` gave."""
    java: Any = frame._jdf
    analysed = java.queryExecution().analyzed()
    if not catalyst.kinds(analysed) & _COLLECTING:
        return set()
    made: dict[int, Java] = {}
    _note(catalyst, analysed, made)
    outputs = catalyst.items(analysed.output())
    return {each.name() for each in outputs if _is_collected(catalyst, each, made)}


def _note(catalyst: Catalyst, plan: Java, made: dict[int, Java]) -> None:
    """What every number stands for."""
    for expression in catalyst.items(plan.expressions()):
        if expression.nodeName() == "Alias":
            made[number(expression)] = catalyst.children(expression)[0]
    for child in [*catalyst.children(plan), *_inner(catalyst, plan)]:
        _note(catalyst, child, made)


def _inner(catalyst: Catalyst, plan: Java) -> list[Java]:
    if plan.nodeName() != "WithCTE":
        return []
    return catalyst.items(plan.cteDefs())


def _is_collected(catalyst: Catalyst, expression: Java, made: dict[int, Java]) -> bool:
    while expression.nodeName() == "AttributeReference" and number(expression) in made:
        expression = made[number(expression)]
    if expression.nodeName() != "AggregateExpression":
        return False
    return expression.aggregateFunction().nodeName() in _COLLECTING
