"""A view's own rows: its change, consolidated, named and checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.operators.failing import EvaluationFailed
from headwater.operators.keys import codes, hashed_schema, with_hash
from headwater.read.relation import Relation
from headwater.state.arrangement import Arrangement
from headwater.state.consolidate import consolidate
from headwater.state.shape import shaped
from headwater.tick.relations import arranged, columns_of, hashed
from headwater.views.natural import keys_of
from headwater.views.plan import Aggregate, Fragment, Node, Recompute


@dataclass(frozen=True)
class Shown:
    """The columns of an operator that are those of a view, and their schema there."""

    columns: tuple[str, ...]
    schema: pa.Schema

    def rows(self, result: pa.Table) -> pa.Table:
        """The change of the view, given the operator's with its hashes."""
        return consolidate(shaped(result.select([*self.columns, HASH, WEIGHT]), self.schema))

    def emitted(self, node: Recompute) -> tuple[pa.Schema, tuple[str, ...]] | None:
        """How what an operator has emitted can be read from the view: its columns, and what they are called there.

        None if the view does not show all of them; the place of the only first row of a key need not be shown.
        """
        places = dict(zip(self.columns, self.schema.names, strict=False))
        wanted = list(node.schema)
        if node.first is not None and node.first.limit == 1 and node.first.place not in places:
            wanted = [field for field in wanted if field.name != node.first.place]
        if not places.keys() >= {field.name for field in wanted}:
            return None
        return hashed_schema(pa.schema(wanted)), tuple(places[field.name] for field in wanted)


def last_operator(root: Node, relation: Relation) -> tuple[Aggregate | Recompute, Shown] | None:
    """The last operator of a view, and how the view shows its rows; None if it keeps them by another key."""
    columns = tuple(root.schema.names)
    if isinstance(root, Fragment) and root.computing is None and not root.present:
        columns = tuple(dict(root.passed)[name] for name in columns)
        root = root.child
    if relation.key or not relation.by or not isinstance(root, Aggregate | Recompute):
        return None
    places = {name: place for place, name in enumerate(relation.columns.names)}
    if tuple(columns[places[name]] for name in relation.by) != keys_of(root):
        return None
    return root, Shown(columns, arranged(relation))


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
