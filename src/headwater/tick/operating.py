"""Operating: the second kind of stage in the large path, by workers.

A worker takes a range of hashes from all runs that were spooled, and does with it what the small path does with
everything; its additions to the state go into a file of its own. Everything here is sent to workers and comes back
as plain data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.operators.accumulate import accumulate, accumulate_partials, state_schema
from headwater.operators.join import Pairs, Side, join
from headwater.operators.keys import hashed_schema, without_nulls
from headwater.operators.recompute import Evaluate, Part, difference, in_order, input_rows, recompute, touched_by
from headwater.operators.table import record_schema
from headwater.read.relation import Relation
from headwater.state.arrangement import Arrangement
from headwater.state.consolidate import consolidate
from headwater.state.open_run import open_run
from headwater.state.run import Run
from headwater.state.shape import shaped
from headwater.tick.output import Shown, view_change
from headwater.tick.relations import arranged, changed, columns_of
from headwater.tick.spooling import ORDER, Places, Report, Spooling, never
from headwater.views.plan import Aggregate, Constant, Fragment, Join, Keyed, Recompute

Portable = TypeVar("Portable", Relation, Fragment, Join, Aggregate, Recompute, Keyed)

Operator = Join | Aggregate | Recompute | Relation | Keyed


@dataclass(frozen=True)
class Input:
    """A change in runs, and the runs of its arrangement before the tick.

    The change was spooled, rows or what they add to accumulators (`is_partial`); or it is `arranged`: its runs are
    part of the state already, from which columns are taken.
    """

    schema: pa.Schema
    change: tuple[Run, ...]
    held: tuple[Run, ...] = ()
    arranged: Taken | None = None
    is_partial: bool = False

    def rows(self, places: Places, low: int, high: int) -> pa.Table:
        """The rows of the change in a range of hashes; in as many parts as were spooled."""
        tables = self.parts(places, low, high)
        return pa.concat_tables(tables) if tables else self.schema.empty_table()

    def parts(self, places: Places, low: int, high: int) -> list[pa.Table]:
        """The same part by part."""
        if self.arranged is not None:
            return list(self._of(places, self.change).scan(low, high))
        opened = [open_run(places.scratch, run, self.schema) for run in self.change]
        found = [each.slice(each.below(low), each.upto(high)) for each in opened]
        return [table for table in found if table.num_rows]

    def old(self, places: Places) -> Arrangement:
        """The rows before."""
        return self._of(places, self.held)

    def _of(self, places: Places, runs: tuple[Run, ...]) -> Arrangement:
        if self.arranged is None:
            return Arrangement(places.state, self.schema, runs)
        return Arrangement(places.state, self.arranged.of, runs).select(self.arranged.columns, self.schema)


@dataclass(frozen=True)
class Taken:
    """Some columns of an arrangement."""

    of: pa.Schema
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Operating:
    """One stateful operator over ranges of hashes. What `evaluate` does for a recompute is done in this process.

    If the operator's own rows are those of a view, `shown` says how the view has them; if they only go on to the
    next operator, `then` says how, so that they need not be written before.
    """

    places: Places
    inputs: tuple[Input, ...]
    node: Operator
    filling: bool = False
    evaluate: Evaluate | None = None
    shown: Shown | None = None
    then: Spooling | None = None

    def range(self, low: int, high: int) -> Report:
        """Operate on a range of hashes."""
        kinds = {
            Join: self._join,
            Aggregate: self._aggregate,
            Recompute: self._recompute,
            Relation: self._relation,
            Keyed: self._keyed,
        }
        operate = kinds[type(self.node)]
        return self._kept(low, high, *operate(low, high))

    def _kept(
        self, low: int, high: int, states: list[pa.Table], result: pa.Table | list[Pairs] | None, read_rows: int
    ) -> Report:
        """Write what an operator made: what it keeps, and what the next one takes."""
        file = self.places.state_file()
        runs = [
            file.add(state, low=low, high=high).as_dict() if state.num_rows and given.arranged is None else None
            for state, given in zip(states, self.inputs, strict=True)
        ]
        rows = self.shown.rows(result) if self.shown is not None and isinstance(result, pa.Table) else None
        shown = file.add(rows, low=low, high=high).as_dict() if rows is not None and rows.num_rows else None
        file.finish()
        made, then = None, None
        if self.then is not None and result is not None:
            then = self.then.at_once([_plain(result)] if isinstance(result, pa.Table) else result, low, high)
        elif self.shown is None and result is not None:
            table = result if isinstance(result, pa.Table) else pa.concat_tables([each.table() for each in result])
            made = self.places.spool(_unhashed(table)).as_dict() if table.num_rows else None
        return {"state": runs, "result": made, "shown": shown, "then": then, "read": read_rows}

    def _change(self, number: int, low: int, high: int) -> pa.Table:
        return self.inputs[number].rows(self.places, low, high)

    def _held(self, number: int) -> Arrangement:
        return self.inputs[number].old(self.places)

    def _join(self, low: int, high: int) -> tuple[list[pa.Table], list[Pairs], int]:
        node = self.node
        assert isinstance(node, Join)
        changes = [self._change(number, low, high) for number in (0, 1)]
        left, right = (
            Side(without_nulls(change, keyed.key), self._held(number), keyed.key)
            for number, (change, keyed) in enumerate(zip(changes, node.keyed.values(), strict=True))
        )
        result, read_rows = join(left, right, node.schema)
        return changes, result, read_rows

    def _keyed(self, low: int, high: int) -> tuple[list[pa.Table], pa.Table | None, int]:
        return [consolidate(self._change(0, low, high))], None, 0

    def _aggregate(self, low: int, high: int) -> tuple[list[pa.Table], pa.Table | None, int]:
        node = self.node
        assert isinstance(node, Aggregate)
        given = self.inputs[0]
        held = Arrangement(self.places.state, state_schema(node), given.held)
        parts = given.parts(self.places, low, high)
        if given.is_partial and parts:
            state, result, read_rows = accumulate_partials(node, parts, held)
        else:
            rows = pa.concat_tables(parts) if parts else hashed_schema(node.child.schema).empty_table()
            state, result, read_rows = accumulate(node, rows, held)
        return [state], result, read_rows

    def _recompute(self, low: int, high: int) -> tuple[list[pa.Table], pa.Table | None, int]:
        node = self.node
        assert isinstance(node, Recompute)
        parts, old = self._parts(low, high), self._held(len(node.inputs))
        evaluate = self.evaluate or never
        result, read_rows = recompute(node, parts, old, evaluate, filling=self.filling)
        return self._recomputed(parts, result), result, read_rows

    def _parts(self, low: int, high: int) -> list[Part]:
        node = self.node
        assert isinstance(node, Recompute)
        changes = [self._change(number, low, high) for number in range(len(node.inputs))]
        if not (node.forgets and node.first is not None):  # then rows only come
            changes = [consolidate(change) for change in changes]
        return [Part(change, self._held(number)) for number, change in enumerate(changes)]

    def _recomputed(self, parts: Sequence[Part], result: pa.Table) -> list[pa.Table]:
        """What a recompute keeps."""
        assert isinstance(self.node, Recompute)
        return [*(part.change.slice(0, 0) if self.node.forgets else part.change for part in parts), result]

    def given(self, bounds: tuple[int, int], place: int) -> pa.Table:
        """The rows of an input of a recompute that Spark is to evaluate."""
        node, parts = self.node, self._parts(*bounds)
        assert isinstance(node, Recompute)
        touched = touched_by(node, parts, filling=self.filling)
        emitted = self._held(len(parts))
        shown = emitted.probe(touched) if node.selects else emitted.schema.empty_table()
        return in_order(input_rows(node, parts[place], touched, shown)[0])

    def evaluated(self, bounds: tuple[int, int], made: pa.Table) -> Report:
        """Take what Spark made of them."""
        node, parts = self.node, self._parts(*bounds)
        assert isinstance(node, Recompute)
        touched = touched_by(node, parts, filling=self.filling)
        emitted = self._held(len(parts)).probe(touched)
        wanted = pa.schema([field for field in emitted.schema if field.name != WEIGHT])
        result = difference(emitted, shaped(made, wanted))
        read_rows = emitted.num_rows + sum(part.old.matches(touched) for part in parts)
        return self._kept(*bounds, self._recomputed(parts, result), result, read_rows)

    def _relation(self, low: int, high: int) -> tuple[list[pa.Table], pa.Table | None, int]:
        relation = self.node
        assert isinstance(relation, Relation)
        held = Arrangement(self.places.state, arranged(relation), self.inputs[0].held)
        if relation.kind != "table":
            return [view_change(relation, self._change(0, low, high).drop_columns([HASH]), held)], None, 0
        return [changed(relation, self._records(low, high), held)], None, 0

    def _records(self, low: int, high: int) -> pa.Table:
        """The spooled records of a range, in the order of the log."""
        assert isinstance(self.node, Relation)
        table = self._change(0, low, high)
        ordered = table.take(pa.array(np.argsort(table.column(ORDER).to_numpy(), kind="stable")))
        return ordered.drop_columns([ORDER])


def records_schema(relation: Relation) -> pa.Schema:
    """The columns of spooled records of a table."""
    return record_schema(columns_of(relation)).append(pa.field(ORDER, pa.int64()))


def _plain(table: pa.Table) -> pa.Table:
    return table.drop_columns([HASH]) if HASH in table.column_names else table


def _unhashed(table: pa.Table) -> pa.Table:
    """A result on its way to the next operator, which will hash it anew."""
    zeros, field = pa.array(np.zeros(table.num_rows, np.int64)), pa.field(HASH, pa.int64())
    if HASH in table.column_names:
        return table.set_column(table.schema.get_field_index(HASH), field, zeros)
    return table.add_column(table.schema.get_field_index(WEIGHT), field, zeros)


def portable(thing: Portable) -> Portable:
    """A relation or operator without what belongs to this process: handles, expressions, and what lies below."""
    changes: dict[str, Any]
    if isinstance(thing, Relation):
        changes = {"topic": None}
    elif isinstance(thing, Keyed):
        changes = {"node": Constant(thing.node.output)}
    elif isinstance(thing, Join):
        changes = {"left": Constant(thing.left.output), "right": Constant(thing.right.output)}
    elif isinstance(thing, Recompute):
        changes = {"inputs": tuple(Constant(each.output) for each in thing.inputs)}
    else:
        changes = {"child": Constant(thing.child.output)}
    if isinstance(thing, Fragment | Recompute):
        changes["computing"] = None
    return replace(thing, **changes)
