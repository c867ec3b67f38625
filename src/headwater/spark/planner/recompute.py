"""Operators of Spark's that are evaluated anew for the touched keys.

Such an operator stands over *leaves*: empty relations that take the place of its inputs. A leaf has the input's
columns, the hash of the row's key and the row's place in canonical order. The operator carries the hash along, so
that what it gives can be told by key; where there is only one key, its hash is a constant.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.change import HASH
from headwater.evaluation import PLACE
from headwater.operators.recompute import whole
from headwater.spark.catalyst import Catalyst, Java, number
from headwater.spark.evaluator.computing import Leaf, Recomputing
from headwater.spark.planner.fields import field_of, types_of


class Operators:
    """Makes operators over leaves."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def leaf(self, attributes: Sequence[Java]) -> Leaf:
        """A leaf with these columns."""
        catalyst = self._catalyst
        added = (catalyst.attribute(name, catalyst.bigint) for name in (HASH, PLACE))
        given = once(attributes)
        every = (*given, *added)
        columns = tuple(field_of(each) for each in given)
        return Leaf(every, types_of(every), columns, catalyst.local(catalyst.sequence(every)))

    def made(
        self, operator: Java, leaves: Sequence[Leaf], output: Sequence[Java], carried: Java | None
    ) -> Recomputing:
        """The operator with its output and the hash; that of everything if none is carried."""
        catalyst = self._catalyst
        found = catalyst.expression(f"{whole()[0]}L") if carried is None else carried
        output = once(output)
        operator = catalyst.project([*output, catalyst.alias(found, HASH)], operator)
        return Recomputing((operator,), tuple(leaves), tuple(field_of(each) for each in output))

    def aggregate(self, plan: Java, leaf: Leaf, order: Sequence[Java] = (), *, keyed: bool) -> Recomputing:
        """A GROUP BY; with keys the hash is one more of them. Rows come in an order, if one is given."""
        catalyst = self._catalyst
        carried = [leaf.hash] if keyed else []
        rows = leaf.plan
        if order:
            rows = catalyst.sort([*order, catalyst.ascending(leaf.place)], rows, everywhere=False)
        operator = catalyst.aggregate(
            [*catalyst.items(plan.groupingExpressions()), *carried],
            [*catalyst.items(plan.aggregateExpressions()), *carried],
            rows,
        )
        return self.made(operator, [leaf], catalyst.items(plan.output()), leaf.hash if keyed else None)

    def window(
        self, plan: Java, first: Java | None, leaf: Leaf, order: Sequence[Java] = (), *, keyed: bool
    ) -> Recomputing:
        """Window functions, maybe over the first rows only. `order` is that of rows that are tied.

        Where it leaves the order open too, the place decides.
        """
        catalyst = self._catalyst
        whole = [catalyst.ascending(each) for each in catalyst.items(plan.partitionSpec())]
        whole += [*catalyst.items(plan.orderSpec()), *order, catalyst.ascending(leaf.place)]
        operator = catalyst.sort(whole, leaf.plan, everywhere=False)
        if first is not None:
            operator = catalyst.with_child(first, operator)
        operator = catalyst.with_child(plan, operator)
        return self.made(operator, [leaf], catalyst.items(plan.output()), leaf.hash if keyed else None)

    def join(self, plan: Java, left: Leaf, right: Leaf, *, keyed: bool) -> Recomputing:
        """A join of any type."""
        catalyst = self._catalyst
        operator = catalyst.with_children(plan, [left.plan, right.plan])
        kind = plan.joinType().toString()
        carried = left.hash
        if kind == "RightOuter":
            carried = right.hash
        elif kind == "FullOuter":
            carried = catalyst.coalesce([left.hash, right.hash])
        return self.made(operator, [left, right], catalyst.items(plan.output()), carried if keyed else None)

    def limit(
        self, chain: Sequence[Java], order: Sequence[Java], leaf: Leaf, output: Sequence[Java]
    ) -> Recomputing:
        """LIMIT and OFFSET over an order; `chain` are the operators above the order, the topmost first."""
        catalyst = self._catalyst
        operator = catalyst.sort([*order, catalyst.ascending(leaf.place)], leaf.plan, everywhere=True)
        for each in reversed(chain):
            operator = catalyst.with_child(each, operator)
        return self.made(operator, [leaf], output, None)


def once(expressions: Sequence[Java]) -> list[Java]:
    """The named expressions, each attribute once."""
    return list({number(each): each for each in expressions}.values())
