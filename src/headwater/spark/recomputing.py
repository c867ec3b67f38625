"""Operators of Spark's that are evaluated anew for the touched keys.

Such an operator stands over *leaves*: empty relations that take the place of its inputs. A leaf has the input's
columns, the hash of the row's key and the row's place in canonical order. The operator carries the hash along, so
that what it gives can be told by key; where there is only one key, its hash is a constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwater.change import HASH
from headwater.operators.recompute import PLACE, whole
from headwater.spark.catalyst import Catalyst, Java, number
from headwater.spark.fields import field_of, types_of
from headwater.views.plan import Fields


@dataclass(frozen=True)
class Leaf:
    """An input of an operator: `attributes` are its `columns`, the hash and the place."""

    attributes: tuple[Java, ...]
    types: str
    columns: Fields
    plan: Java

    @property
    def hash(self) -> Java:
        """The attribute that holds the hash."""
        return self.attributes[-2]

    @property
    def place(self) -> Java:
        """The attribute that holds the place."""
        return self.attributes[-1]


@dataclass(frozen=True)
class Recomputing:
    """What Spark evaluates: `operator`, once rows have taken the place of its leaves.

    It gives `outputs`, and then the hash.
    """

    operator: Java
    leaves: tuple[Leaf, ...]
    outputs: Fields


class Operators:
    """Makes operators over leaves."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def leaf(self, attributes: Sequence[Java]) -> Leaf:
        """A leaf with these columns."""
        catalyst = self._catalyst
        added = (catalyst.attribute(name, catalyst.bigint) for name in (HASH, PLACE))
        every = (*attributes, *added)
        columns = tuple(field_of(each) for each in attributes)
        return Leaf(every, types_of(every), columns, catalyst.local(catalyst.sequence(every)))

    def made(
        self, operator: Java, leaves: Sequence[Leaf], output: Sequence[Java], carried: Java | None
    ) -> Recomputing:
        """The operator with its output and the hash; that of everything if none is carried."""
        catalyst = self._catalyst
        found = catalyst.expression(f"{whole()[0]}L") if carried is None else carried
        operator = catalyst.project([*output, catalyst.alias(found, HASH)], operator)
        return Recomputing(operator, tuple(leaves), tuple(field_of(each) for each in output))

    def aggregate(self, plan: Java, leaf: Leaf, *, keyed: bool) -> Recomputing:
        """A GROUP BY; with keys the hash is one more of them."""
        catalyst = self._catalyst
        carried = [leaf.hash] if keyed else []
        operator = catalyst.aggregate(
            [*catalyst.items(plan.groupingExpressions()), *carried],
            [*catalyst.items(plan.aggregateExpressions()), *carried],
            leaf.plan,
        )
        return self.made(operator, [leaf], catalyst.items(plan.output()), leaf.hash if keyed else None)

    def window(self, plan: Java, first: Java | None, leaf: Leaf, *, keyed: bool) -> Recomputing:
        """Window functions, maybe over the first rows only. Rows have an order where the query leaves it open."""
        catalyst = self._catalyst
        order = [catalyst.ascending(each) for each in catalyst.items(plan.partitionSpec())]
        order += [*catalyst.items(plan.orderSpec()), catalyst.ascending(leaf.place)]
        operator = catalyst.sort(order, leaf.plan, everywhere=False)
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


def filled(catalyst: Catalyst, plan: Java, leaves: Mapping[int, Java]) -> Java:
    """A plan with other leaves, told by the number of their last attribute."""
    children = catalyst.children(plan)
    if not children:
        attributes = catalyst.items(plan.output())
        return leaves.get(number(attributes[-1]), plan) if attributes else plan
    return catalyst.with_children(plan, [filled(catalyst, child, leaves) for child in children])
