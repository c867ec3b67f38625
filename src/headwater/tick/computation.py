"""The computation of one tick: the changes of tables, then of views, each asked for by those that read it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa

from headwater.attempt import go_on
from headwater.catalog.catalog import Catalog
from headwater.catalog.names import base_of, caught_up, difference_of, is_shared
from headwater.catalog.relation import Relation
from headwater.change.keys import hashed_schema
from headwater.errors import HeadwaterError
from headwater.evaluation.errors import EvaluationFailed
from headwater.log import Cut, Log
from headwater.operators.stateless import Union
from headwater.plan.engine import Engine
from headwater.plan.operators import Field, Keyed, Source
from headwater.plan.sharing import Split
from headwater.state.arrangement import Arrangement
from headwater.state.files import StateFiles
from headwater.state.run import Run
from headwater.tick.dead_letters import DeadLetters
from headwater.tick.exchange import StageFolders
from headwater.tick.faults import is_the_pipelines, told
from headwater.tick.history import History
from headwater.tick.inputs import FromLog, FromState, Input, TakenBack, beginnings, is_complete
from headwater.tick.large import Large
from headwater.tick.outcome import LARGE, SMALL, Work
from headwater.tick.output import last_operator, view_change
from headwater.tick.relations import arranged, arrangement_of, columns_of, table_change
from headwater.tick.small import Small
from headwater.tick.state import TickState

SMALL_BYTES = 1 << 30
"""What takes more is computed by executors, however few rows it has; a cut has no more by itself."""


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
        catalog: Catalog,
        log: Log,
        state: TickState,
        after: Cut,
        until: Cut,
        *,
        engine: Engine,
        history: History,
        scratch: StateFiles,
        small_rows: int,
    ) -> None:
        self._recorded = catalog.recorded
        self._relations = dict(catalog.relations)
        self._shared: dict[str, Keyed] = {}
        self._log = log
        self._state = state
        self._after = after
        self._until = until
        self._engine = engine
        self._history = history
        self._folders = StageFolders(state.files, scratch, state.name)
        self._small_rows = small_rows
        self._changes: dict[str, Input] = {}
        self._threads = threading.Lock()
        self._numbers = count()
        self.taken: dict[str, int] = {}
        self.filling: dict[str, int] = {}

    @property
    def name(self) -> str:
        """A name that no other tick has."""
        return self._state.name

    def tables(self) -> None:
        """Take the new records into the tables."""
        for name, relation in self._recorded.items():
            if relation.kind == "table" and self._came(relation):
                self._changes[name] = self._table(relation)

    def moving(self) -> set[str]:
        """The topics, and logs of topics, that change in this tick; tables have taken in what is new."""
        tables = {name for name, change in self._changes.items() if change.rows}
        rest = {
            name for name, each in self._recorded.items() if each.kind in {"stream", "log"} and self._came(each)
        }
        return tables | rest

    def share(self, splits: Iterable[Split]) -> None:
        """Know what the views share that are to be computed."""
        for split in splits:
            self._shared |= split.shared

    def _came(self, relation: Relation) -> bool:
        """Whether a topic has new records."""
        return FromLog(relation, self._log, self._after, self._until).rows > 0

    def _table(self, relation: Relation) -> Input:
        try:
            return self._taken_in(relation)
        except Exception as error:
            if is_the_pipelines(error):
                raise
            why = told(error)
            raise HeadwaterError(why["what"], where=f"table {relation.name}", hint=why["hint"]) from error

    def _taken_in(self, relation: Relation) -> Input:
        change = None
        if FromLog(relation, self._log, self._after, self._until).rows <= self._small_rows:
            change = table_change(relation, self._log, self._state, self._after, self._until)
        else:
            after, until = self._after, self._until
            recorded = self._log.slices(relation.name, after=after, until=until, columns=relation.records)
            self._large(arrangement_of(relation), {}, filling=False).table(relation, recorded)
        return self._change_of(relation, change)

    def _change_of(self, relation: Relation, change: pa.Table | None) -> Input:
        """Note that a relation was computed; those that read it get its change."""
        return self._noted(arrangement_of(relation), arranged(relation), change)

    def _noted(self, arrangement: str, schema: pa.Schema, change: pa.Table | None = None) -> FromState:
        runs, old = self._state.change(arrangement), self._state.before
        return FromState(self._state, schema, runs, table=change, old=lambda: old(arrangement, schema).runs)

    # -- views

    def view(self, name: str, split: Split, *, filling: bool, since: Since | None = None) -> Work | None:
        """Compute a view's change and add it to its rows: by what its inputs changed in this tick, or since one.

        None if those changed nothing.
        """
        relation = self._relations[name]
        arrangement, schema = arrangement_of(relation), arranged(relation)
        inputs = self._taken(name, split.relations, filling=filling, since=since)
        if filling:
            self.filling[name] = self.taken[name]
            self._state.touch(arrangement, schema)
            self._state.begin(arrangement, self._begins(split.relations))
        elif not self.taken[name]:
            return None
        dead_letters = self._dead_letters(relation)
        grows = self._only_grows(relation, split)
        if grows:
            self._state.grows(arrangement)
        if self._is_large(name, inputs, anew=filling or since is not None):
            large = self._large(arrangement, inputs, filling=filling, dead_letters=dead_letters)
            (large.growing_view if grows else large.view)(relation, split.root)
            return self._done(relation, self._change_of(relation, None), LARGE, large.rows_read)
        last = last_operator(split.root, relation)
        small = Small(
            arrangement, self._state, self._engine, inputs, filling=filling, dead_letters=dead_letters, last=last
        )
        change = view_change(relation, small.run(split.physical), self._state.before(arrangement, schema))
        if change.num_rows:
            self._state.add(arrangement, change)
        return self._done(relation, self._change_of(relation, change), SMALL, small.rows_read)

    def _begins(self, names: Sequence[str]) -> dict[str, dict[str, int]]:
        """From where topics are read that have lost their beginning, also through what is shared."""
        found: dict[str, dict[str, int]] = {}
        for name in names:
            if name in self._shared:
                found |= self._begins(self._shared[name].relations)
                continue
            relation = self._relations[name]
            if relation.topic is not None and relation.kind != "table":
                found[relation.topic.name] = beginnings(relation, self._log)
        return {name: places for name, places in found.items() if places}

    def _only_grows(self, relation: Relation, split: Split) -> bool:
        """Whether no row of a view ever disappears, whatever happens, nor is looked for by a key."""
        if relation.key or relation.sets_aside or split.grows_with is None:
            return False
        return all(self._relations[name].kind in {"stream", "log"} for name in split.grows_with)

    def shared_input(self, name: str, *, filling: bool, since: Since | None = None) -> Work | None:
        """Compute the change of what views share, as `view` does."""
        keyed, change = self._shared[name], None
        schema = hashed_schema(keyed.node.schema)
        inputs = self._taken(name, keyed.relations, filling=filling, since=since)
        if filling:
            self._state.touch(name, schema)
        if self._is_large(name, inputs, anew=filling or since is not None):
            large = self._large(name, inputs, filling=filling)
            large.shared(keyed)
            path, read = LARGE, large.rows_read
        elif filling or self.taken[name]:
            small = Small(name, self._state, self._engine, inputs, filling=filling)
            change, path, read = small.by_key(keyed.physical()), SMALL, small.rows_read
            if change.num_rows:
                self._state.add(name, change)
        else:
            return None
        made = self._noted(name, schema, change)
        with self._threads:
            self._changes[name] = made
        return Work(path, self.taken[name], made.rows, read)

    def _taken(
        self, name: str, relations: Sequence[str], *, filling: bool, since: Since | None
    ) -> dict[str, Input]:
        """What is to be taken in of some relations."""
        self.taken[name] = 0
        inputs = {each: self._input(each, filling=filling, since=since) for each in relations}
        self.taken[name] = sum(each.rows for each in inputs.values())
        return inputs

    def _is_large(self, name: str, inputs: Mapping[str, Input], *, anew: bool) -> bool:
        """Whether executors compute it: what has many rows, or, if it is more than came in a cut, large ones."""
        if self.taken[name] > self._small_rows:
            return True
        return anew and sum(each.bytes for each in inputs.values()) > SMALL_BYTES

    def _large(
        self, name: str, inputs: Mapping[str, Input], *, filling: bool, dead_letters: DeadLetters | None = None
    ) -> Large:
        return Large(
            name,
            self._state,
            self._engine.stages,
            self._engine,
            self._folders,
            inputs,
            filling=filling,
            small_rows=self._small_rows,
            dead_letters=dead_letters,
        )

    def _dead_letters(self, relation: Relation) -> DeadLetters | None:
        """Where a view puts rows that cannot be evaluated; None if they are to suspend it."""
        if not relation.sets_aside:
            return None
        letters = relation.letters

        def put(rows: pa.Table) -> None:
            origin = pa.array([f"view {base_of(relation.name)}"] * rows.num_rows, pa.string())
            change = view_change(letters, rows.add_column(3, "origin", origin), old)
            self._state.add(arrangement_of(letters), change)
            self._change_of(letters, None)

        old = self._state.before(arrangement_of(letters), arranged(letters))
        return DeadLetters(old, put)

    def _done(self, relation: Relation, change: Input, path: str, read: int) -> Work:
        go_on()
        with self._threads:
            self.filling.pop(relation.name, None)
            self._changes[relation.name] = change
        return Work(path, self.taken[relation.name], change.rows, read)

    def cannot(self, name: str, why: HeadwaterError, *, filling: bool, since: Since | None = None) -> Work | None:
        """Stands for computing what cannot be: it says why."""
        self.taken[name] = 0
        hint = f" ({why.hint})" if why.hint else ""
        raise EvaluationFailed(f"{why.what}{hint}")

    def discard(self, name: str) -> None:
        """Leave a view, or what is shared, and all that it keeps, as the last tick left them."""
        self._state.discard(self._owner(name))

    def revoke(self, name: str) -> None:
        """The same, whatever is still computed for it."""
        self._state.revoke(self._owner(name))

    def looks_at(self, name: str) -> int:
        """How many rows computing a view, or what is shared, may have to look at."""
        return self.taken.get(name, 0) + self._state.rows(self._owner(name))

    def _owner(self, name: str) -> str:
        return name if is_shared(name) else arrangement_of(self._relations[name])

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
                changed = self._changes.get(name)
            return changed if changed is not None else self._noted(arrangement, schema)
        with self._threads:
            relation = self._relations.get(name)
        runs: Sequence[Run] = [
            *self._history.changes(relation or name, since.tick),
            *self._state.change(arrangement),
        ]
        if relation is not None and relation.since > since.tick:  # what it replaced was arranged otherwise
            given = {"changes": FromState(self._state, schema, runs)}
            apart = caught_up(arrangement, next(self._numbers))
            runs = self._sum(relation, given, apart)
            self._state.discard(apart)
        return FromState(self._state, schema, runs, old=lambda: self._history.rows(arrangement, since.tick))

    # -- replacing

    def switch(self, name: str, candidate: str, tick: int, built: Work | None) -> Work:
        """Let a name mean its candidate from this tick on; those that read it get the difference.

        Where the columns are others, nobody reads it. `built` is what this tick did for the candidate.
        """
        with self._threads:
            old, made = self._relations[name], self._relations[candidate]
        new = replace(made, name=name, since=tick, before=old)
        try:
            if old.has_columns_of(new):
                self._difference(old, new)
            if old.sets_aside or new.sets_aside:
                self._difference(old.letters, new.letters)
                self._change_of(new.letters, None)
        except Exception:
            for each in (new, new.letters):
                self._state.untell(arrangement_of(each), difference_of(arrangement_of(each)))
            raise
        with self._threads:
            self._relations[name] = new
        self.taken[name] = built.taken if built is not None else 0
        return self._done(new, self._change_of(new, None), built.path if built is not None else SMALL, 0)

    def _difference(self, old: Relation, new: Relation) -> None:
        """Tell readers what changes when one relation takes another's place."""
        apart = difference_of(arrangement_of(new))
        before = self._state.before(arrangement_of(old), arranged(old)).runs
        after = self._state.after(arrangement_of(new), arranged(new)).runs
        parts: dict[str, Input] = {
            "old": TakenBack(FromState(self._state, arranged(old), before)),
            "new": FromState(self._state, arranged(new), after),
        }
        self._sum(new, parts, apart)
        self._state.tell(arrangement_of(new), apart)

    def _sum(self, relation: Relation, parts: Mapping[str, Input], apart: str) -> tuple[Run, ...]:
        """All parts together, as the relation is arranged, however they were; under a name of their own."""
        if sum(each.rows for each in parts.values()) <= self._small_rows:
            rows = pa.concat_tables([each.table() for each in parts.values()])
            nothing = Arrangement(self._state.files, arranged(relation), ())
            self._state.add(apart, view_change(relation, rows, nothing))
        else:
            fields = tuple(Field(each.name, each.type) for each in columns_of(relation))
            columns = tuple(relation.columns.names)
            sides = tuple(Source(fields, relation=each, columns=columns) for each in parts)
            large = self._large(apart, parts, filling=False)
            large.view(relation, Union(fields, inputs=sides))
        return self._state.change(apart)
