"""A view's own rows: its change, consolidated, named and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.catalog.relation import Relation
from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.keys import codes, hashed_schema, with_hash
from headwater.change.shape import shaped
from headwater.evaluation.errors import EvaluationFailed
from headwater.plan.operators import Node
from headwater.plan.physical import Operate, State
from headwater.state.arrangement import Arrangement
from headwater.tick.relations import arranged, columns_of, hashed


@dataclass(frozen=True)
class Shown:
    """The columns of an operator that are those of a view, and their schema there."""

    columns: tuple[str, ...]
    schema: pa.Schema

    def rows(self, result: pa.Table) -> pa.Table:
        """The change of the view, given the operator's with its hashes."""
        return consolidate(shaped(result.select([*self.columns, HASH, WEIGHT]), self.schema))

    def emitted(self, state: State) -> tuple[pa.Schema, tuple[str, ...]] | None:
        """How what an operator has emitted can be read from the view: its columns, and what they are called there.

        None if the state is something else, or if the view does not show all of it that is needed.
        """
        places = dict(zip(self.columns, self.schema.names, strict=False))
        wanted = [each for each in state.schema if each.name not in (HASH, WEIGHT)]
        wanted = [each for each in wanted if each.name in places or each.name not in state.spare]
        if not state.emitted or not places.keys() >= {each.name for each in wanted}:
            return None
        return hashed_schema(pa.schema(wanted)), tuple(places[each.name] for each in wanted)


class Last(NamedTuple):
    """The last operator of a view, if the view keeps the rows as that does: then it keeps them for both."""

    step: Operate
    shown: Shown


def last_operator(root: Node, relation: Relation) -> Last | None:
    """The last operator of a view, and how the view shows its rows; None if it keeps them by another key."""
    operator, names = root.selected
    if relation.key or not relation.by:
        return None
    columns = tuple(names[name] for name in root.schema.names)
    places = {name: place for place, name in enumerate(relation.columns.names)}
    if tuple(columns[places[name]] for name in relation.by) != operator.arranged_by:
        return None
    step = operator.physical()
    return Last(step, Shown(columns, arranged(relation))) if isinstance(step, Operate) else None


def view_change(relation: Relation, change: pa.Table, old: Arrangement) -> pa.Table:
    """The consolidated change of a view, by its key, with its column names; an error if a key is there twice."""
    named = shaped(change, columns_of(relation).append(pa.field(WEIGHT, pa.int64())))
    settled = consolidate(with_hash(named, hashed(relation)))
    settled = pa.Table.from_arrays(settled.columns, schema=arranged(relation))
    if relation.key and settled.num_rows:
        _check_key(relation, settled, old)
    return settled


def _check_key(relation: Relation, change: pa.Table, old: Arrangement) -> None:
    """Every key is there once at most after the change."""
    both = pa.concat_tables([change, old.probe(change.column(HASH).to_numpy())])
    (numbers,) = codes([[both.column(name) for name in relation.key]])
    counts = np.bincount(numbers, both.column(WEIGHT).to_numpy())
    if (counts > 1).any():
        place = int(np.flatnonzero(numbers == np.argmax(counts))[0])
        values = ", ".join(f"{name} = {both.column(name)[place].as_py()!r}" for name in relation.key)
        msg = f"{int(counts.max())} rows have the key {values}"
        hint = f"declare the view with another key, or aggregate by {', '.join(relation.key)}"
        raise EvaluationFailed(msg, hint=hint)
