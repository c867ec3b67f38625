"""Outer, semi, anti and existence joins with a further condition: of each row the number of its pairs is kept.

Its input are the pairs for which the condition is true, and the rows of a side, marked (see `join_with_rows`). Rows
are the same if they are so bit by bit; of each it is kept how often it is there, and in how many pairs. What it
gives for a row changes when the row comes or goes, or its first pair comes or its last one goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.change import HASH, WEIGHT
from headwater.change.gather import gather
from headwater.change.keys import Codes, codes, hashed_schema
from headwater.operators.join import probed
from headwater.operators.outer_join import padded
from headwater.operators.semi_join import EXISTENCE, SEMI, told
from headwater.operators.stateful import Stateful, keys_told
from headwater.plan.operators import Keyed, Names, Node
from headwater.plan.physical import Evaluate, Exchange, Given, Made, State
from headwater.plan.registry import register
from headwater.state.arrangement import Arrangement
from headwater.store import LessThanNone

OUTER = "outer"
_ROWS, _PAIRS = "_rows", "_pairs"


@register()
@dataclass(frozen=True)
class MatchCounts(Stateful):
    """What a join gives for the rows of one side, whose columns are `row`, and which have the column `mark`.

    OUTER gives pairs, and rows without one, with nulls for the other side; rows of that, which have `other_mark`,
    go by. SEMI, ANTI and EXISTENCE give rows as `SemiJoin` does.
    """

    kind: ClassVar[str] = "bilinear"
    child: Node = field(kw_only=True)
    row: tuple[str, ...] = ()
    mark: str = ""
    other_mark: str = ""
    gives: str = OUTER
    name: str = ""
    text: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        """Its input."""
        return (self.child,)

    def over(self, children: Sequence[Node]) -> Self:
        """The same over another."""
        return replace(self, child=children[0])

    def renamed(self, names: Names) -> Self:
        """The row and the marks have the same names."""
        mark, other = names[self.mark], names[self.other_mark] if self.other_mark else ""
        return replace(super().renamed(names), row=names.all(self.row), mark=mark, other_mark=other)

    def bare(self) -> Self:
        """What it gives is left."""
        return replace(super().bare(), text="")

    @property
    def retracts(self) -> bool:
        """A row that has a match keeps it as long as none leaves."""
        return self.gives != SEMI

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Its input by row, of which nothing is kept. What goes by is spread by its mark."""
        key = (*self.row, self.other_mark) if self.other_mark else self.row
        return (replace(Keyed(self.child, key).physical(), settles=False),)

    @property
    def states(self) -> tuple[State, ...]:
        """Rows with their numbers."""
        fields = [self.child.schema.field(name) for name in self.row]
        fields += [pa.field(name, pa.int64()) for name in (_ROWS, _PAIRS)]
        return (State(self.name, hashed_schema(pa.schema(fields))),)

    @property
    def title(self) -> str:
        """What SQL calls it."""
        return self.text

    @property
    def work(self) -> str:
        """What a tick costs."""
        return "counts the pairs of the changed rows"

    @property
    def keeps(self) -> Mapping[str, str]:
        """The rows."""
        return keys_told({self.name: (self.child, self.row)})

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Count rows and pairs."""
        change, held = inputs[0].change, states[0]
        own = change.column(self.mark).is_valid()
        rows = change
        if self.other_mark:
            rows = change.filter(pc.or_(own, change.column(self.other_mark).is_null()))
        before = probed(held, rows)
        counts = self._counted(rows, before)
        result = self._given(counts)
        if self.gives == OUTER:
            result.append(change.filter(pc.invert(own)).select([*self.schema.names, WEIGHT]))
        return Made([None, _kept(counts, held.schema)], result, before.num_rows)

    def _counted(self, change: pa.Table, before: pa.Table) -> _Counts:
        """The rows of which a number changes."""
        new, old = codes([[table.column(name) for name in self.row] for table in (change, before)], bitwise=True)
        count = int(max(new.max(initial=-1), old.max(initial=-1))) + 1
        given = {_ROWS: change.column(self.mark).is_valid().to_numpy()}
        given[_PAIRS] = ~given[_ROWS]
        numbers = {}
        for name, mine in given.items():
            held = np.zeros(count, np.int64)
            held[old] = before.column(name).to_numpy()
            made = held.copy()
            np.add.at(made, new[mine], change.column(WEIGHT).to_numpy()[mine])
            if (made < 0).any():
                raise LessThanNone(self.name)
            numbers[name] = (held, made)
        changed = np.flatnonzero(np.any([held != made for held, made in numbers.values()], axis=0))
        first = np.zeros(count, np.int64)
        first[np.concatenate([new, old])[::-1]] = np.arange(len(new) + len(old))[::-1]
        both = pa.concat_tables([table.select([*self.row, HASH]) for table in (change, before)])
        then, now = ({name: each[place][changed] for name, each in numbers.items()} for place in (0, 1))
        return _Counts(gather(both, first[changed]), then, now)

    def _given(self, counts: _Counts) -> list[pa.Table]:
        """The change of what it gives for the rows themselves."""
        then, now = counts.then, counts.now
        alone = counts.weighed(_alone(now) - _alone(then))
        if self.gives == OUTER:
            marked = alone.append_column(self.mark, alone.column(HASH))
            return [padded(marked, self.schema)]
        matched = counts.weighed(now[_ROWS] - _alone(now) - then[_ROWS] + _alone(then))
        names = [*self.row, WEIGHT]
        if self.gives == EXISTENCE:
            return [told(matched.select(names), True, self), told(alone.select(names), False, self)]
        return [(matched if self.gives == SEMI else alone).select(names)]


class _Counts(NamedTuple):
    """Rows with their hashes, and how often each was and is there, in how many pairs."""

    rows: pa.Table
    then: Mapping[str, Codes]
    now: Mapping[str, Codes]

    def weighed(self, weights: Codes) -> pa.Table:
        """The rows with weights that are not 0."""
        weighed = self.rows.append_column(pa.field(WEIGHT, pa.int64()), pa.array(weights))
        return weighed.filter(pa.array(weights != 0))


def _alone(numbers: Mapping[str, Codes]) -> Codes:
    """How often each row is there, if it is in no pair."""
    found: Codes = np.where(numbers[_PAIRS] == 0, numbers[_ROWS], 0)
    return found


def _kept(counts: _Counts, schema: pa.Schema) -> pa.Table:
    """The change of what is kept."""
    parts = []
    for numbers, weight in ((counts.then, -1), (counts.now, 1)):
        there = (numbers[_ROWS] != 0) | (numbers[_PAIRS] != 0)
        table = counts.rows
        for name, values in numbers.items():
            table = table.append_column(name, pa.array(values))
        table = table.append_column(WEIGHT, pa.array(np.full(table.num_rows, weight)))
        parts.append(table.filter(pa.array(there)).select(schema.names))
    return pa.concat_tables(parts)
