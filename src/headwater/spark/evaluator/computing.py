"""What Spark evaluates: the steps of a fragment, or an operator whose leaves become rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwater.plan.operators import Fields
from headwater.spark.catalyst import Catalyst, Java, number


@dataclass(frozen=True)
class Computing:
    """What Spark does for a fragment: `steps`, the lowest first, over a relation of `attributes`.

    The attributes are the fragment's inputs and the row number; `types` describes them as Spark does.
    `plain`: projections and filters only, which Spark evaluates on the driver at once.
    """

    attributes: Sequence[Java]
    types: str
    steps: Sequence[Java]
    inputs: Fields
    outputs: Fields
    plain: bool


@dataclass(frozen=True)
class Leaf:
    """An input of an operator: `attributes` are its `columns`, the hash and the place."""

    attributes: Sequence[Java]
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
    """What Spark evaluates: `operator`, the only one of `operators`, once rows have taken the place of its leaves.

    It gives `outputs`, and then the hash.
    """

    operators: Sequence[Java]
    leaves: tuple[Leaf, ...]
    outputs: Fields

    @property
    def operator(self) -> Java:
        """The operator."""
        return self.operators[0]


def filled(catalyst: Catalyst, plan: Java, leaves: Mapping[int, Java]) -> Java:
    """A plan with other leaves, told by the number of their last attribute."""
    children = catalyst.children(plan)
    if not children:
        attributes = catalyst.items(plan.output())
        return leaves.get(number(attributes[-1]), plan) if attributes else plan
    return catalyst.with_children(plan, [filled(catalyst, child, leaves) for child in children])
