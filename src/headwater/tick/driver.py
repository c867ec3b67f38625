"""The driver: cuts the log, computes every view, commits all of it at one instant."""

from __future__ import annotations

import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from headwater import crashpoint
from headwater.clock import Clock
from headwater.errors import DeclarationChanged, Fenced, HeadwaterError, Unavailable
from headwater.files import Files, disk_errors_told
from headwater.log import Cut, Log
from headwater.read.relation import Relation
from headwater.spark.engine import Engine
from headwater.state.manifest import files_of
from headwater.state.pins import Pins
from headwater.state.ready import ready
from headwater.store import Declaration, Lease, Store, TickRecord
from headwater.tick.computation import Computation
from headwater.tick.merging import Merging
from headwater.tick.past import SHARES, Declared, Past
from headwater.tick.report import Tick
from headwater.tick.state import TickState
from headwater.tick.sweep import clear_scratch, expire, sweep
from headwater.tick.views import Attempts, Views
from headwater.views.sharing import Split

SMALL_ROWS = 20_000
"""A view whose inputs changed by no more rows is computed in this process."""
_THREADS = 4
_SWEEP_EVERY = 10


@dataclass(frozen=True)
class Retention:
    """How many versions are kept, and for how long one a minute."""

    ticks: int
    seconds: float


class Planning(Protocol):
    """Whoever knows the plans of views."""

    def split(self, view: Declaration) -> Split:
        """The plan of a view, without what is kept elsewhere."""
        ...

    def share_anew(self) -> None:
        """Decide anew what views share, since nothing of it is there any more."""
        ...


@dataclass(frozen=True)
class _Work:
    """What a tick has to do: take in the log between two cuts; all of it, if the state is built anew."""

    number: int
    cut: Cut
    after: Cut
    declared: Declared
    views: Views
    state: TickState
    topics: Mapping[str, int]
    anew: bool


