"""Which columns of a query are lists in no particular order."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from headwater.spark.catalyst import Catalyst, Java, number

_COLLECTING = {"CollectList", "CollectSet"}


def unordered(catalyst: Catalyst, frame: DataFrame) -> set[str]:
    """The columns that are just what `collect_list` or `collect_set` gave."""
    java: Any = frame._jdf
    optimised = java.queryExecution().optimizedPlan()
    if not catalyst.kinds(optimised) & _COLLECTING:
        return set()
    made: dict[int, Java] = {}
    _note(catalyst, optimised, made)
    outputs = zip(frame.columns, catalyst.items(optimised.output()), strict=True)
    return {name for name, attribute in outputs if _is_collected(catalyst, attribute, made)}


def _note(catalyst: Catalyst, plan: Java, made: dict[int, Java]) -> None:
    """What every number stands for."""
    for expression in catalyst.items(plan.expressions()):
        if expression.nodeName() == "Alias":
            made[number(expression)] = catalyst.children(expression)[0]
    for child in catalyst.children(plan):
        _note(catalyst, child, made)


def _is_collected(catalyst: Catalyst, expression: Java, made: dict[int, Java]) -> bool:
    while expression.nodeName() == "AttributeReference" and number(expression) in made:
        expression = made[number(expression)]
    if expression.nodeName() != "AggregateExpression":
        return False
    return expression.aggregateFunction().nodeName() in _COLLECTING
