"""Outer, semi, anti and existence joins with an equality between the two sides.

Without any other condition a row has a match if its key is there on the other side: `OuterJoin`, `SemiJoin`. With
one, the pairs for which it is true are counted for each row: `MatchCounts`, once for each side whose rows without a
match are wanted, over a filter over `JoinWithRows`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headwater.evaluation import LEFT_MARK, RIGHT_MARK
from headwater.operators.join_with_rows import JoinWithRows
from headwater.operators.match_counts import OUTER, MatchCounts
from headwater.operators.outer_join import OuterJoin
from headwater.operators.semi_join import ANTI, EXISTENCE, SEMI, SemiJoin
from headwater.operators.stateless import Fragment
from headwater.plan.operators import Fields, Node
from headwater.spark.catalyst import Catalyst, Java, label
from headwater.spark.planner.fields import field_of, oddity
from headwater.spark.planner.fragment import Chain, compile_fragment
from headwater.spark.planner.recompute import once

_WHOLE = {"LeftOuter": (True, False), "RightOuter": (False, True), "FullOuter": (True, True)}
"""Of which sides all rows are given."""
_ONE_SIDE = {"LeftSemi": SEMI, "LeftAnti": ANTI, "ExistenceJoin": EXISTENCE}


@dataclass(frozen=True)
class Sides:
    """Both sides of a join with the columns that are equal, at least one, and what else must be true of a pair."""

    left: Node
    right: Node
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    condition: Java | None


def kind_of(plan: Java) -> str:
    """The type of a join, without its arguments."""
    return str(plan.joinType().toString()).split("(", 1)[0]


def equalities(catalyst: Catalyst, plan: Java) -> tuple[list[tuple[Java, Java]], Java | None]:
    """The expressions of both sides that must be equal in a join, and what else must be true of a pair."""
    found = catalyst.equi_join(plan)
    left_keys = catalyst.items(found._2()) if found is not None else []
    right_keys = catalyst.items(found._3()) if found is not None else []
    pairs = [pair for pair in zip(left_keys, right_keys, strict=True) if not any(map(oddity, pair))]
    condition = plan.condition() if len(pairs) < len(left_keys) or found is None else found._4()
    return pairs, catalyst.option(condition)


def counts_matches(plan: Java) -> bool:
    """Whether it is a join of a type that is kept here."""
    return kind_of(plan) in _WHOLE.keys() | _ONE_SIDE.keys()


def unmatched_join(catalyst: Catalyst, plan: Java, sides: Sides, name: Callable[[str], str]) -> Node:
    """Our operator for a join of such a type; `name` gives names to operators of a kind."""
    return _Joining(catalyst, plan, sides, name).node()


class _Joining:
    def __init__(self, catalyst: Catalyst, plan: Java, sides: Sides, name: Callable[[str], str]) -> None:
        self._catalyst = catalyst
        self._plan = plan
        self._sides = sides
        self._name = name
        self._kind = kind_of(plan)
        self._left = once(catalyst.items(plan.left().output()))
        self._right = once(catalyst.items(plan.right().output()))

    def node(self) -> Node:
        """The operator."""
        sides = self._sides
        if sides.condition is not None:
            return self._with_condition(sides.condition)
        given = (sides.left_keys, sides.right_keys)
        name = self._name("join")
        if self._kind in _ONE_SIDE:
            gives = _ONE_SIDE[self._kind]
            return SemiJoin(self._output(), *given, gives, name, left=sides.left, right=sides.right)
        whole = _WHOLE[self._kind]
        return OuterJoin(self._output(), *given, name, *whole, left=sides.left, right=sides.right)

    def _with_condition(self, condition: Java) -> Node:
        left, right = _WHOLE.get(self._kind, (True, False))
        marks = {
            side: self._catalyst.attribute(name, self._catalyst.bigint)
            for side, name, is_whole in (("left", LEFT_MARK, left), ("right", RIGHT_MARK, right))
            if is_whole
        }
        node: Node = self._filtered(condition, marks)
        words = self._words()
        if self._kind in _ONE_SIDE:
            return self._matches(node, "left", marks, self._output(), _ONE_SIDE[self._kind], words)
        if len(marks) == 1:
            (side,) = marks
            return self._matches(node, side, marks, self._output(), OUTER, words)
        node = self._matches(node, "left", marks, node.output, OUTER, f"{words}, of the left side")
        return self._matches(node, "right", marks, self._output(), OUTER, f"{words}, of the right side")

    def _filtered(self, condition: Java, marks: Mapping[str, Java]) -> Fragment:
        """The pairs for which the condition is true, and the rows of the sides that are marked."""
        catalyst, sides = self._catalyst, self._sides
        marked = tuple(field_of(each) for each in marks.values())
        names = {side: label(each) for side, each in marks.items()}
        pairs = JoinWithRows(
            (*self._fields(self._left), *self._fields(self._right), *marked),
            left=sides.left,
            right=sides.right,
            left_keys=sides.left_keys,
            right_keys=sides.right_keys,
            left_mark=names.get("left", ""),
            right_mark=names.get("right", ""),
            name=self._name("join"),
        )
        for mark in marks.values():
            condition = catalyst.either(catalyst.present(mark), condition)
        attributes = [*self._left, *self._right, *marks.values()]
        steps = [catalyst.filter(condition, catalyst.local(catalyst.sequence(attributes)))]
        if self._kind in _ONE_SIDE:
            steps.insert(0, catalyst.project([*self._left, *marks.values()], steps[0]))
        return compile_fragment(catalyst, pairs, Chain(steps, attributes))

    def _matches(
        self, child: Node, side: str, marks: Mapping[str, Java], output: Fields, gives: str, text: str
    ) -> MatchCounts:
        """The counts of one side."""
        row = self._left if side == "left" else self._right
        others = [label(mark) for other, mark in marks.items() if other != side]
        return MatchCounts(
            output,
            child=child,
            row=tuple(label(each) for each in row),
            mark=label(marks[side]),
            other_mark="".join(others),
            gives=gives,
            name=self._name("matches"),
            text=text,
        )

    def _words(self) -> str:
        """What SQL calls it."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self._kind.removesuffix("Join")).lower() + " join"

    def _output(self) -> Fields:
        """Its columns."""
        if self._kind == "ExistenceJoin":
            return (*self._fields(self._left), field_of(self._catalyst.items(self._plan.output())[-1]))
        return self._fields(self._left) + (() if self._kind in _ONE_SIDE else self._fields(self._right))

    def _fields(self, attributes: Sequence[Java]) -> Fields:
        """The columns of a side that are given."""
        given = {each.name: each for each in (*self._sides.left.output, *self._sides.right.output)}
        return tuple(given[label(each)] for each in attributes)
