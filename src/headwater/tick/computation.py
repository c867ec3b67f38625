"""The computation of one tick: the changes of tables, then of views, each asked for by those that read it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol

import pyarrow as pa

from headwater.log import Cut, EmbeddedLog, Log
from headwater.operators.failing import EvaluationFailed
from headwater.operators.keys import hashed_schema
from headwater.read.relation import Relation
from headwater.state.arrangement import Arrangement
from headwater.state.run import Run
from headwater.store import NEXT
from headwater.tick.aside import Aside
from headwater.tick.inputs import FromLog, FromState, Input, TakenBack, is_complete
from headwater.tick.large import Large, Stages
from headwater.tick.output import last_operator, view_change
from headwater.tick.past import Past
from headwater.tick.relations import arranged, arrangement_of, columns_of, table_change
from headwater.tick.small import Evaluator, Small
from headwater.tick.spooling import Places
from headwater.tick.state import TickState
from headwater.views.plan import Constant, Field, Fragment, Join, Keyed, Source, Union, walk
from headwater.views.sharing import Split

_GROWING = (Source, Constant, Fragment, Union, Join)
"""Operators that give rows, and never take any back if their inputs do not."""


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

    What views share is computed like a view, under its own name. A relation whose inputs changed by more than
    `small_rows` rows is computed by executors.
    """

    def __init__(
        self,
        relations: Mapping[str, Relation],
        shared: Mapping[str, Keyed],
        log: Log,
        state: TickState,
        after: Cut,
        until: Cut,
        *,
        engine: Engine,
        past: Past,
        scratch: str,
        small_rows: int,
    ) -> None:
        self._relations = dict(relations)
        self._shared = shared
        self._log = log
        self._state = state
        self._after = after
        self._until = until
        self._engine = engine
        self._past = past
        self._places = Places(state.folder, scratch, state.name)
        self._small_rows = small_rows
        self._changes: dict[str, Input] = {}
        self._threads = threading.Lock()
        self._numbers = count()
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
            self._large(arrangement_of(relation), {}, filling=False).table(relation, extents)
        return self._kept(relation, change)

    def _kept(self, relation: Relation, change: pa.Table | None) -> Input:
        """Note that a relation was computed; those that read it get its change."""
        return self._noted(arrangement_of(relation), arranged(relation), change)

    def _noted(self, arrangement: str, schema: pa.Schema, change: pa.Table | None = None) -> FromState:
        with self._threads:
            if runs := self._state.change(arrangement):
                self.changed.add(arrangement)
        old = self._state.before
        return FromState(self._state, schema, runs, table=change, old=lambda: old(arrangement, schema).runs)

    # -- views

    def view(self, name: str, split: Split, *, filling: bool, since: Since | None = None) -> None:
        """Compute a view's change and add it to its rows: by what its inputs changed in this tick, or since one."""
        relation = self._relations[name]
        arrangement, schema = arrangement_of(relation), arranged(relation)
        inputs = self._taken(name, split.relations, filling=filling, since=since)
        if filling:
            self.filling[name] = self.taken[name]
            self._state.touch(arrangement, schema)
        elif not self.taken[name]:
            self._done(relation, self._noted(arrangement, schema), None)
            return
        aside = self._aside(relation)
        grows = self._only_grows(relation, split)
        if grows:
            self._state.grows(arrangement)
        if self.taken[name] > self._small_rows:
            large = self._large(arrangement, inputs, filling=filling, aside=aside)
            (large.growing_view if grows else large.view)(relation, split.root)
            self._done(relation, self._kept(relation, None), "large", large.rows_read)
            return
        last = last_operator(split.root, relation)
        small = Small(arrangement, self._state, self._engine, inputs, filling=filling, aside=aside, last=last)
        change = view_change(relation, small.run(split.root), self._state.before(arrangement, schema))
        if change.num_rows:
            self._state.add(arrangement, change)
        self._done(relation, self._kept(relation, change), "small", small.rows_read)

    def _only_grows(self, relation: Relation, split: Split) -> bool:
        """Whether no row of a view ever disappears, whatever happens, nor is looked for by a key."""
        if relation.key or relation.sets_aside:
            return False
        roots = [split.root, *(keyed.node for keyed in split.shared.values())]
        nodes = [node for root in roots for node in walk(root)]
        read = {node.relation for node in nodes if isinstance(node, Source)} - split.shared.keys()
        return all(isinstance(node, _GROWING) for node in nodes) and all(
            self._relations[name].kind in {"stream", "log"} for name in read
        )

    def share(self, name: str, *, filling: bool, since: Since | None = None) -> None:
        """Compute the change of what views share, as `view` does."""
        keyed, change, read = self._shared[name], None, 0
        schema = hashed_schema(keyed.node.schema)
        inputs = self._taken(name, keyed.relations, filling=filling, since=since)
        if filling:
            self._state.touch(name, schema)
        if self.taken[name] > self._small_rows:
            large = self._large(name, inputs, filling=filling)
            large.shared(keyed)
            read = large.rows_read
        elif filling or self.taken[name]:
            small = Small(name, self._state, self._engine, inputs, filling=filling)
            change, read = small.by_key(keyed), small.rows_read
            if change.num_rows:
                self._state.add(name, change)
        made = self._noted(name, schema, change)
        with self._threads:
            self._changes[name] = made
            self.rows_read += read

    def _taken(
        self, name: str, relations: Sequence[str], *, filling: bool, since: Since | None
    ) -> dict[str, Input]:
        """What is to be taken in of some relations."""
        self.taken[name] = 0
        inputs = {each: self._input(each, filling=filling, since=since) for each in relations}
        self.taken[name] = sum(each.rows for each in inputs.values())
        return inputs

    def _large(self, name: str, inputs: Mapping[str, Input], *, filling: bool, aside: Aside | None = None) -> Large:
        return Large(
            name,
            self._state,
            self._engine.stages,
            self._engine,
            self._places,
            inputs,
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
        """Leave a view, or what is shared, and all that it keeps, as the last tick left them."""
        self._state.discard(name if name in self._shared else arrangement_of(self._relations[name]))

    def moved(self, names: Collection[str]) -> bool:
        """Whether one of these relations changes in this tick."""
        return any(self._input(name, filling=False).rows for name in names)

    def _input(self, name: str, *, filling: bool, since: Since | None = None) -> Input:
        """What a view has to take in of a relation, or of what is shared."""
        if name in self._shared:
            return self._from_state(name, name, hashed_schema(self._shared[name].node.schema), filling, since)
        with self._threads:
            relation = self._relations[name]
        if relation.kind in {"stream", "log"}:
            return self._from_log(relation, filling, since)
        return self._from_state(name, arrangement_of(relation), arranged(relation), filling, since)

    def _from_log(self, relation: Relation, filling: bool, since: Since | None) -> Input:
        after = Cut() if filling else since.cut if since is not None else self._after
        if since is not None and not is_complete(relation, self._log, after):
            msg = f"what came to {relation.name} after tick {since.tick} is no longer in the log"
            raise EvaluationFailed(msg, hint="drop the view and declare it anew")
        return FromLog(relation, self._log, after, self._until)

    def _from_state(
        self, name: str, arrangement: str, schema: pa.Schema, filling: bool, since: Since | None
    ) -> Input:
        if filling:
            return FromState(self._state, schema, self._state.after(arrangement, schema).runs)
        if since is None:
            with self._threads:
                return self._changes[name]
        with self._threads:
            relation = self._relations.get(name)
        runs: Sequence[Run] = [*self._past.changes(relation or name, since.tick), *self._state.change(arrangement)]
        if relation is not None and relation.since > since.tick:  # what it replaced was arranged otherwise
            given = {"changes": FromState(self._state, schema, runs)}
            aside = f"{arrangement}/caught up {next(self._numbers)}"
            runs = self._sum(relation, given, aside)
            self._state.discard(aside)
        return FromState(self._state, schema, runs, old=lambda: self._past.rows(arrangement, since.tick))

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
        before = self._state.before(arrangement_of(old), arranged(old)).runs
        after = self._state.after(arrangement_of(new), arranged(new)).runs
        parts: dict[str, Input] = {
            "old": TakenBack(FromState(self._state, arranged(old), before)),
            "new": FromState(self._state, arranged(new), after),
        }
        self._sum(new, parts, aside)
        self._state.tell(arrangement_of(new), aside)

    def _sum(self, relation: Relation, parts: Mapping[str, Input], aside: str) -> tuple[Run, ...]:
        """All parts together, as the relation is arranged, however they were; kept aside."""
        if sum(each.rows for each in parts.values()) <= self._small_rows:
            rows = pa.concat_tables([each.table() for each in parts.values()])
            nothing = Arrangement(self._state.folder, arranged(relation), ())
            self._state.add(aside, view_change(relation, rows, nothing))
        else:
            fields = tuple(Field(each.name, each.type) for each in columns_of(relation))
            columns = tuple(relation.columns.names)
            sides = tuple(Source(fields, relation=each, columns=columns) for each in parts)
            large = self._large(aside, parts, filling=False)
            large.view(relation, Union(fields, inputs=sides))
        return self._state.change(aside)
