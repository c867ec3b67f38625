"""The driver: cuts the log, computes every view, commits all of it at one instant."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from headwater import crashpoint
from headwater.catalog.amendment import amend
from headwater.catalog.catalog import Catalog
from headwater.catalog.names import owner_of
from headwater.catalog.relation import Relation
from headwater.clock import Clock
from headwater.errors import DeclarationChanged, Fenced, HeadwaterError, LeaseHeld, Unavailable
from headwater.files import disk_errors_told
from headwater.log import Cut, Log
from headwater.plan.engine import Engine
from headwater.plan.sharing import Split
from headwater.spark.session.quiet import quiet
from headwater.state.damage import noted
from headwater.state.files import StateFiles
from headwater.state.pins import Pins
from headwater.store import EntryDamaged, Faults, Lease, Store, TickRecord
from headwater.tick.attempts import Attempts, JavaEnds
from headwater.tick.committed import Committed
from headwater.tick.computation import Computation
from headwater.tick.cursors import LateCursors
from headwater.tick.deciding import Decided, Deciding, Planning, Renewing, known_cut
from headwater.tick.history import History
from headwater.tick.losses import instead, read_again
from headwater.tick.merging import Merged, Merging
from headwater.tick.outcome import Outcome
from headwater.tick.recovery import Before, Recovery
from headwater.tick.report import Tick
from headwater.tick.state import TickState
from headwater.tick.sweep import clear_scratch, clear_tick, expire, sweep
from headwater.tick.threads import Threads
from headwater.tick.views import Views
from headwater.topics import TopicDeclaration

SMALL_ROWS = 20_000
"""A view whose inputs changed by no more rows is computed in this process."""
VIEW_SECONDS = 600.0
"""A view that does not come to an end is given up after so long, and later if it has many rows to look at."""
_THREADS = 4
_TRIES = 20
"""So often a tick is decided anew since what is declared has become another meanwhile."""
_SWEEP_EVERY = 10


@dataclass(frozen=True)
class Retention:
    """How many versions are kept, and for how long one a minute."""

    ticks: int
    seconds: float


@dataclass(frozen=True)
class _Work:
    """What a tick has to do: take in the log between two cuts; all of it, if the state is built `anew`.

    What is `lost` is built again, for a `reason`.
    """

    number: int
    cut: Cut
    after: Cut
    catalog: Catalog
    before: Mapping[str, Mapping[str, object]]
    views: Views
    state: TickState
    anew: bool
    lost: Collection[str]
    reason: str

    def is_needed(self, outcome: Outcome) -> bool:
        """Whether there is anything to commit."""
        return bool(self.cut.rows or self.lost or not self.state.is_empty or self.views.is_news(outcome))


class Driver:
    """Ticks one pipeline, for whoever holds its lease. One thread at a time."""

    def __init__(
        self,
        store: Store,
        log: Log,
        files: StateFiles,
        scratch: StateFiles,
        pins: Pins,
        lease: Lease,
        clock: Clock,
        engine: Engine,
        catalog: Callable[[], Catalog],
        planning: Planning,
        renewing: Renewing,
        retention: Retention,
        *,
        max_rows: int,
    ) -> None:
        self.small_rows, self.view_seconds = SMALL_ROWS, VIEW_SECONDS
        self._store, self._log = store, log
        self._files, self._scratch, self._pins = files, scratch, pins
        self._lease, self._clock, self.engine = lease, clock, engine
        self._find_catalog = catalog
        self._known: set[int] = set()
        self._retention = retention
        self._max_rows = max_rows
        self._merging = Merging(files)
        self._history = History(store, log)
        self._committed = Committed(store)
        self._recovery = Recovery(store, log, files, lease)
        self._threads = Threads(_THREADS)
        self._functions: object = None
        self._computation: Computation | None = None
        self._attempts = Attempts(JavaEnds(store))
        self._faults = Faults(store)
        self._deciding = Deciding(self._history, self._recovery, planning, renewing, self._faults)
        self._late_cursors = LateCursors(store, files)
        self._checked, self._failed, self._counted = 0, False, (0, 0)
        self._busy = threading.Lock()
        files.prefetch()

    @disk_errors_told()
    def tick(self) -> Tick | None:
        """Take what is new into every view; None if there is nothing new and nothing to fill."""
        with self._busy, quiet():
            self._failed, tries = False, 0
            while True:
                self._known = set()
                try:
                    return self._tick()
                except DeclarationChanged as error:  # as a topic that was altered in this moment
                    tries += 1
                    if not error.retry or tries == _TRIES:
                        raise
                except EntryDamaged:
                    self._checked = 0  # look at everything before the next tick
                    self._committed.forget()
                    raise
                except (Fenced, LeaseHeld):
                    raise
                except Exception as error:
                    if self._was_any_dropped():  # whatever it was, it is done again without that
                        continue
                    if not isinstance(error, HeadwaterError) or self._failed or not noted(self._files):
                        raise
                    self._failed = True  # it may be damage: once more, without what is found to be damaged

    def _catalog(self) -> Catalog:
        """What is declared now, which is noted."""
        found = self._find_catalog()
        self._known.update(each.number for each in found.relations.values())
        return found

    def _was_any_dropped(self) -> bool:
        """Whether something is gone that this tick has found declared."""
        return not self._known <= {each.number for each in self._store.declarations().values()}

    def _tick(self) -> Tick | None:
        started = time.perf_counter()
        self._counted = (self.engine.queries, self.engine.stages.jobs)
        epoch = self._lease.acquire()
        work = self._decided(epoch)
        if work is None:
            self._check_current(epoch)
            return None
        try:
            outcome = self._computed(work)
            if not work.is_needed(outcome):
                work.state.abandon()
                return None
            merged = work.state.merge(self._merging)
            crashpoint.reach("tick.written")
            record = self._record(work, outcome, merged, started)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                self.engine.cancel()
                self._attempts.forget()  # what was given up has not failed
            work.state.abandon()
            if isinstance(error, Unavailable):  # whoever replaced this driver may have removed files
                self._check_current(epoch, error)
            raise
        finally:
            self._computation = None
            clear_tick(self._scratch, work.state.name)
        # An error here does not say that nothing was committed, so nothing is removed: sweeping sees to that.
        renamed = work.views.renamed(outcome, work.number)
        self._committed.commit(record, epoch=epoch, alone=work.anew, renamed=renamed, anew=instead(work.lost))
        crashpoint.reach("tick.committed")
        self._merging.committed(merged.crowded, merged.seen, f"{epoch}-{work.number}")
        self._keep_house(epoch, work.number, forced=work.anew)
        return Tick.of(record)

    def _decided(self, epoch: int) -> _Work | None:
        """What there is to do; None if nothing. What is to be made anew for it is declared first."""
        begins = self._checked != epoch
        if begins:
            self._store.check()
            self._files.claim()
        self._committed.drive(epoch)
        last, kept = self._committed.last, self._committed.ticks
        if (functions := self.engine.functions) != self._functions:  # what failed may succeed with another one
            self._functions = functions
            self._attempts.forget()
        catalog = self._catalog()
        found = self._found(epoch, catalog, last, begins=begins)
        decided = self._deciding.declarations(catalog, last, kept, found)
        if decided.amendments or decided.faults:
            amend(self._store, decided.amendments)
            for number, fault in decided.faults.items():
                self._faults.tell(number, fault)
            catalog = self._catalog()
        return self._work(epoch, catalog, last, min(kept, default=0), found, decided)

    def _found(self, epoch: int, catalog: Catalog, last: TickRecord | None, *, begins: bool) -> Before:
        """What the last tick has left; a driver that begins clears away what others have left beside it."""
        if last is None:
            return Before({})
        if begins:
            self._merging.drive(epoch)
        meaning = self.engine.meaning
        found = self._recovery.before(catalog, self._committed, meaning, begins=begins, failed=self._failed)
        if begins and found.is_sound:
            self._sweep(epoch, last.number)
            clear_scratch(self._scratch, epoch)
            self._checked = epoch
        return found

    def _work(
        self, epoch: int, catalog: Catalog, last: TickRecord | None, oldest: int, found: Before, decided: Decided
    ) -> _Work | None:
        """What a tick has to do, by one catalog, which it goes by to its end; None if there is nothing."""
        after = known_cut(last, catalog.topics)
        cut = self._log.cut(list(catalog.topics), after=after, target=self._max_rows)
        self._check_unaltered(catalog, after, cut)
        before = decided.before
        views = Views(
            catalog,
            last,
            before,
            self._attempts,
            oldest=oldest,
            stale=decided.stale,
            unable=decided.unable,
            left=self._deciding.left(catalog, found.found or {}),
        )
        if not cut.rows and not views.standing.due and before is not None and not found.lost:
            return None
        number = last.number + 1 if last else 1
        name = f"{epoch}-{number}-{uuid.uuid4().hex[:8]}"
        forgotten = set() if found.found is before else set(found.found or ()) - set(before or ())
        state = TickState(self._files, name, before or {}, forgotten)
        after = Cut() if before is None else read_again(after, found.lost, catalog)
        return _Work(
            number, cut, after, catalog, before or {}, views, state, before is None, found.lost, found.reason
        )

    def _check_unaltered(self, catalog: Catalog, after: Cut, cut: Cut) -> None:
        """Records of a cut may be of a topic that was altered since the catalog was read: then all is decided anew.

        If it was not, they cannot: whoever writes with the columns of an altered topic has read so in the store.
        """
        for name in {topic for (topic, partition), end in cut.ends.items() if end > after.end(topic, partition)}:
            stored, known = self._store.find(name), catalog.relations[name].alterations.number
            if stored is not None and TopicDeclaration.altered_in(stored.spec) > known:
                msg = "the topic was altered in this moment"
                raise DeclarationChanged(msg, where=name, hint="tick again", retry=True)

    @property
    def merging(self) -> bool:
        """Whether runs of the state are being merged beside the ticks."""
        return bool(self._merging.files)

    @property
    def filling(self) -> dict[str, int]:
        """The views that are being filled at this moment, and from how many rows; for people who wait."""
        computation = self._computation
        return dict(computation.filling) if computation is not None else {}

    def _check_current(self, epoch: int, cause: BaseException | None = None) -> None:
        current = self._store.lease().epoch
        if current != epoch:
            msg = f"this driver's epoch {epoch} was replaced by {current}; nothing is committed"
            raise Fenced(msg, where=self._lease.where, hint="stop this process, or take over again") from cause

    def _computed(self, work: _Work) -> Outcome:
        """All changes of a tick."""
        computation = self._computation = Computation(
            work.catalog,
            self._log,
            work.state,
            work.after,
            work.cut,
            engine=self.engine,
            history=self._history,
            scratch=self._scratch,
            small_rows=self.small_rows,
        )
        for each, beginning in instead(work.lost).items():
            if beginning is not None:
                work.state.touch(each, pa.schema([]))  # it is there from now on, though it may be empty
        computation.tables()
        crashpoint.reach("tick.tables")
        threads, engine, seconds = self._threads, self.engine, self.view_seconds
        plan = partial(self._plan, work)
        outcome = work.views.compute(computation, plan, threads, work.number, engine, seconds)
        for name, view in outcome.views.items():
            if view.fault:
                self._faults.tell(work.catalog.views[name].number, view.fault)
        crashpoint.reach("tick.computed")
        return outcome

    def _plan(self, work: _Work, name: str) -> Split | HeadwaterError:
        """By what a view is computed, which is noted with what it keeps; or why it cannot be."""
        found = self._deciding.plan(work.catalog.views[name], work.catalog, work.before)
        if isinstance(found, HeadwaterError):
            return found
        work.state.plans |= found.marks
        return found.split

    def _record(self, work: _Work, outcome: Outcome, merged: Merged, started: float) -> TickRecord:
        """The tick as it is to be committed, with all of its files on disk."""
        state = work.state
        state.finish()
        crashpoint.reach("tick.synced")
        detail = {
            "seconds": round(time.perf_counter() - started, 6),
            "rows_in": work.cut.rows,
            "queries": self.engine.queries - self._counted[0],
            "jobs": self.engine.stages.jobs - self._counted[1],
            "rewritten": merged.rewritten,
            "meaning": self.engine.meaning,
            "topics": dict(work.catalog.topics),
            "altered": work.catalog.alterations(work.catalog.topics),
            **outcome.detail(),
        }
        if work.reason:
            detail["rebuilt"] = work.reason
        records = state.records(work.number, anew=work.lost)
        return TickRecord(work.number, self._clock.now(), work.cut.as_dict(), records, detail)

    def _keep_house(self, epoch: int, number: int, *, forced: bool) -> None:
        if number % _SWEEP_EVERY and not forced:
            return
        now, catalog = self._clock.now(), self._catalog()
        limits = self._retention
        self._late_cursors.give_up(now)
        always, while_kept = self._history.needed(catalog)
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
        self._committed.expired()
        self._drop_forgotten(catalog)
        crashpoint.reach("tick.expired")
        self._sweep(epoch, number)

    def _drop_forgotten(self, catalog: Catalog) -> None:
        """Forget the state of views that are not declared any more, or that no kept version has."""
        oldest = self._committed.ticks[0]
        needed = set(catalog.shared)
        for each in catalog.relations.values():
            now: Relation | None = each
            while now is not None:
                needed.add(now.owner)
                now = now.before if now.since > oldest else None
        for owner in {owner_of(name) for name in self._committed.arrangements(catalog)} - needed:
            self._store.drop_arrangements(owner)
            self._committed.forget()

    def _sweep(self, epoch: int, committed: int) -> None:
        if not self._pins.held() - {kept for kept, _ in self._store.ticks()}:  # else a reader came in between
            sweep(self._store, self._files, epoch, committed, sparing=self._merging.files)

    def close(self) -> None:
        """Stop the threads and Spark."""
        self._merging.close()
        self._threads.close()
        self.engine.close()
