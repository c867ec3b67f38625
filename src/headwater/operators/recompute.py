"""The general operator: all rows of the touched keys are evaluated anew.

Its inputs and its output are arranged by the same hash. A tick fetches the rows of the touched hashes, applies the
change, and lets Spark evaluate them; what is taken back is what was emitted for those hashes before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.errors import HeadwaterError
from headwater.operators.canonical import canonical_order
from headwater.operators.failing import EvaluationFailed, explained, failing, narrowed_together
from headwater.operators.first import first_changes, first_rows
from headwater.operators.keys import Codes, codes, hashed_schema, hashes
from headwater.operators.table import appended, negated
from headwater.state.arrangement import Arrangement
from headwater.state.consolidate import consolidate
from headwater.state.gather import each_once
from headwater.views.plan import First, Recompute

PLACE = "_place"
Evaluate = Callable[[Sequence[pa.Table]], pa.Table]


class Part(NamedTuple):
    """An input of the operator: its change, with `_hash`, and its rows before the tick."""

    change: pa.Table
    old: Arrangement


def recompute(
    node: Recompute, parts: Sequence[Part], old: Arrangement, evaluate: Evaluate, *, filling: bool
) -> tuple[pa.Table, int]:
    """The change of the output, with `_hash` and `_weight`, and the number of state rows read.

    `evaluate` gets the rows of each input, each as often as its weight says, in canonical order, with `_hash` and
    `_place`; it gives the operator's columns and `_hash`.
    """
    touched = touched_by(node, parts, filling=filling)
    if not len(touched):
        return old.schema.empty_table(), 0
    emitted = old.probe(touched)
    if node.first is not None:
        return _first(node, node.first, parts[0], emitted)
    found = [input_rows(node, part, touched, emitted) for part in parts]
    made = _evaluated(node, [rows for rows, _ in found], evaluate)
    return difference(emitted, made), sum(read for _, read in found) + emitted.num_rows


def touched_by(node: Recompute, parts: Sequence[Part], *, filling: bool) -> Codes:
    """The hashes that a change touches, in order."""
    if node.is_whole and filling:
        return whole()
    return each_once(np.concatenate([part.change.column(HASH).to_numpy() for part in parts]))


def input_rows(node: Recompute, part: Part, touched: Codes, emitted: pa.Table) -> tuple[pa.Table, int]:
    """The rows of an input that are to be evaluated, with their weights, and how many were read for it."""
    return _candidates(node, part, emitted) if node.selects else _all(part, touched)


def difference(emitted: pa.Table, made: pa.Table) -> pa.Table:
    """What changes if this is given, the operator's columns and `_hash`, instead of what was."""
    new = pa.Table.from_arrays(appended(made).columns, schema=emitted.schema)
    return consolidate(pa.concat_tables([negated(emitted), new]))


def _first(node: Recompute, first: First, part: Part, emitted: pa.Table) -> tuple[pa.Table, int]:
    """The same where only the first rows of each key are given."""
    if not (part.change.column(WEIGHT).to_numpy() < 0).any():
        return first_changes(first, node.keys[0], part.change, emitted), emitted.num_rows
    rows, read = _candidates(node, part, emitted)
    new = first_rows(first, node.keys[0], rows, emitted.schema)
    return consolidate(pa.concat_tables([negated(emitted), new])), read + emitted.num_rows


def _evaluated(node: Recompute, found: Sequence[pa.Table], evaluate: Evaluate) -> pa.Table:
    """What the operator gives; an error names a row, or one of those that fail together."""

    def computed(tables: Sequence[pa.Table]) -> pa.Table:
        return evaluate([in_order(rows) for rows in tables])

    try:
        return computed(found)
    except EvaluationFailed as error:
        given = narrowed_together(found, failing(computed))
        place = next((place for place, rows in enumerate(given) if rows.num_rows), 0)
        raise explained(error, given[place], node.inputs[place].output) from error


def _all(part: Part, touched: Codes) -> tuple[pa.Table, int]:
    """All rows with these hashes after the change, and how many were read."""
    held = part.old.probe(touched)
    return consolidate(pa.concat_tables([held, part.change.select(held.column_names)])), held.num_rows


def _candidates(node: Recompute, part: Part, emitted: pa.Table) -> tuple[pa.Table, int]:
    """Rows that can be among the first ones after the change, and how many were read for it.

    What was emitted and what came will do, unless something that was emitted leaves: then all rows of its key are
    looked at. What leaves without having been emitted was not among the first ones.
    """
    names = [name for name in node.inputs[0].schema.names if name in node.schema.names]
    change = consolidate(part.change.select([*names, HASH, WEIGHT]))
    shown = consolidate(emitted.select([*names, HASH, WEIGHT]))
    leaving = change.filter(pa.array(change.column(WEIGHT).to_numpy() < 0))
    stale = _shared(shown, leaving)
    held, read = _all(part, stale) if len(stale) else (part.old.schema.empty_table(), 0)
    held = held.filter(pa.array(np.isin(held.column(HASH).to_numpy(), stale)))
    rest = consolidate(pa.concat_tables([shown, change]))
    useful = ~np.isin(rest.column(HASH).to_numpy(), stale) & (rest.column(WEIGHT).to_numpy() > 0)
    return pa.concat_tables([rest.filter(pa.array(useful)), held.select(rest.column_names)]), read


def _shared(one: pa.Table, other: pa.Table) -> Codes:
    """The hashes of rows that both tables have."""
    if not one.num_rows or not other.num_rows:
        return np.zeros(0, np.int64)
    names = [name for name in one.column_names if name != WEIGHT]
    mine, theirs = codes([[table.column(name) for name in names] for table in (one, other)], bitwise=True)
    return each_once(one.column(HASH).to_numpy()[np.isin(mine, theirs)])


def whole() -> Codes:
    """The one hash under which everything is when there is no key."""
    return hashes(pa.table({"x": [0]}), [])


def output_schema(node: Recompute) -> pa.Schema:
    """The columns of the arrangement of what was emitted."""
    return hashed_schema(node.schema)


def in_order(table: pa.Table) -> pa.Table:
    """Every row as often as its weight says, in an order that only depends on what the rows are."""
    weights = table.column(WEIGHT).to_numpy()
    if (weights < 0).any():
        msg = "more rows disappeared than there were"
        raise HeadwaterError(msg, hint="this is a fault of Headwater; please report it")
    table = table.drop_columns([WEIGHT])
    order = canonical_order(table.drop_columns([HASH]))
    if (weights != 1).any():
        order = np.repeat(order, weights[order])
    table = table.take(pa.array(order))
    return table.append_column(pa.field(PLACE, pa.int64()), pa.array(np.arange(table.num_rows)))
