"""Exchange: the first kind of stage in the large path, by workers.

A worker loads slices of a change, hashes them by a key, and spools its part as one run sorted by hash. Everything
here is sent to workers and comes back as plain data.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.catalog.relation import Relation
from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.gather import batches_of
from headwater.change.keys import with_hash, without_nulls
from headwater.change.pairs import Pairs
from headwater.change.shape import shaped
from headwater.evaluation import ROW
from headwater.evaluation.errors import EvaluationFailed
from headwater.expressions.evaluate import Unsure
from headwater.log import LogSlice
from headwater.memory import all_fitting
from headwater.plan.physical import Applies, EvaluateRows, Partial
from headwater.state.files import StateFiles
from headwater.state.run import HIGHEST, LOWEST, Run
from headwater.state.run_file import RunFile
from headwater.tick.relations import table_records
from headwater.tick.slices import Slice

Report = dict[str, Any]
LEFT: Report = {"run": None, "left": True}
"""What Spark is to evaluate."""
PASSED = "what passes of the pairs of a join"
_SLICE = 32
ORDER = "_order"


@dataclass(frozen=True)
class StageFolders:
    """Where workers write: state that is to stay, and what only the next stage reads."""

    state: StateFiles
    scratch: StateFiles
    name: str

    def state_file(self) -> RunFile:
        """A new file for runs of the state; its name tells the tick and the attempt."""
        return RunFile(self.state, f"{self.name}-{uuid.uuid4().hex[:8]}.runs")

    def write_state(self, table: pa.Table, low: int = LOWEST, high: int = HIGHEST) -> Run:
        """Write a table, not empty, as a run of the state that speaks for a range of hashes."""
        file = self.state_file()
        run = file.add(table, low=low, high=high)
        file.finish()
        return run

    def spool(self, table: pa.Table) -> Run:
        """Write a table, not empty, for the next stage."""
        file = RunFile(self.scratch, f"{self.name}-{uuid.uuid4().hex}.spool", packs=False)
        run = file.add(table)
        file.close()
        return run


@dataclass(frozen=True)
class ExchangeStage:
    """How slices become runs by a key: a fragment (if any) is applied; null keys are dropped, or match none.

    Operators take rows in any number of parts; what is to be a relation's own rows is consolidated. What is
    `lasting` becomes part of the state as it is. What only `grows` does too, with these columns: since no row of it
    will ever be looked for, the rows need not be hashed and sorted, and each of the `tasks` fills a range of its
    own. If there is something `partial`, each task spools that of its part. Expressions that need Spark have their
    values by `evaluate`, in the process that has it.
    """

    folders: StageFolders
    key: tuple[str, ...]
    drop_nulls: bool = False
    matches: bool = False
    consolidated: bool = False
    lasting: bool = False
    grows: pa.Schema | None = None
    tasks: int = 1
    partial: Partial | None = None
    slices: tuple[Slice, ...] = ()
    fragment: Applies | None = None
    evaluate: EvaluateRows | None = None

    @property
    def is_direct(self) -> bool:
        """Whether no expression needs Spark, unless rows turn up for which one does."""
        return self.fragment is None or not self.fragment.computes or self.fragment.direct is not None

    def portable(self) -> ExchangeStage:
        """The same without what belongs to this process."""
        return self if self.fragment is None else replace(self, fragment=self.fragment.portable())

    def task(self, numbers: Sequence[int]) -> Report:
        """Spool some slices whose expressions, if there are any, need no Spark; `LEFT` if they do."""
        try:
            return self.finished([self._prepared(self.slices[number].load()) for number in numbers], numbers[0])
        except Unsure:
            return LEFT

    def _prepared(self, rows: pa.Table | Pairs) -> pa.Table:
        if self.fragment is not None:
            groups = self.partial.groups if self.partial is not None else None
            fragment, fewer = self.fragment.in_panes(rows, groups)
            return fragment.apply(fewer, self.evaluate or _left)
        return rows.table() if isinstance(rows, Pairs) else rows

    def at_once(self, parts: Iterable[pa.Table | Pairs], low: int, high: int) -> Report:
        """Spool what an operator makes of a range of hashes; `LEFT` if it cannot be done there."""
        try:
            return self._spooled(all_fitting(map(self._prepared, parts), PASSED), low, high)
        except (Unsure, EvaluationFailed):
            if self.evaluate is not None:
                raise
            return LEFT

    def inputs(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """What the expressions of a fragment need of some slices, with the place of each row."""
        assert self.fragment is not None
        for number in numbers:
            table = without_nulls(self.slices[number].load(), self.fragment.present)
            places = pa.array((number << _SLICE) + np.arange(table.num_rows, dtype=np.int64))
            wanted = table.select(list(self.fragment.inputs)).append_column(ROW, places)
            yield from batches_of(wanted, 65_536)

    def results(self, batches: Iterable[pa.RecordBatch]) -> Report:
        """Spool what expressions gave, with the other columns taken from where the rows came from."""
        assert self.fragment is not None
        held: dict[int, pa.Table] = {}
        made = []
        number = 0
        for batch in batches:
            places = batch.column(ROW).to_numpy()
            for number in np.unique(places >> _SLICE).tolist():
                if number not in held:
                    held = {number: without_nulls(self.slices[number].load(), self.fragment.present)}
                made.append(self._joined(batch, places, number, held[number]))
        return self.finished(made, number)

    def _joined(self, batch: pa.RecordBatch, places: Any, number: int, table: pa.Table) -> pa.Table:
        assert self.fragment is not None
        mine = np.flatnonzero(places >> _SLICE == number)
        rows = pa.array(places[mine] & ((1 << _SLICE) - 1))
        computed = batch if len(mine) == batch.num_rows else batch.take(pa.array(mine))
        columns = {name: computed.column(name) for name in computed.schema.names}
        columns |= {new: table.column(old).take(rows) for new, old in self.fragment.passed}
        columns[WEIGHT] = table.column(WEIGHT).take(rows)
        schema = self.fragment.schema.append(pa.field(WEIGHT, pa.int64()))
        return shaped(pa.table([columns[name] for name in schema.names], names=schema.names), schema)

    def finished(self, tables: list[pa.Table], number: int = 0) -> Report:
        """Hash, consolidate, sort and write what became of slices, of which one has this number."""
        return self._spooled(tables, *hash_range(number % self.tasks, self.tasks))

    def _spooled(self, tables: list[pa.Table], low: int, high: int) -> Report:
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return {"run": None}
        table = pa.concat_tables(tables)
        if self.grows is not None:
            return {"run": self._grown(table, self.grows, low, high).as_dict()}
        if self.drop_nulls:
            table = without_nulls(table, self.key)
        hashed = with_hash(table, self.key, matches=self.matches)
        settled = consolidate(hashed) if self.consolidated else hashed
        if self.partial is not None:
            settled = self.partial.of(hashed)
        if not settled.num_rows:
            return {"run": None}
        return {
            "run": (self.folders.write_state(settled) if self.lasting else self.folders.spool(settled)).as_dict()
        }

    def _grown(self, table: pa.Table, schema: pa.Schema, low: int, high: int) -> Run:
        """Keep rows as they come, with numbers for hashes, evenly over a task's range."""
        step = (high - low) // table.num_rows
        numbers = np.arange(table.num_rows, dtype=np.uint64) * np.uint64(step)
        hashes = numbers + np.uint64((low + secrets.randbelow(step)) % (1 << 64))
        place = table.schema.get_field_index(WEIGHT)
        hashed = table.add_column(place, pa.field(HASH, pa.int64()), pa.array(hashes.view(np.int64)))
        return self.folders.write_state(shaped(hashed, schema), low, high)


