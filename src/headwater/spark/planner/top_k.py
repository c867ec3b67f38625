"""Top-k: the first rows of each partition of a window, `row_number() … <= k`, as Spark's optimiser has found it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as arrow_types

from headwater.operators.ranking import Order, Ranking
from headwater.operators.top_k_tree import MOST_ROWS
from headwater.spark.catalyst import Catalyst, Java, label, number
from headwater.spark.planner.fields import field_of, oddity

_LIMIT = "WindowGroupLimit"


def top_k(catalyst: Catalyst, window: Java) -> Ranking | None:
    """Which rows a window over a limit gives; None if Spark has to tell."""
    limit, functions = window.child(), catalyst.items(window.windowExpressions())
    if limit.nodeName() != _LIMIT or len(functions) != 1 or limit.rankLikeFunction().nodeName() != "RowNumber":
        return None
    function = catalyst.children(functions[0])[0]
    if function.nodeName() != "WindowExpression" or function.windowFunction().nodeName() != "RowNumber":
        return None
    if not all(_is_plain(catalyst, each) for each in catalyst.items(window.partitionSpec())):
        return None
    orders = [_order(catalyst, each) for each in catalyst.items(window.orderSpec())]
    found = tuple(each for each in orders if each is not None)
    if len(found) < len(orders):
        return None
    return Ranking(int(limit.limit()), found, label(functions[0]))


def limited(
    catalyst: Catalyst, chain: Sequence[Java], order: Sequence[Java]
) -> tuple[tuple[Order, ...], int, int] | None:
    """The order of rows of which some are given, how many there are before those, and the place of the last.

    `chain` are the operators above the order, the topmost first. None if Spark has to tell.
    """
    orders = [_order(catalyst, each) for each in order]
    found = tuple(each for each in orders if each is not None)
    kinds = {"GlobalLimit": "limitExpr", "LocalLimit": "limitExpr", "Offset": "offsetExpr"}
    steps = [each for each in chain if each.nodeName() != "Project"]
    if len(found) < len(orders) or not all(each.nodeName() in kinds for each in steps):
        return None
    before, last = 0, MOST_ROWS + 1
    for each in reversed(steps):
        count = getattr(each, kinds[each.nodeName()])()
        if count.nodeName() != "Literal":
            return None
        if each.nodeName() == "Offset":
            before += int(count.toString())
        else:
            last = min(last, before + int(count.toString()))
    return (found, before, last) if before < last <= MOST_ROWS else None


def _is_plain(catalyst: Catalyst, key: Java) -> bool:
    """Whether rows are of one partition exactly if a column of theirs is the same bit by bit."""
    found = catalyst.normalised(key)  # floats become other columns
    return not oddity(key) and bool(found.foldable() or found.nodeName() == "AttributeReference")


def _order(catalyst: Catalyst, given: Java) -> Order | None:
    """A column by which we order as Spark does."""
    column = catalyst.children(given)[0]
    if column.nodeName() != "AttributeReference" or oddity(column) or not _is_ordered(field_of(column).type):
        return None
    ascending = given.direction().toString() == "Ascending"
    return Order(label(column), ascending, nulls_first=given.nullOrdering().toString() == "NullsFirst")


def _is_ordered(given: pa.DataType) -> bool:
    return bool(
        arrow_types.is_signed_integer(given)
        or arrow_types.is_floating(given)
        or arrow_types.is_boolean(given)
        or arrow_types.is_decimal128(given)
        or arrow_types.is_date32(given)
        or arrow_types.is_timestamp(given)
        or arrow_types.is_string(given)
        or arrow_types.is_binary(given)
    )


def without_limit(catalyst: Catalyst, window: Java, limit: int, steps: list[Java]) -> list[Java]:
    """The steps above a window of which only the first rows are given, without what asks for no more than that.

    The topmost step is the first of them.
    """
    if window.nodeName() != "Window" or not steps or steps[-1].nodeName() != "Filter":
        return steps
    lowest, place = steps[-1], number(catalyst.items(window.windowExpressions())[0])
    conditions = catalyst.conjuncts(lowest.condition())
    kept = [each for each in conditions if not _asks_for(catalyst, each, place, limit)]
    if len(kept) == len(conditions):
        return steps
    return [*steps[:-1], *([catalyst.filter(catalyst.conjunction(kept), lowest.child())] if kept else [])]


def _asks_for(catalyst: Catalyst, condition: Java, place: int, limit: int) -> bool:
    """Whether a condition is fulfilled by the places from 1 to the limit, and by no others."""
    asked = {"LessThanOrEqual": limit, "LessThan": limit + 1} | ({"EqualTo": 1} if limit == 1 else {})
    if condition.nodeName() not in asked:
        return False
    left, right = catalyst.children(condition)
    if left.nodeName() != "AttributeReference" or number(left) != place or right.nodeName() != "Literal":
        return False
    return bool(right.toString() == str(asked[condition.nodeName()]))
