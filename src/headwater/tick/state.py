"""The state of one tick while it is being computed: what was there before, and the runs that it adds."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa

from headwater.attempt import Stopped
from headwater.catalog.names import is_below, is_of_relation, letters_of, owner_of
from headwater.errors import HeadwaterError
from headwater.state.arrangement import Arrangement
from headwater.state.files import StateFiles
from headwater.state.manifest import ANEW, BEGINS, CHANGES, PLAN, Manifest
from headwater.state.merge import merge
from headwater.state.run import Run
from headwater.state.run_file import RunFile
from headwater.store import RunRecord
from headwater.tick.merging import Merge, Merged, Merging

_LEAST_MERGED = 16 << 20
_MERGED_PER_CHANGED = 8
"""So many times what was added is merged in a tick; where nothing is looked for, once is enough."""
_LARGE = 8 << 20
_LARGE_RUNS = 256
"""Runs of so many bytes, or so much of all, are few enough where nothing is looked for."""


class TickState:
    """Arrangements as the last tick left them, and the additions of this one. Safe for threads.

    Those that are `forgotten` are in the store, but do not count. All runs that this process makes go into one
    file; those that executors made are named by `add_runs`. Nothing of it counts until the store has committed the
    records. `plans` has the fingerprint of the plan by which a view, or what is shared, is computed in a tick: it
    is kept with what those own, and what was kept by another is not read. What others own stays of its plan.
    """

    def __init__(
        self,
        files: StateFiles,
        name: str,
        before: Mapping[str, Mapping[str, Any]],
        forgotten: Collection[str] = (),
    ) -> None:
        self.files = files
        self.name = name
        self._before = before
        self._forgotten = forgotten
        self._file = RunFile(files, f"{name}.runs")
        self._others: set[str] = set()
        self._read: dict[str, tuple[Run, ...]] = {}
        self._runs: dict[str, list[Run]] = {}
        self._added: dict[str, list[Run]] = {}
        self._told: dict[str, list[Run]] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._begins: dict[str, Mapping[str, Mapping[str, int]]] = {}
        self._growing: set[str] = set()
        self._revoked: set[str] = set()
        self._abandoned = False
        self._threads = threading.Lock()
        self.plans: dict[str, str] = {}

    def before(self, name: str, schema: pa.Schema) -> Arrangement:
        """An arrangement as the last tick left it."""
        return Arrangement(self.files, schema, self._held(name))

    def _held(self, name: str) -> tuple[Run, ...]:
        """The runs of an arrangement as the last tick left it; there may be many, so they are read once."""
        if name not in self._read:
            detail = self._before.get(name)
            self._check_plan(name, detail)
            self._read[name] = Manifest.from_dict(detail).runs if detail else ()
        return self._read[name]

    def _check_plan(self, name: str, detail: Mapping[str, Any] | None) -> None:
        """What was kept by another plan is never read, whatever brought it here."""
        plan = self.plans.get(owner_of(name))
        if detail is not None and plan is not None and detail.get(PLAN) != plan:
            msg = "what is kept of it was made by another plan"
            raise HeadwaterError(msg, where=name, hint="this is a fault of Headwater; please report it")

    def after(self, name: str, schema: pa.Schema) -> Arrangement:
        """An arrangement with what this tick has added so far."""
        with self._threads:
            runs = self._runs.get(name)
        return self.before(name, schema) if runs is None else Arrangement(self.files, schema, runs)

    def change(self, name: str) -> tuple[Run, ...]:
        """The runs of what this tick has changed in an arrangement so far, as its readers are told."""
        with self._threads:
            return tuple(self._told.get(name, self._added.get(name, ())))

    def tell(self, name: str, runs_of: str) -> None:
        """Tell readers of an arrangement that it changed by what was added to another, which is discarded."""
        with self._threads:
            self._told[name] = self._added.get(runs_of, [])
        self.discard(runs_of)

    def untell(self, name: str, runs_of: str) -> None:
        """Forget what readers were to be told, and what it was made from."""
        with self._threads:
            self._told.pop(name, None)
            self._discard(runs_of)

    def begin(self, name: str, places: Mapping[str, Mapping[str, int]]) -> None:
        """Note from where topics are read, by partition, for an arrangement that is being filled."""
        with self._threads:
            self._begins[name] = places

    def touch(self, name: str, schema: pa.Schema) -> None:
        """Note that an arrangement is there from now on, though nothing may be in it or those below it."""
        with self._threads:
            self._of(name, schema)
            for each in self._forgotten:
                if is_below(each, name) and not each.endswith(CHANGES):
                    self._of(each, pa.schema([]))

    def add(self, name: str, change: pa.Table) -> None:
        """Add a consolidated change to an arrangement."""
        with self._threads:
            runs = self._of(name, change.schema)
            if change.num_rows:
                run = self._file.add(change)
                runs.append(run)
                self._added.setdefault(name, []).append(run)

    def grows(self, name: str) -> None:
        """Note that no row of an arrangement ever disappears, nor is looked for."""
        with self._threads:
            self._growing.add(name)

    def add_runs(self, name: str, schema: pa.Schema, runs: Iterable[Run]) -> None:
        """Add the runs that executors made for an arrangement."""
        with self._threads:
            made = list(runs)
            self._of(name, schema).extend(made)
            self._added.setdefault(name, []).extend(made)
            self._others.update(run.file for run in made)

    def _of(self, name: str, schema: pa.Schema) -> list[Run]:
        if self._abandoned or owner_of(name) in self._revoked:
            msg = "it was given up"
            raise Stopped(msg)
        if name not in self._runs:
            self._runs[name] = list(self._held(name))
        self._schemas[name] = schema
        return self._runs[name]

    def discard(self, name: str) -> None:
        """Leave an arrangement and those below it (`name/…`) as the last tick left them."""
        with self._threads:
            self._discard(name)

    def _discard(self, name: str) -> None:
        for kept in (self._runs, self._added, self._schemas, self._told):
            for each in [each for each in kept if each == name or is_below(each, name)]:
                del kept[each]

    def revoke(self, name: str) -> None:
        """The same, and whoever still adds to them gets `Stopped`."""
        with self._threads:
            self._revoked.add(name)
            self._discard(name)

    def rows(self, name: str) -> int:
        """How many rows an arrangement and those below it had before the tick."""
        found = [each for each in self._before if each == name or is_below(each, name)]
        return sum(run.rows for each in found if not each.endswith(CHANGES) for run in self._held(each))

    @property
    def is_empty(self) -> bool:
        """Whether nothing was added or touched."""
        return not self._runs

    def merge(self, merging: Merging) -> Merged:
        """Merge runs of what was touched, a bounded amount: a multiple of what was added.

        What is too much for that is merged beside the ticks; what was merged there takes its place now.
        """
        rewritten, crowded, done = 0, list[Merge](), merging.done
        if done is not None:
            merged = set(done.crowd.runs)
            if merged <= set(self.after(done.arrangement, done.schema).runs):  # else it was dropped or made anew
                runs = self._of(done.arrangement, done.schema)
                runs[:] = [*(run for run in runs if run not in merged), *done.runs]
        for name, runs in self._runs.items():
            added = sum(run.bytes for run in self._added.get(name, ()))
            grows = name in self._growing
            budget = max(_LEAST_MERGED, added if grows else _MERGED_PER_CHANGED * added)
            busy = merging.busy(name)
            large = max(_LARGE, sum(run.bytes for run in runs) // _LARGE_RUNS)
            left = {run for run in runs if run in busy or (grows and run.bytes >= large)}
            free = [run for run in runs if run not in left]
            elsewhere = merging.may_merge(name)
            result = merge(self.files, self._schemas[name], free, self._file, budget, elsewhere=elsewhere)
            self._runs[name] = [*(run for run in runs if run in left), *result.runs]
            rewritten += result.rewritten_bytes
            if result.left is not None:
                crowded.append(Merge(name, self._schemas[name], result.left))
        return Merged(rewritten, tuple(crowded), done)

    def finish(self) -> None:
        """Return when everything that was added is on disk."""
        self._file.finish()
        self.files.sync()

    def records(self, tick: int, anew: Collection[str] = ()) -> tuple[RunRecord, ...]:
        """What the store keeps: the runs of each touched arrangement, and what changed in the rows of relations.

        Of those built `anew` it is noted that what they have is no change of what they had.
        """
        made = [_record(name, tick, runs, self._kept_with(name)) for name, runs in self._runs.items()]
        unknown = {each for name in anew for each in (name, letters_of(name))}
        made += [
            _record(name + CHANGES, tick, runs)
            for name in {*self._added, *self._told} - unknown
            if is_of_relation(name) and (runs := self.change(name))
        ]
        made += [RunRecord(f"{name}{CHANGES}@{tick}", name + CHANGES, {"runs": [], ANEW: True}) for name in unknown]
        return tuple(made)

    def _kept_with(self, name: str) -> dict[str, Any]:
        """What is kept with the runs of an arrangement: of which plan it is, and from where it has read topics."""
        before = self._before.get(name, {})
        plan, begins = self.plans.get(owner_of(name)), self._begins.get(name)
        kept = {PLAN: plan or before.get(PLAN), BEGINS: begins if begins is not None else before.get(BEGINS)}
        return {each: value for each, value in kept.items() if value}

    def abandon(self) -> None:
        """Remove what was written; whoever still adds something gets `Stopped`."""
        with self._threads:
            self._abandoned = True
            self._file.abandon()
            for other in self._others:
                self.files.remove(other)


def _record(name: str, tick: int, runs: Iterable[Run], kept: Mapping[str, Any] | None = None) -> RunRecord:
    return RunRecord(f"{name}@{tick}", name, Manifest(tuple(runs)).as_dict() | dict(kept or {}))
