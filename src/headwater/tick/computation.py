"""The computation of one tick: the changes of tables, then of views, each asked for by those that read it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from headwater.log import Cut, EmbeddedLog, Log
from headwater.read.relation import Relation
from headwater.tick.inputs import FromLog, FromState, Input
from headwater.tick.large import Large, Stages
from headwater.tick.output import view_change
from headwater.tick.relations import arranged, arrangement_of, table_change
from headwater.tick.small import Evaluator, Small
from headwater.tick.state import TickState
from headwater.tick.tasks import Places
from headwater.views.plan import Plan


class Engine(Evaluator, Protocol):
    """Whoever evaluates expressions, here or on executors."""

    @property
    def stages(self) -> Stages:
        """Runs functions on executors."""
        ...


class Computation:
    """What one tick computes. Views may be computed by several threads, each after those it reads.

    A relation whose inputs changed by more than `small_rows` rows is computed by executors.
    """

    def __init__(
        self,
        relations: Mapping[str, Relation],
        log: Log,
        state: TickState,
        after: Cut,
        until: Cut,
        *,
        engine: Engine,
        scratch: str,
        small_rows: int,
    ) -> None:
        self._relations = relations
        self._log = log
        self._state = state
        self._after = after
        self._until = until
        self._engine = engine
        self._places = Places(state.folder, scratch, state.name)
        self._small_rows = small_rows
        self._changes: dict[str, Input] = {}
        self._threads = threading.Lock()
        self.rows_out: dict[str, int] = {}
        self.paths: dict[str, str] = {}
        self.rows_read = 0
        self.changed: list[str] = []

    def tables(self) -> None:
        """Take the new records into the tables."""
        for name, relation in self._relations.items():
            if relation.kind == "table":
                self._changes[name] = self._table(relation)

    def _table(self, relation: Relation) -> Input:
        change = None
        if FromLog(relation, self._log, self._after, self._until).rows <= self._small_rows:
            change = table_change(relation, self._log, self._state, self._after, self._until)
        else:
            assert isinstance(self._log, EmbeddedLog)
            extents = self._log.extents(relation.name, after=self._after, until=self._until)
            self._large(relation, {}, filling=False).table(relation, extents)
        return self._kept(relation, change)

    def _kept(self, relation: Relation, change: pa.Table | None) -> Input:
        """Note that a relation was computed; those that read it get its change."""
        made = FromState(relation, self._state, change)
        with self._threads:
            if made.rows:
                self.changed.append(arrangement_of(relation))
        return made

    def view(self, name: str, plan: Plan, *, filling: bool) -> None:
        """Compute a view's change and add it to its rows."""
        relation = self._relations[name]
        inputs = {each: self._input(each, filling=filling) for each in plan.relations}
        rows = sum(each.rows for each in inputs.values())
        if filling:
            self._state.touch(arrangement_of(relation), arranged(relation))
        elif not rows:
            self._done(relation, FromState(relation, self._state), None)
            return
        if rows <= self._small_rows:
            self._view_here(relation, plan, inputs, filling=filling)
            return
        large = self._large(relation, inputs, filling=filling)
        large.view(relation, plan.root)
        self._done(relation, self._kept(relation, None), "large", large.rows_read)

    def _view_here(self, relation: Relation, plan: Plan, inputs: Mapping[str, Input], *, filling: bool) -> None:
        arrangement = arrangement_of(relation)
        tables = {name: each.table() for name, each in inputs.items()}
        small = Small(arrangement, self._state, self._engine, tables.__getitem__, filling=filling)
        old = self._state.before(arrangement, arranged(relation))
        change = view_change(relation, small.run(plan.root), old)
        if change.num_rows:
            self._state.add(arrangement, change)
        self._done(relation, self._kept(relation, change), "small", small.rows_read)

    def _large(self, relation: Relation, inputs: Mapping[str, Input], *, filling: bool) -> Large:
        return Large(
            arrangement_of(relation),
            self._state,
            self._engine.stages,
            self._engine,
            self._places,
            lambda name: inputs[name].pieces(),
            filling=filling,
            small_rows=self._small_rows,
        )

    def _done(self, relation: Relation, change: Input, path: str | None, rows_read: int = 0) -> None:
        with self._threads:
            self._changes[relation.name] = change
            if path is not None:
                self.rows_out[relation.name] = change.rows
                self.paths[relation.name] = path
                self.rows_read += rows_read

    def _input(self, name: str, *, filling: bool) -> Input:
        """What a view has to take in of a relation."""
        relation = self._relations[name]
        if relation.kind in {"stream", "log"}:
            return FromLog(relation, self._log, Cut() if filling else self._after, self._until)
        if filling:
            return FromState(relation, self._state, whole=True)
        with self._threads:
            return self._changes[name]
