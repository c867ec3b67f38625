"""What a worker does in the large path. Everything here is sent to workers and comes back as plain data.

A change goes through two kinds of stages. *Spooling* loads pieces, hashes them by a key, and writes each worker's
share as one run sorted by hash. *Operating* takes a range of hashes from all of those runs and does with it what
the small path does with everything; its additions to the state go into a file of its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.files import Files
from headwater.log.extent import Extent, read
from headwater.operators.accumulate import accumulate, state_schema
from headwater.operators.join import Side, join
from headwater.operators.keys import with_hash, without_nulls
from headwater.operators.recompute import Evaluate, Part, recompute
from headwater.operators.table import record_schema
from headwater.read.relation import Relation
from headwater.state.arrangement import Arrangement
from headwater.state.consolidate import consolidate
from headwater.state.open_run import open_run
from headwater.state.run import Run
from headwater.state.run_file import RunFile
from headwater.state.shape import shaped
from headwater.tick.output import view_change
from headwater.tick.pieces import Piece
from headwater.tick.relations import arranged, changed, columns_of, table_records
from headwater.tick.small import ROW, WEIGHT_FIELD, applied
from headwater.views.plan import Aggregate, Constant, Fragment, Join, Keyed, Recompute

Portable = TypeVar("Portable", Relation, Fragment, Join, Aggregate, Keyed)

Operator = Join | Aggregate | Recompute | Relation | Keyed

Report = dict[str, Any]
_PIECE = 32
ORDER = "_order"


@dataclass(frozen=True)
class Places:
    """Where workers write: state that is to stay, and what only the next stage reads."""

    state: str
    scratch: str
    name: str

    def state_file(self) -> RunFile:
        """A new file for runs of the state; its name tells the tick and the attempt."""
        return RunFile(Files(), self.state, f"{self.name}-{uuid.uuid4().hex[:8]}.runs")

    def keep(self, table: pa.Table) -> Run:
        """Write a table, not empty, as a run of the state."""
        file = self.state_file()
        run = file.add(table)
        file.finish()
        return run

    def spool(self, table: pa.Table) -> Run:
        """Write a table, not empty, for the next stage."""
        file = RunFile(Files(), self.scratch, f"{uuid.uuid4().hex}.spool")
        run = file.add(table)
        file.close()
        return run


# -- spooling


@dataclass(frozen=True)
class Spooling:
    """How pieces become runs by a key: a fragment (if any) is applied; null keys are dropped, or match none.

    Joins and aggregates take rows in any number of parts; what is to be a relation's own rows is consolidated. What
    is `lasting` becomes part of the state as it is.
    """

    places: Places
    pieces: tuple[Piece, ...]
    fragment: Fragment | None
    key: tuple[str, ...]
    drop_nulls: bool
    matches: bool
    consolidated: bool
    lasting: bool = False

    def share(self, numbers: Iterable[int]) -> Report:
        """Spool some pieces that need no expressions evaluated."""
        return self.finished([self._prepared(number) for number in numbers])

    def _prepared(self, number: int) -> pa.Table:
        table = self.pieces[number].load()
        if self.fragment is None:
            return table
        return applied(self.fragment, table, _never)

    def inputs(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """What the expressions of a fragment need of some pieces, with the place of each row."""
        assert self.fragment is not None
        for number in numbers:
            table = without_nulls(self.pieces[number].load(), self.fragment.present)
            places = pa.array((number << _PIECE) + np.arange(table.num_rows, dtype=np.int64))
            wanted = table.select(list(self.fragment.inputs)).append_column(ROW, places)
            yield from wanted.combine_chunks().to_batches(max_chunksize=65_536)

    def results(self, batches: Iterable[pa.RecordBatch]) -> Report:
        """Spool what expressions gave, with the other columns taken from where the rows came from."""
        assert self.fragment is not None
        held: dict[int, pa.Table] = {}
        made = []
        for batch in batches:
            places = batch.column(ROW).to_numpy()
            for number in np.unique(places >> _PIECE).tolist():
                if number not in held:
                    held = {number: without_nulls(self.pieces[number].load(), self.fragment.present)}
                made.append(self._joined(batch, places, number, held[number]))
        return self.finished(made)

    def _joined(self, batch: pa.RecordBatch, places: Any, number: int, table: pa.Table) -> pa.Table:
        assert self.fragment is not None
        mine = np.flatnonzero(places >> _PIECE == number)
        rows = pa.array(places[mine] & ((1 << _PIECE) - 1))
        computed = batch if len(mine) == batch.num_rows else batch.take(pa.array(mine))
        columns = {name: computed.column(name) for name in computed.schema.names}
        columns |= {new: table.column(old).take(rows) for new, old in self.fragment.passed}
        columns[WEIGHT] = table.column(WEIGHT).take(rows)
        schema = self.fragment.schema.append(WEIGHT_FIELD)
        return shaped(pa.table([columns[name] for name in schema.names], names=schema.names), schema)

    def finished(self, tables: list[pa.Table]) -> Report:
        """Hash, consolidate, sort and write."""
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return {"run": None}
        table = pa.concat_tables(tables)
        if self.drop_nulls:
            table = without_nulls(table, self.key)
        hashed = with_hash(table, self.key, matches=self.matches)
        settled = consolidate(hashed) if self.consolidated else hashed
        if not settled.num_rows:
            return {"run": None}
        return {"run": (self.places.keep(settled) if self.lasting else self.places.spool(settled)).as_dict()}


def _never(computing: object, table: pa.Table) -> pa.Table:
    raise AssertionError(computing)


@dataclass(frozen=True)
class RecordSpooling:
    """How records of a table become runs by its key, each with its place in the log."""

    places: Places
    relation: Relation
    extents: tuple[Extent, ...]

    def share(self, numbers: Iterable[int]) -> Report:
        """Spool some extents."""
        several = [records for number in numbers for records in read(self.extents[number])]
        if not several:
            return {"run": None}
        table = table_records(self.relation, iter(several))
        offsets = np.concatenate([np.arange(r.offset, r.end, dtype=np.int64) for r in several])
        return {"run": self.places.spool(table.append_column(ORDER, pa.array(offsets))).as_dict()}


# -- operating


@dataclass(frozen=True)
class Input:
    """A change in runs, and the runs of its arrangement before the tick.

    The change was spooled; or it is `arranged`: its runs are part of the state already, from which columns are
    taken.
    """

    schema: pa.Schema
    change: tuple[Run, ...]
    held: tuple[Run, ...] = ()
    arranged: Taken | None = None

    def rows(self, places: Places, low: int, high: int) -> pa.Table:
        """The rows of the change in a range of hashes; in as many parts as were spooled."""
        if self.arranged is not None:
            tables = list(self._of(places, self.change).scan(low, high))
        else:
            opened = [open_run(places.scratch, run, self.schema) for run in self.change]
            tables = [each.slice(each.below(low), each.upto(high)) for each in opened]
        return pa.concat_tables(tables) if tables else self.schema.empty_table()

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
    """One stateful operator over ranges of hashes. What `evaluate` does for a recompute is done in this process."""

    places: Places
    inputs: tuple[Input, ...]
    node: Operator
    filling: bool = False
    evaluate: Evaluate | None = None

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
        states, result, read_rows = operate(low, high)
        file = self.places.state_file()
        runs = [
            file.add(state, low=low, high=high).as_dict() if state.num_rows and given.arranged is None else None
            for state, given in zip(states, self.inputs, strict=True)
        ]
        file.finish()
        made = None
        if result is not None and result.num_rows:
            made = self.places.spool(_unhashed(result)).as_dict()
        return {"state": runs, "result": made, "read": read_rows}

    def _change(self, number: int, low: int, high: int) -> pa.Table:
        return self.inputs[number].rows(self.places, low, high)

    def _held(self, number: int) -> Arrangement:
        return self.inputs[number].old(self.places)

    def _join(self, low: int, high: int) -> tuple[list[pa.Table], pa.Table | None, int]:
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
        held = Arrangement(self.places.state, state_schema(node), self.inputs[0].held)
        state, result, read_rows = accumulate(node, self._change(0, low, high), held)
        return [state], result, read_rows

    def _recompute(self, low: int, high: int) -> tuple[list[pa.Table], pa.Table | None, int]:
        node = self.node
        assert isinstance(node, Recompute)
        assert self.evaluate is not None
        parts = [
            Part(consolidate(self._change(number, low, high)), self._held(number))
            for number in range(len(node.inputs))
        ]
        old = self._held(len(parts))
        result, read_rows = recompute(node, parts, old, self.evaluate, filling=self.filling)
        kept = [part.change.slice(0, 0) if node.forgets else part.change for part in parts]
        return [*kept, result], result.drop_columns([HASH]), read_rows

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


def _unhashed(table: pa.Table) -> pa.Table:
    """A result on its way to the next operator, which will hash it anew."""
    zeros = pa.array(np.zeros(table.num_rows, np.int64))
    place = table.schema.get_field_index(WEIGHT)
    return table.add_column(place, pa.field(HASH, pa.int64()), zeros)


def portable(thing: Portable) -> Portable:
    """A relation or operator without what belongs to this process: handles, expressions, and what lies below."""
    changes: dict[str, Any]
    if isinstance(thing, Relation):
        changes = {"topic": None}
    elif isinstance(thing, Keyed):
        changes = {"node": Constant(thing.node.output)}
    elif isinstance(thing, Join):
        changes = {"left": Constant(thing.left.output), "right": Constant(thing.right.output)}
    else:
        changes = {"child": Constant(thing.child.output)}
    if isinstance(thing, Fragment):
        changes["computing"] = None
    return replace(thing, **changes)


def shares(count: int, tasks: int) -> list[list[int]]:
    """So many numbers dealt out to at most so many tasks."""
    tasks = max(1, min(count, tasks))
    return [list(range(start, count, tasks)) for start in range(tasks)]


def run_of(report: Report, name: str) -> Run | None:
    """The run that a worker reported."""
    return Run.from_dict(report[name]) if report[name] is not None else None


def spooled(reports: Sequence[Report]) -> tuple[Run, ...]:
    """The runs that spooling made."""
    return tuple(run for report in reports if (run := run_of(report, "run")) is not None)
