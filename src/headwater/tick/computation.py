"""The computation of one tick: the changes of tables, then of views, each asked for by those that read it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from headwater.log import Cut, EmbeddedLog, Log
from headwater.operators.failing import EvaluationFailed
from headwater.operators.table import negated
from headwater.read.relation import Relation
from headwater.state.arrangement import Arrangement
from headwater.state.run import Run
from headwater.store import NEXT
from headwater.tick.aside import Aside
from headwater.tick.inputs import FromLog, FromState, Input, is_complete
from headwater.tick.large import Large, Stages
from headwater.tick.output import view_change
from headwater.tick.pieces import Negated, Piece
from headwater.tick.relations import arranged, arrangement_of, columns_of, table_change
from headwater.tick.small import Evaluator, Small
from headwater.tick.state import TickState
from headwater.tick.tasks import Places
from headwater.views.plan import Field, Plan, Source, Union


class Engine(Evaluator, Protocol):
    """Whoever evaluates expressions, here or on executors."""

    @property
    def stages(self) -> Stages:
        """Runs functions on executors."""
        ...


@dataclass(frozen=True)
class Since:
    """A tick, and up to where it had read the log."""

    tick: int
    cut: Cut


class Computation:
    """What one tick computes. Views may be computed by several threads, each after those it reads.

    A relation whose inputs changed by more than `small_rows` rows is computed by executors. `history` has the runs
    of what ticks after a given one, and before this one, changed in a relation.
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
        history: Callable[[Relation, int], Sequence[Run]],
        scratch: str,
        small_rows: int,
    ) -> None:
        self._relations = dict(relations)
        self._log = log
        self._state = state
        self._after = after
        self._until = until
        self._engine = engine
        self._history = history
        self._places = Places(state.folder, scratch, state.name)
        self._small_rows = small_rows
        self._changes: dict[str, Input] = {}
        self._threads = threading.Lock()
        self.taken: dict[str, int] = {}
        self.filling: dict[str, int] = {}
        self.rows_out: dict[str, int] = {}
        self.paths: dict[str, str] = {}
        self.rows_read = 0
        self.changed: set[str] = set()

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
            self._large(arrangement_of(relation), lambda _: [], filling=False).table(relation, extents)
        return self._kept(relation, change)

    def _kept(self, relation: Relation, change: pa.Table | None) -> Input:
        """Note that a relation was computed; those that read it get its change."""
        made = self._added(relation, change)
        with self._threads:
            if made.rows:
                self.changed.add(arrangement_of(relation))
        return made

    def _added(self, relation: Relation, change: pa.Table | None = None) -> FromState:
        return FromState(relation, self._state, self._state.change(arrangement_of(relation)), change)

    # -- views

    def view(self, name: str, plan: Plan, *, filling: bool, since: Since | None = None) -> None:
        """Compute a view's change and add it to its rows: by what its inputs changed in this tick, or since one."""
        self.taken[name] = 0
        relation = self._relations[name]
        inputs = {each: self._input(each, filling=filling, since=since) for each in plan.relations}
        rows = self.taken[name] = sum(each.rows for each in inputs.values())
        if filling:
            self.filling[name] = rows
            self._state.touch(arrangement_of(relation), arranged(relation))
        elif not rows:
            self._done(relation, self._added(relation), None)
            return
        if rows <= self._small_rows:
            self._view_here(relation, plan, inputs, filling=filling)
            return
        pieces, aside = (lambda name: inputs[name].pieces()), self._aside(relation)
        large = self._large(arrangement_of(relation), pieces, filling=filling, aside=aside)
        large.view(relation, plan.root)
        self._done(relation, self._kept(relation, None), "large", large.rows_read)

    def _view_here(self, relation: Relation, plan: Plan, inputs: Mapping[str, Input], *, filling: bool) -> None:
        arrangement = arrangement_of(relation)
        tables = {name: each.table() for name, each in inputs.items()}
        aside = self._aside(relation)
        small = Small(arrangement, self._state, self._engine, tables.__getitem__, filling=filling, aside=aside)
        old = self._state.before(arrangement, arranged(relation))
        change = view_change(relation, small.run(plan.root), old)
        if change.num_rows:
            self._state.add(arrangement, change)
        self._done(relation, self._kept(relation, change), "small", small.rows_read)

    def _large(
        self, name: str, pieces: Callable[[str], Sequence[Piece]], *, filling: bool, aside: Aside | None = None
    ) -> Large:
        return Large(
            name,
            self._state,
            self._engine.stages,
            self._engine,
            self._places,
            pieces,
            filling=filling,
            small_rows=self._small_rows,
            aside=aside,
        )

    def _aside(self, relation: Relation) -> Aside | None:
        """Where a view puts rows that cannot be evaluated; None if they are to suspend it."""
        if not relation.sets_aside:
            return None
        letters = relation.letters

        def put(rows: pa.Table) -> None:
            origin = pa.array([f"view {relation.name.removesuffix(NEXT)}"] * rows.num_rows, pa.string())
            change = view_change(letters, rows.add_column(3, "origin", origin), old)
            self._state.add(arrangement_of(letters), change)
            self._kept(letters, None)

        old = self._state.before(arrangement_of(letters), arranged(letters))
        return Aside(old, put)

    def _done(self, relation: Relation, change: Input, path: str | None, rows_read: int = 0) -> None:
        with self._threads:
            self.filling.pop(relation.name, None)
            self._changes[relation.name] = change
            if path is not None:
                self.rows_out[relation.name] = change.rows
                self.paths[relation.name] = path
                self.rows_read += rows_read

    def discard(self, name: str) -> None:
        """Leave a view, and all that it keeps, as the last tick left them."""
        self._state.discard(arrangement_of(self._relations[name]))

    def moved(self, names: Collection[str]) -> bool:
        """Whether one of these relations changes in this tick."""
        return any(self._input(name, filling=False).rows for name in names)

    def _input(self, name: str, *, filling: bool, since: Since | None = None) -> Input:
        """What a view has to take in of a relation."""
        with self._threads:
            relation = self._relations[name]
        if relation.kind in {"stream", "log"}:
            after = Cut() if filling else since.cut if since is not None else self._after
            if since is not None and not is_complete(relation, self._log, after):
                msg = f"what came to {relation.name} after tick {since.tick} is no longer in the log"
                raise EvaluationFailed(msg, hint="drop the view and declare it anew")
            return FromLog(relation, self._log, after, self._until)
        arrangement = arrangement_of(relation)
        if filling:
            return FromState(relation, self._state, self._state.after(arrangement, arranged(relation)).runs)
        if since is not None:
            runs = [*self._history(relation, since.tick), *self._state.change(arrangement)]
            return FromState(relation, self._state, runs)
        with self._threads:
            return self._changes[name]

    # -- replacing

    def switch(self, name: str, candidate: str, tick: int) -> Relation:
        """Let a name mean its candidate from this tick on; those that read it get the difference.

        Where the columns are others, nobody reads it.
        """
        with self._threads:
            old, made = self._relations[name], self._relations[candidate]
        new = replace(made, name=name, since=tick, before=old)
        if old.has_columns_of(new):
            self._difference(old, new)
        if old.sets_aside or new.sets_aside:
            self._difference(old.letters, new.letters)
            self._kept(new.letters, None)
        with self._threads:
            self._relations[name] = new
            path = self.paths.pop(candidate, "small")
            self.rows_out.pop(candidate, None)
        self._done(new, self._kept(new, None), path)
        return new

    def _difference(self, old: Relation, new: Relation) -> None:
        """Tell readers what changes when one relation takes another's place."""
        aside = f"{arrangement_of(new)}/difference"
        parts = {
            "old": FromState(old, self._state, self._state.before(arrangement_of(old), arranged(old)).runs),
            "new": FromState(new, self._state, self._state.after(arrangement_of(new), arranged(new)).runs),
        }
        if sum(each.rows for each in parts.values()) <= self._small_rows:
            both = pa.concat_tables([negated(parts["old"].table()), parts["new"].table()])
            nothing = Arrangement(self._state.folder, arranged(new), ())
            self._state.add(aside, view_change(new, both, nothing))
        else:
            fields = tuple(Field(each.name, each.type) for each in columns_of(new))
            columns = tuple(new.columns.names)
            sides = tuple(Source(fields, relation=each, columns=columns) for each in parts)
            taken = {"old": [Negated(piece) for piece in parts["old"].pieces()], "new": parts["new"].pieces()}
            large = self._large(aside, taken.__getitem__, filling=False)
            large.view(new, Union(fields, inputs=sides))
        self._state.tell(arrangement_of(new), aside)
