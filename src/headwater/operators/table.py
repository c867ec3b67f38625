"""What the records of a tick change in a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.gather import gather
from headwater.change.keys import Codes, codes
from headwater.change.weights import negated
from headwater.state.arrangement import Arrangement

OPERATION = "_op"
_UPSERT, _DELETE = 1, 2


def keyed_changes(records: pa.Table, key: Sequence[str], old: Arrangement) -> pa.Table:
    """The change of a keyed table: of each key the last record wins; deleting what is absent does nothing.

    `records` have the table's columns, `_op` (its number) and `_hash`, in the order of the log.
    """
    if not records.num_rows:
        return old.schema.empty_table()
    before = old.probe(records.column(HASH).to_numpy())
    touched, held = codes([[t.column(name) for name in key] for t in (records, before)])
    last = np.full(int(max(touched.max(), held.max(initial=0))) + 1, -1, np.int64)
    last[touched] = np.arange(len(touched))
    replaced = before.filter(pa.array(last[held] >= 0))
    newest = gather(records, np.sort(last[last >= 0]))
    kept = newest.filter(pa.array(newest.column(OPERATION).to_numpy() != _DELETE))
    return consolidate(pa.concat_tables([negated(replaced), _weighed(kept, old.schema, 1)]))


def multiset_changes(records: pa.Table, old: Arrangement) -> pa.Table:
    """The change of a table without a key: rows are added, and taken away as far as they are there."""
    if not records.num_rows:
        return old.schema.empty_table()
    names = [name for name in old.schema.names if name not in {HASH, WEIGHT}]
    before = old.probe(records.column(HASH).to_numpy())
    rows, held = codes([[t.column(name) for name in names] for t in (records, before)], bitwise=True)
    count = int(max(rows.max(), held.max(initial=0))) + 1
    held_before = np.bincount(held, before.column(WEIGHT).to_numpy(), count).astype(np.int64)
    steps = np.where(records.column(OPERATION).to_numpy() == _DELETE, -1, 1)
    order = np.argsort(rows, kind="stable")
    touched, change = _walked(rows[order], steps[order], held_before)
    first = np.full(count, -1, np.int64)
    first[rows[::-1]] = np.arange(len(rows))[::-1]
    moved = change != 0
    chosen = gather(records, first[touched[moved]])
    return _weighed(chosen, old.schema, change[moved])


def _walked(rows: Codes, steps: Codes, before: Codes) -> tuple[Codes, Codes]:
    """For each row its net change, where a count that would fall below zero stays at zero."""
    starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
    touched = rows[starts]
    sums = np.cumsum(steps)
    base = np.concatenate([[0], sums])[starts]
    lengths = np.diff(np.append(starts, len(rows)))
    levels = sums - np.repeat(base, lengths) + np.repeat(before[touched], lengths)
    lowest = np.minimum(np.minimum.reduceat(levels, starts), 0)
    final = levels[np.append(starts[1:], len(rows)) - 1] - lowest
    return touched, final - before[touched]


def _weighed(records: pa.Table, schema: pa.Schema, weights: Codes | int) -> pa.Table:
    values = np.broadcast_to(np.asarray(weights, np.int64), records.num_rows)
    columns = [records.column(name) for name in schema.names if name != WEIGHT]
    return pa.Table.from_arrays([*columns, pa.array(values)], schema=schema)


def record_schema(columns: pa.Schema) -> pa.Schema:
    """The columns of records on their way into a table."""
    return pa.schema([*columns, pa.field(OPERATION, pa.int8()), pa.field(HASH, pa.int64())])
