"""Top-k: the first rows of each key, what `row_number() … <= k` asks for.

The rows that were given so far and those that come stand for all, as long as none leaves; of another key nothing is
looked at. It keeps what it has emitted, and, unless rows only come, those of its input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.gather import gather
from headwater.change.keys import hashed_schema
from headwater.change.weights import appended, negated
from headwater.operators.ranking import Ranking, numbered, ranked, repeated
from headwater.operators.recompute import Part, Recompute, candidates, touched_by
from headwater.plan.physical import Evaluate, Given, Made, State
from headwater.plan.registry import register
from headwater.state.arrangement import Arrangement


@register("Recompute", when=lambda given: given["first"] is not None)
@dataclass(frozen=True)
class TopK(Recompute):
    """A recompute that selects the `first` rows of each key of its only input, which are told without Spark."""

    @classmethod
    def of(cls, node: Recompute, ranking: Ranking, **others: Any) -> TopK:
        """What Spark could do too, as this operator; `others` are fields that are otherwise."""
        given = {each.name: getattr(node, each.name) for each in fields(node)}
        return cls(**{**given, **others, "first": ranking, "selects": True})

    @property
    def ranking(self) -> Ranking:
        """Which rows are the first."""
        assert self.first is not None
        return self.first

    @property
    def asks(self) -> None:
        """Nothing is left to Spark."""
        return None

    @property
    def states(self) -> tuple[State, ...]:
        """What it has emitted; the place of the only first row need not be known."""
        spare = (self.ranking.place,) if self.ranking.limit == 1 else ()
        return tuple(replace(each, spare=spare) for each in super().states)

    @property
    def partial(self) -> PartialTopK | None:
        """What can be among the first rows, if none ever leaves."""
        return (
            PartialTopK(self.ranking, self.keys[0], hashed_schema(self.inputs[0].schema)) if self.forgets else None
        )

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Compare the change with what was emitted."""
        given = inputs[0] if self.forgets else inputs[0].settled()  # else rows only come
        change = given.change
        result, read = top_k(self, Part(change, given.old), states[0], filling=filling)
        return Made([None if self.forgets else change, result], [result], read)


@dataclass(frozen=True)
class PartialTopK:
    """Those rows of a part of a change that can be among the first of their key."""

    ranking: Ranking
    keys: tuple[str, ...]
    schema: pa.Schema
    slices: ClassVar[int] = 1
    groups: ClassVar[tuple[str, ...] | None] = None

    def of(self, change: pa.Table) -> pa.Table:
        """See `partial_top_k`."""
        return partial_top_k(self.ranking, self.keys, change)


def top_k(node: TopK, part: Part, old: Arrangement, *, filling: bool) -> tuple[pa.Table, int]:
    """The change of the output, with `_hash` and `_weight`, and the number of state rows read."""
    touched = touched_by(node, [part], filling=filling)
    if not len(touched):
        return old.schema.empty_table(), 0
    ranking, emitted = node.ranking, old.probe(touched)
    if not (part.change.column(WEIGHT).to_numpy() < 0).any():
        return top_k_changes(ranking, node.keys[0], part.change, emitted), emitted.num_rows
    rows, read = candidates(node, part, emitted)
    new = top_k_rows(ranking, node.keys[0], rows, emitted.schema)
    return consolidate(pa.concat_tables([negated(emitted), new])), read + emitted.num_rows


def top_k_changes(ranking: Ranking, keys: Sequence[str], change: pa.Table, emitted: pa.Table) -> pa.Table:
    """The change of what is given, if rows only came: `emitted` is what was given for their keys before."""
    names = [name for name in change.column_names if name not in {WEIGHT, HASH}]
    came = repeated(change, ranking.limit)
    both = pa.concat_tables([table.select([*names, HASH]) for table in (emitted, came)])
    places = np.ones(emitted.num_rows, np.int64)  # of the only one
    if ranking.limit > 1 or ranking.place in emitted.column_names:
        places = emitted.column(ranking.place).to_numpy()
    rows, numbers, tied = ranked(ranking, keys, both)
    shown = rows < len(places)
    same = np.zeros(len(rows), np.bool_)
    same[shown] = places[rows[shown]] == numbers[shown]
    leaving = np.ones(len(places), np.bool_)
    leaving[rows[same]] = False
    new = numbered(ranking, gather(both, rows[~same]), numbers[~same], emitted.schema)
    made = pa.concat_tables([negated(emitted.filter(pa.array(leaving))), new])
    return consolidate(made) if tied and ranking.limit > 1 else made  # one may have come to the place of its like


def top_k_rows(ranking: Ranking, keys: Sequence[str], rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The first rows of each key, with their places, `_hash` and `_weight`; `rows` have weights above 0."""
    given = repeated(rows, ranking.limit).drop_columns([WEIGHT])
    chosen, numbers, _ = ranked(ranking, keys, given)
    return numbered(ranking, gather(given, chosen), numbers, schema)


def partial_top_k(ranking: Ranking, keys: Sequence[str], rows: pa.Table) -> pa.Table:
    """Those of some rows that can be among the first of their key, where none ever leaves."""
    given = repeated(rows, ranking.limit).drop_columns([WEIGHT])
    return appended(gather(given, ranked(ranking, keys, given)[0]))
