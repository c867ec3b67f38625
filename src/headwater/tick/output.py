"""A view's own rows: its change, consolidated, named and checked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.operators.failing import EvaluationFailed
from headwater.operators.keys import codes, with_hash
from headwater.read.relation import Relation
from headwater.state.arrangement import Arrangement
from headwater.state.consolidate import consolidate
from headwater.state.shape import shaped
from headwater.tick.relations import arranged, columns_of, hashed


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
