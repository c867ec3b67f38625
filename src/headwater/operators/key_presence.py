"""Which keys are there on one side of a join, and which rows of the other side so have a match.

Of each key of a side one row is kept, with the number of the side's rows that have it. With L the other side and
D the keys that are there, the rows of L with a match are L ⋈ D, and their change is l ⋈ D' + L ⋈ d: rows of L that
were there before are looked up only if their key comes first, or goes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.keys import without_nulls
from headwater.operators.accumulate import Aggregate, accumulate, state_schema
from headwater.operators.join import Mask, paired, probed
from headwater.plan.operators import Node
from headwater.plan.physical import State
from headwater.state.arrangement import Arrangement


class KeyPresence:
    """The keys of a side, without nulls, kept under a name. `key` are its columns, some maybe more than once."""

    def __init__(self, side: Node, key: Sequence[str], name: str) -> None:
        once = tuple(dict.fromkeys(key))
        by_name = {each.name: each for each in side.output}
        self._keys = Aggregate(tuple(by_name[each] for each in once), child=side, keys=once, name=name)
        self._key = key
        self.state = State(name, state_schema(self._keys))

    def moved(self, change: pa.Table, held: Arrangement) -> Moved:
        """What a change of the side, with its hashes, makes of its keys."""
        state, keys, read = accumulate(self._keys, without_nulls(change, self._key), held)
        return Moved(state, keys, read)

    def matched(self, rows: pa.Table, key: Sequence[str], moved: Moved, held: Arrangement) -> tuple[Mask, int]:
        """Which rows of the other side have a match after the change, and how many keys were read for it."""
        before = probed(held, rows).select(moved.keys.column_names)
        there = consolidate(pa.concat_tables([before, moved.keys]))
        found = np.zeros(rows.num_rows, np.bool_)
        for pairs in paired(rows, there, (key, self._key), rows.schema):
            found[pairs.left_rows] = True
        return found, before.num_rows

    def turned(self, rows: pa.Table, key: Sequence[str], moved: Moved) -> pa.Table:
        """Of rows of the other side as they were before, those that get a match; negative those that lose it."""
        names = [name for name in rows.column_names if name not in {HASH, WEIGHT}]
        schema = pa.schema([*(rows.schema.field(name) for name in names), pa.field(WEIGHT, pa.int64())])
        return paired(rows, moved.keys, (key, self._key), schema).table()


class Moved(NamedTuple):
    """The change of the keys' state, the keys that came or went, with their hashes, and how many were read."""

    state: pa.Table
    keys: pa.Table
    read: int