class Driver:
    """Ticks one pipeline, for whoever holds its lease. One thread at a time."""

    def __init__(
        self,
        store: Store,
        log: Log,
        folder: str,
        lease: Lease,
        clock: Clock,
        engine: Engine,
        declared: Callable[[], Declared],
        planning: Planning,
        retention: Retention,
        *,
        max_rows: int,
        files: Files | None = None,
    ) -> None:
        self.small_rows = SMALL_ROWS
        self._store = store
        self._log = log
        self._folder = os.path.join(folder, "state")
        self._scratch = os.path.join(folder, "scratch")
        self._lease = lease
        self._clock = clock
        self.engine = engine
        self._declared = declared
        self._planning = planning
        self._retention = retention
        self._max_rows = max_rows
        self._files = files or Files()
        self._pins = Pins(self._folder)
        self._merging = Merging(self._files, self._folder)
        self._past = Past(store, log, declared)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="tick")
        self._functions: object = None
        self._computation: Computation | None = None
        self._attempts = Attempts()
        self._checked = 0
        self._counted = (0, 0)
        self._busy = threading.Lock()
        ready.begin()

    @disk_errors_told()
    def tick(self) -> Tick | None:
        """Take what is new into every view; None if there is nothing new and nothing to fill."""
        with self._busy:
            while True:
                try:
                    return self._tick()
                except DeclarationChanged as error:  # a replacement was given up in the moment of its switch
                    if not error.retry:
                        raise

    def _tick(self) -> Tick | None:
        started = time.perf_counter()
        self._counted = (self.engine.queries, self.engine.stages.jobs)
        epoch = self._lease.acquire()
        work = self._work(epoch)
        if work is None:
            self._check_current(epoch)
            return None
        try:
            record = self._record(work, started)
        except BaseException as error:
            work.state.abandon()
            if isinstance(error, Unavailable):  # whoever replaced this driver may have removed files
                self._check_current(epoch, error)
            raise
        finally:
            self._computation = None
            shutil.rmtree(os.path.join(self._scratch, work.state.name), ignore_errors=True)
        if record is None:
            work.state.abandon()
            return None
        # An error here does not say that nothing was committed, so nothing is removed: sweeping sees to that.
        self._store.commit(record, epoch=epoch, alone=work.anew, renamed=work.views.renamed(work.number))
        crashpoint.reach("tick.committed")
        self._merging.committed(work.state.crowded, work.state.seen, f"{epoch}-{work.number}")
        self._keep_house(epoch, work.number, forced=work.anew)
        return Tick.of(record)

    def _work(self, epoch: int) -> _Work | None:
        """What there is to do; None if nothing."""
        last = self._store.last_tick()
        kept = [number for number, _ in self._store.ticks()]
        if (functions := self.engine.functions) != self._functions:  # what failed may succeed with another one
            self._functions = functions
            self._attempts.forget()
        stale = self._past.stale(last, kept)
        self._past.renew(stale)
        found = self._state_before(epoch, last)
        before = None if found is None else self._past.trusted(found, last, stale)
        if before is not None and self._past.is_torn(before, last):
            self._check_rebuildable("something that views share is missing", "restore the pipeline from a backup")
            before = None
        if before is None:
            self._planning.share_anew()
        declared = self._declared()
        topics = {n: r.number for n, r in declared.relations.items() if r.kind in {"stream", "table"}}
        after = _known_cut(last, topics)
        cut = self._log.cut(list(topics), after=after, target=self._max_rows)
        views = Views(declared, last, before, self._attempts, oldest=min(kept, default=0), stale=stale)
        if not cut.rows and not views.waiting and before is not None:
            return None
        number = last.number + 1 if last else 1
        name, forgotten = f"{epoch}-{number}-{uuid.uuid4().hex[:8]}", set(found or ()) - set(before or ())
        state = TickState(self._files, self._folder, name, before or {}, forgotten)
        return _Work(
            number, cut, Cut() if before is None else after, declared, views, state, topics, before is None
        )

    @property
    def merging(self) -> bool:
        """Whether runs of the state are being merged beside the ticks."""
        return bool(self._merging.files)

    def filling(self) -> str:
        """The views that are being filled at this moment, and from how many rows; for people who wait."""
        now = dict(self._computation.filling) if self._computation is not None else {}
        return ", ".join(f"{name} from {rows:,} rows" for name, rows in now.items())

    def _check_current(self, epoch: int, cause: BaseException | None = None) -> None:
        current = self._store.lease().epoch
        if current != epoch:
            msg = f"this driver's epoch {epoch} was replaced by {current}; nothing is committed"
            raise Fenced(msg, where=self._folder, hint="stop this process, or take over again") from cause

    def _state_before(self, epoch: int, last: TickRecord | None) -> Mapping[str, Mapping[str, object]] | None:
        """The arrangements of the last tick; None if all must be built again.

        So it is if files are gone, or if the same SQL may mean something else now.
        """
        if last is None:
            self._files.make_folder(self._folder)
            return {}
        found = self._store.arrangements(last.number)
        if self._checked != epoch:
            self._merging.drive(epoch)
            used = {file for detail in found.values() for file in files_of(detail)}
            self._files.make_folder(self._folder)
            there = set(self._files.list(self._folder))
            if used - there:
                self._check_rebuildable("files of the state are missing", "restore the state folder from a backup")
                return None
            if other := self._other_meaning(last):
                self._check_rebuildable(other, "open the pipeline as it was before")
                return None
            self._sweep(epoch, last.number)
            clear_scratch(self._scratch, epoch)
            self._checked = epoch
        return found

    def _other_meaning(self, last: TickRecord) -> str:
        """What has changed since the last tick of that which expressions depend on."""
        before = last.detail.get("meaning", {})
        changed = [
            f"{what} was {before.get(what, 'another')} and is {now}"
            for what, now in self.engine.meaning.items()
            if before.get(what) != now
        ]
        return ", ".join(changed)

    def _check_rebuildable(self, reason: str, hint: str) -> None:
        """The log must still have everything from its beginning."""
        gone = []
        for name, relation in self._declared().relations.items():
            if relation.kind in {"stream", "table"} and relation.topic is not None:
                for partition in range(relation.topic.partitions):
                    start = self._log.start(name, partition)
                    if start:
                        gone.append(f"{name}, partition {partition}, offsets 0 to {start - 1}")
        if gone:
            msg = f"{reason}, and the state cannot be built again: the log has lost {'; '.join(gone)}"
            raise HeadwaterError(msg, where=self._folder, hint=hint)

    def _computed(self, work: _Work) -> Computation:
        """All changes of a tick."""
        splits = {name: self._planning.split(view) for name, view in work.declared.views.items()}
        scratch = os.path.join(self._scratch, work.state.name)
        computation = self._computation = Computation(
            work.declared.relations,
            {name: keyed for split in splits.values() for name, keyed in split.shared.items()},
            self._log,
            work.state,
            work.after,
            work.cut,
            engine=self.engine,
            past=self._past,
            scratch=scratch,
            small_rows=self.small_rows,
        )
        self._files.make_folder(scratch)
        computation.tables()
        crashpoint.reach("tick.tables")
        work.views.compute(computation, splits, self._threads, work.number)
        crashpoint.reach("tick.computed")
        return computation

    def _record(self, work: _Work, started: float) -> TickRecord | None:
        """The tick as it is to be committed, with all of its files on disk; None if nothing came of it."""
        computation, state, cut, views = self._computed(work), work.state, work.cut, work.views
        if not cut.rows and not views.news and state.is_empty:
            return None
        state.merge(self._merging)
        crashpoint.reach("tick.written")
        state.finish()
        crashpoint.reach("tick.synced")
        detail = {
            "seconds": round(time.perf_counter() - started, 6),
            "rows_in": cut.rows,
            "rows_out": computation.rows_out,
            "rows_read": computation.rows_read,
            "paths": computation.paths,
            "queries": self.engine.queries - self._counted[0],
            "jobs": self.engine.stages.jobs - self._counted[1],
            "rewritten": state.rewritten,
            "meaning": self.engine.meaning,
            "topics": work.topics,
            "suspended": {name: each.as_dict() for name, each in views.suspended.items()},
            SHARES: {name: each and each.as_dict() for name, each in views.shared.items()},
        }
        records = state.records(work.number, computation.changed)
        return TickRecord(work.number, self._clock.now(), cut.as_dict(), records, detail)

    def _keep_house(self, epoch: int, number: int, *, forced: bool) -> None:
        if number % _SWEEP_EVERY and not forced:
            return
        now = self._clock.now()
        limits = self._retention
        always, while_kept = self._past.needed()
        expire(
            self._store,
            self._pins,
            now,
            epoch,
            ticks=limits.ticks,
            seconds=limits.seconds,
            also=always,
            between=while_kept,
        )
        self._drop_forgotten(number)
        crashpoint.reach("tick.expired")
        self._sweep(epoch, number)

    def _drop_forgotten(self, number: int) -> None:
        """Forget the state of views that are not declared any more, or that no kept version has."""
        oldest = self._store.ticks()[0][0]
        needed = set(self._declared().shared)
        for each in self._declared().relations.values():
            now: Relation | None = each
            while now is not None:
                needed.add(f"{now.kind[0]}{now.number}")
                now = now.before if now.since > oldest else None
        owners = {name.partition("/")[0] for name in self._store.arrangements(number)}
        for owner in owners - needed:
            self._store.drop_arrangements(owner)

    def _sweep(self, epoch: int, committed: int) -> None:
        if not self._pins.held() - {kept for kept, _ in self._store.ticks()}:  # else a reader came in between
            sweep(self._store, self._files, self._folder, epoch, committed, sparing=self._merging.files)

    def close(self) -> None:
        """Stop the threads and Spark."""
        self._merging.close()
        self._threads.shutdown()
        self.engine.close()


def _known_cut(last: TickRecord | None, topics: Mapping[str, int]) -> Cut:
    """The last cut, without topics that were dropped since, also if others have their names now."""
    if last is None:
        return Cut()
    cut, known = Cut.from_dict(last.cut), last.detail["topics"]
    ends = {place: end for place, end in cut.ends.items() if topics.get(place[0]) == known.get(place[0])}
    return Cut(cut.sequence, ends, cut.rows)