def hash_range(number: int, count: int) -> tuple[int, int]:
    """One of so many ranges of hashes that are equally wide."""
    step = (1 << 64) // count
    return LOWEST + number * step, HIGHEST if number == count - 1 else LOWEST + (number + 1) * step - 1


def _left(*given: object) -> pa.Table:
    raise Unsure(given)


@dataclass(frozen=True)
class RecordExchange:
    """How records of a table become runs by its key, each with its place in the log."""

    folders: StageFolders
    relation: Relation
    slices: tuple[LogSlice, ...]

    def task(self, numbers: Iterable[int]) -> Report:
        """Spool some slices of the log."""
        several = [records for number in numbers for records in self.slices[number].read()]
        if not several:
            return {"run": None}
        table = table_records(self.relation, iter(several))
        offsets = np.concatenate([np.arange(r.offset, r.end, dtype=np.int64) for r in several])
        return {"run": self.folders.spool(table.append_column(ORDER, pa.array(offsets))).as_dict()}


def dealt_out(count: int, tasks: int) -> list[list[int]]:
    """So many numbers dealt out to at most so many tasks."""
    tasks = max(1, min(count, tasks))
    return [list(range(start, count, tasks)) for start in range(tasks)]


def run_of(report: Report, name: str) -> Run | None:
    """The run that a worker reported."""
    return Run.from_dict(report[name]) if report[name] is not None else None


def spooled(reports: Sequence[Report]) -> tuple[Run, ...]:
    """The runs that an exchange made."""
    return tuple(run for report in reports if (run := run_of(report, "run")) is not None)
