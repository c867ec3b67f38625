"""The bilinear operator for ranges: pairs of rows that overlap, found by search in state that is sorted by place.

    a.at < b.at                    a reaches from a.at on, b up to b.at
    x BETWEEN lo AND hi            a value, and a stretch
    a.lo <= b.hi AND b.lo <= a.hi  two stretches

The change follows from those of both sides and from what they meet, as for any join (see `join`). Both sides are
kept, each by its places (see `places`); a changed row reads what lies in its range. What is told of the ranges here
is a little more than the condition, which follows: `<` is `<=`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import numbers
from headwater.change.gather import gather, order_of
from headwater.change.keys import without_nulls
from headwater.change.pairs import PairBlocks, Stretches
from headwater.operators.join import Changed, change_of_pairs
from headwater.operators.places import Placing, Ranges, Span
from headwater.operators.stateful import Stateful
from headwater.plan.operators import Keyed, Names, Node
from headwater.plan.physical import Evaluate, Exchange, Given, Made
from headwater.plan.registry import register
from headwater.state.arrangement import Arrangement


@register()
@dataclass(frozen=True)
class RangeJoin(Stateful):
    """Pairs of rows with equal keys, if there are any, that overlap; no null is in a key or where a row ends.

    A row reaches from the first to the last of the columns of its side's span; one that is empty is open, and so is
    the other side's opposite.
    """

    kind: ClassVar[str] = "bilinear"
    grows: ClassVar[bool] = True
    left: Node = field(kw_only=True)
    right: Node = field(kw_only=True)
    left_keys: tuple[str, ...] = ()
    right_keys: tuple[str, ...] = ()
    left_span: tuple[str, str] = ("", "")
    right_span: tuple[str, str] = ("", "")
    name: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        """Its two sides."""
        return (self.left, self.right)

    def over(self, children: Sequence[Node]) -> Self:
        """The same over other sides."""
        return replace(self, left=children[0], right=children[1])

    def renamed(self, names: Names) -> Self:
        """The keys and the spans have the same names."""

        def ends(span: tuple[str, str]) -> tuple[str, str]:
            first, last = (each and names[each] for each in span)
            return first, last

        return replace(
            super().renamed(names),
            left_keys=names.all(self.left_keys),
            right_keys=names.all(self.right_keys),
            left_span=ends(self.left_span),
            right_span=ends(self.right_span),
        )

    @property
    def retracts(self) -> bool:
        """Pairs come and go with their rows."""
        return False

    @property
    def is_whole(self) -> bool:
        """Without keys the rows of a range may be anywhere."""
        return not self.left_keys

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Both sides, by key; their rows are kept, but by their places."""
        sides = ((self.left, self.left_keys, "left"), (self.right, self.right_keys, "right"))
        return tuple(Keyed(node, key, drops=True).physical(f"{self.name}.{place}") for node, key, place in sides)

    @property
    def title(self) -> str:
        """The columns that are equal, and those that are in order."""
        equal = f"{self.left.shown(self.left_keys)} = {self.right.shown(self.right_keys)}" if self.left_keys else ""
        (first, last), (begin, end) = self.left_span, self.right_span
        ordered = [
            f"{one.shown([low])} <= {other.shown([high])}"
            for one, low, other, high in ((self.left, first, self.right, end), (self.right, begin, self.left, last))
            if low
        ]
        return f"join on {', '.join([equal, *ordered] if equal else ordered)}"

    @property
    def work(self) -> str:
        """What a tick costs."""
        return f"searches the rows of the other side{' with its key' * bool(self.left_keys)} that are in its range"

    @property
    def keeps(self) -> Mapping[str, str]:
        """The rows of both sides in order."""
        sides = zip(("left", "right"), self.children, (self.left_keys, self.right_keys), self._sides, strict=True)
        return {
            f"{self.name}.{place}": f"{node.shown(key)}{', then ' * bool(key)}{node.shown(span.columns[:1])}"
            for place, node, key, span in sides
        }

    @property
    def _sides(self) -> tuple[Span, Span]:
        return Span(*self.left_span), Span(*self.right_span)

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Pair the changes with what they overlap on the other sides."""
        left, right = (
            RangeSide.of(given, Placing(span, bool(self.left_keys)), key)
            for given, span, key in zip(inputs, self._sides, (self.left_keys, self.right_keys), strict=True)
        )
        schema = self.schema.append(pa.field(WEIGHT, pa.int64()))
        left_old, right_old = left.overlapping(right), right.overlapping(left)
        result = change_of_pairs(
            Changed(left.change, left_old, lambda rows: left.among(rows, right)),
            Changed(right.change, right_old, lambda rows: right.among(rows, left)),
            lambda one, other: _paired(left, one, right, other, schema),
        )
        return Made([left.change, right.change], result, right_old.num_rows + left_old.num_rows)


class RangeSide(NamedTuple):
    """One side: its change in order of places, its rows before the tick, how they are placed, its key."""

    change: pa.Table
    old: Arrangement
    placing: Placing
    key: Sequence[str]

    @classmethod
    def of(cls, given: Given, placing: Placing, key: Sequence[str]) -> RangeSide:
        """The side of what came by the hash of the key, in order of its places: so it is searched, and kept."""
        change = without_nulls(given.change, (*key, *placing.span.columns))
        placed = placing.placed(change)
        order = order_of(numbers(placed, HASH))
        in_order = placed if bool(np.all(order[1:] > order[:-1])) else gather(placed, order)
        return cls(in_order, given.old, placing, key)

    def overlapping(self, other: RangeSide) -> pa.Table:
        """The rows before that the other side's change may overlap.

        If they are no more than the ranges that would be searched for, all rows of the touched keys.
        """
        if not other.change.num_rows or not self.old.runs:
            return self.old.schema.empty_table()
        found = self._searched(other)
        return self.old.between(found.lows, found.highs)

    def among(self, rows: pa.Table, other: RangeSide) -> pa.Table:
        """Those of placed rows that `overlapping` would find."""
        found, places = self._searched(other), numbers(rows, HASH)
        if not len(found.lows):
            return rows.slice(0, 0)
        order = order_of(found.lows)
        lows, highs = found.lows[order], np.maximum.accumulate(found.highs[order])
        before = np.searchsorted(lows, places, side="right")
        return rows.filter(pa.array((before > 0) & (places <= highs[before - 1])))

    def _searched(self, other: RangeSide) -> Ranges:
        change, lengths = other.change, self.placing.all_lengths
        if change.num_rows * len(lengths) >= self.old.rows:
            return self.placing.whole_keys(change)
        return self.placing.ranges(change, other.placing.span, lengths)


def _paired(
    left: RangeSide, left_rows: pa.Table, right: RangeSide, right_rows: pa.Table, schema: pa.Schema
) -> PairBlocks:
    """The pairs of rows of both sides: those of one side are searched in order for those of the other.

    That is done in the way in which less is to be searched for: once for each row and class of lengths.
    """
    one, other = (left, left_rows), (right, right_rows)
    costs = [
        rows.num_rows * len(side.placing.lengths(sorted_rows))
        for (_, rows), (side, sorted_rows) in ((one, other), (other, one))
    ]
    if costs[1] < costs[0]:
        one, other = other, one
    stretches = _overlapping(*one, *other)
    return PairBlocks(one[1], other[1], stretches, (one[0].key, other[0].key), schema)


def _overlapping(side: RangeSide, rows: pa.Table, other: RangeSide, others: pa.Table) -> Stretches:
    """Which rows of the other side are in the ranges of those of one."""
    places = numbers(others, HASH)
    order = order_of(places)
    places = places[order]
    found = other.placing.ranges(rows, side.placing.span, other.placing.lengths(others))
    first = np.searchsorted(places, found.lows, side="left")
    counts = np.searchsorted(places, found.highs, side="right") - first
    some = np.flatnonzero(counts)
    return Stretches(found.rows[some], first[some], counts[some], order)
