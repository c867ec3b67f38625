"""The views of one tick: each computed after those it reads; one that fails is suspended, the others go on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from headwater.attempt import Attempt, Stopped, attempting
from headwater.catalog.catalog import Catalog
from headwater.catalog.names import candidate_of, is_shared
from headwater.catalog.suspension import Suspension
from headwater.catalog.view import ViewDeclaration
from headwater.errors import HeadwaterError, Unavailable
from headwater.evaluation.errors import OutOfMemory
from headwater.log import Cut
from headwater.plan.sharing import Split
from headwater.store import Declaration, LessThanNone, TickRecord
from headwater.tick.attempts import Attempts
from headwater.tick.computation import Computation, Since
from headwater.tick.faults import is_the_pipelines, told
from headwater.tick.jobs import LOOK, Gate, Job
from headwater.tick.outcome import Outcome, ViewOutcome, Work
from headwater.tick.standing import Standing
from headwater.tick.threads import Threads

_ROWS_PER_SECOND = 1000
"""A view that has many rows to look at may take longer."""


class Compute(Protocol):
    """Computes a view, or what is shared."""

    def __call__(self, *, filling: bool, since: Since | None) -> Work | None:
        """All of it, or what changed in this tick, or what changed since one; None if nothing did."""
        ...


PlanOf = Callable[[str], "Split | HeadwaterError"]
"""The plan of a view by its name, without what is kept elsewhere, or why it cannot be computed."""


class Stopping(Protocol):
    """Whoever can stop what is being computed."""

    def stop(self, attempt: str) -> None:
        """Stop what is evaluated for an attempt, as far as that is possible."""
        ...

    def is_waiting(self, attempt: str) -> bool:
        """Whether an attempt only waits until others leave it a place."""
        ...

    def is_lost(self) -> bool:
        """Whether nothing can be evaluated any more."""
        ...


@dataclass(frozen=True)
class _Begun:
    """The jobs of a tick that were begun, with whom, and those that are for later; which relations change in it."""

    computation: Computation
    threads: Threads
    tick: int
    moving: Collection[str]
    jobs: dict[str, Job] = field(default_factory=dict)
    later: dict[str, Callable[[], bool]] = field(default_factory=dict)


class Views:
    """What one tick does with the views, and with what they share.

    `oldest` is the oldest tick that is kept. What is `stale` cannot catch up any more, and is being made anew.
    What is `unable` to be computed, by the numbers of views, says why. What is `left` in the state was shared.
    `standing` is how they stand before.
    """

    def __init__(
        self,
        catalog: Catalog,
        last: TickRecord | None,
        before: Mapping[str, Any] | None,
        attempts: Attempts,
        *,
        oldest: int,
        stale: Collection[str] = (),
        unable: Mapping[int, HeadwaterError] | None = None,
        left: Collection[str] = (),
    ) -> None:
        refused = unable or {}
        views = catalog.views.items() if refused else ()
        self._unable = {name: refused[view.number] for name, view in views if view.number in refused}
        self._left = left
        self._oldest = oldest
        self._stale = stale
        self._catalog = catalog
        self._attempts = attempts
        self.standing = Standing(catalog, last, before, attempts)
        self._memory = Gate()

    def is_news(self, outcome: Outcome) -> bool:
        """Whether other views are suspended than before, or for other reasons, or some were replaced."""
        return bool(outcome.switched) or outcome.suspensions != self.standing.suspended

    def compute(
        self,
        computation: Computation,
        plan: PlanOf,
        threads: Threads,
        tick: int,
        engine: Stopping,
        seconds: float,
    ) -> Outcome:
        """Compute all that has work in threads; one that takes more than so many seconds is given up.

        What reads nothing that changes, is filled and is well is not touched: nobody asks for its plan. What Java
        may have ended by is computed after all others, with nothing beside it, and so is what reads it.
        """
        begun = _Begun(computation, threads, tick, computation.moving())
        stand = (*self.standing.behind, *self._unable, *self._catalog.switching)
        splits: dict[str, Split] = {}
        touched = self._catalog.touched([*begun.moving, *stand])
        for name in touched:
            found = self._unable.get(name) or plan(name)
            if isinstance(found, HeadwaterError):
                self._unable[name] = found
            else:
                splits[name] = found
        computation.share(splits.values())
        needed = self._needed() if self._unable else frozenset()
        for name in touched:
            if name in splits:
                self._begin_view(begun, name, splits[name])
            else:
                self._begin_unable(begun, self._catalog.views[name], needed)
        self._settle(begun.jobs, begun.later, computation, threads, engine, seconds)
        return self._outcome(begun.jobs)

    def _needed(self) -> frozenset[str]:
        """What is shared by views that can be computed."""
        able = (view for name, view in self._catalog.views.items() if name not in self._unable)
        return frozenset(each for view in able for each in view.shared)

    def _begin_view(self, begun: _Begun, name: str, split: Split) -> None:
        """Have a view and what it shares computed, as far as there is work."""
        computation = begun.computation
        for each, keyed in split.shared.items():
            if each not in begun.jobs and self._has_work(begun, each, keyed.relations):
                self._begin(begun, each, keyed.relations, partial(computation.shared_input, each))
        if self._has_work(begun, name, split.relations):
            self._begin(begun, name, split.relations, partial(computation.view, name, split))

    def _begin_unable(self, begun: _Begun, view: ViewDeclaration, shared: Collection[str]) -> None:
        """Suspend a view that has no plan, and what only such views share."""
        cannot, why = begun.computation.cannot, self._unable[view.name]
        for each in view.shared:
            if each not in shared and each not in begun.jobs:
                self._begin(begun, each, (), partial(cannot, each, why))
        known = [each for each in view.inputs if each in self._catalog.relations]
        self._begin(begun, view.name, known, partial(cannot, view.name, why))

    def _has_work(self, begun: _Begun, name: str, relations: Sequence[str]) -> bool:
        stands = self.standing.is_new(name) or name in self.standing.suspended or name in self._catalog.switching
        return stands or any(each in begun.moving or each in begun.jobs for each in relations)

    def _begin(self, begun: _Begun, name: str, relations: Sequence[str], compute: Compute) -> None:
        """Have one computed after those that it reads and its candidate, or later."""
        waits_for = (*relations, candidate_of(name))
        before = {each: begun.jobs[each].came_to for each in waits_for if each in begun.jobs}
        job = begun.jobs[name] = Job(Attempt(f"{name} {begun.computation.name}"))
        work = partial(self._run, job, begun.computation, name, relations, before, compute, begun.tick)
        if self.standing.arrangement(name) in self._attempts.ends.suspected or before.keys() & begun.later.keys():
            begun.later[name] = work
        else:
            begun.threads.submit(work)

    def _settle(
        self,
        jobs: Mapping[str, Job],
        later: dict[str, Callable[[], bool]],
        computation: Computation,
        threads: Threads,
        engine: Stopping,
        seconds: float,
    ) -> None:
        """Return when all jobs have come to something, those that are for later one by one; an error if not."""
        try:
            at_once = {name: job for name, job in jobs.items() if name not in later}
            self._wait(at_once, computation, threads, engine, seconds)
            self._check(at_once, engine)
            for name in list(later):
                threads.submit(later.pop(name))
                self._wait({name: jobs[name]}, computation, threads, engine, seconds)
                self._check({name: jobs[name]}, engine)
        except BaseException:  # Ctrl-C: nobody waits for what is still computed
            for name, job in jobs.items():
                if name not in later and job.give_up(Stopped("the tick was given up")):
                    threads.replace()
                    engine.stop(job.attempt.name)
            raise

    def _wait(
        self,
        jobs: Mapping[str, Job],
        computation: Computation,
        threads: Threads,
        engine: Stopping,
        seconds: float,
    ) -> None:
        """Return when all jobs have come to something; those that do not are given up."""
        left = {job.came_to for job in jobs.values()}
        while left := wait(left, timeout=min(LOOK, seconds / 4)).not_done:
            for name, job in jobs.items():
                if not (took := self._overdue(name, job, computation, seconds)):
                    continue
                if engine.is_waiting(job.attempt.name):  # for one of the others
                    job.began = time.monotonic()
                elif self._gave_up(name, job, computation, took):
                    engine.stop(job.attempt.name)
                    threads.replace()

    def _check(self, jobs: Mapping[str, Job], engine: Stopping) -> None:
        """An error if one of the pipeline's stops the tick; what was computed when Java ended is noted."""
        failed = {name: error for name, job in jobs.items() if (error := job.came_to.exception()) is not None}
        found = {name: job.came_to.result().suspension for name, job in jobs.items() if name not in failed}
        news = {name for name, why in found.items() if why is not None and self.standing.suspended.get(name) != why}
        if (failed or news) and engine.is_lost():
            ended = [jobs[name] for name in failed or news]
            first = min((job.failed for job in ended if job.failed is not None), default=0.0)
            under_way = {name for name in failed or news if (jobs[name].began or math.inf) <= first}
            self._attempts.ends.ended({self.standing.arrangement(name) for name in under_way})
            if not failed:
                msg = "Java has ended while views were computed"
                raise Unavailable(msg, where="Spark", hint="tick again; see `headwater doctor`", retry=True)
        if failed:
            raise next(iter(failed.values()))

    def _outcome(self, jobs: Mapping[str, Job]) -> Outcome:
        """What jobs came to."""
        found = {name: job.came_to.result() for name, job in jobs.items()}
        for name, each in found.items():
            if each.suspension is None:
                self._attempts.ends.forgive(self.standing.arrangement(name))
        switched = {candidate_of(name) for name, each in found.items() if each.switched}
        shared = {name: each for name, each in found.items() if name in self._catalog.shared}
        views = {name: each for name, each in found.items() if name not in shared and name not in switched}
        return Outcome(views, shared, self._left)

    def _overdue(self, name: str, job: Job, computation: Computation, seconds: float) -> float:
        """For how long a view has been computed, if that is too long; else 0."""
        began = job.began
        if began is None or job.came_to.done():
            return 0
        took = time.monotonic() - began
        is_late = took > seconds and took > seconds + computation.looks_at(name) / _ROWS_PER_SECOND
        return took if is_late else 0

    def _gave_up(self, name: str, job: Job, computation: Computation, took: float) -> bool:
        """Suspend a view that does not come to an end: what still computes it can change nothing any more."""
        what = f"it was not computed within {took:,.0f} seconds"
        hint = "correct the row or the function that does not come to an end, or replace the view"
        if not job.give_up(
            ViewOutcome(suspension=Suspension(**self.standing.last_good(name), what=what, hint=hint))
        ):
            return False
        computation.revoke(name)
        self._attempts.hung(self.standing.arrangement(name), took, job.attempt)
        return True

    def _run(
        self,
        job: Job,
        computation: Computation,
        name: str,
        relations: Sequence[str],
        before: Mapping[str, Future[ViewOutcome]],
        compute: Compute,
        tick: int,
    ) -> bool:
        """Have a job come to something; whether this thread is still needed."""
        with attempting(job.attempt):
            try:
                return job.ended(self._one(job, computation, name, relations, before, compute, tick))
            except BaseException as error:  # raised by whoever waits for the job
                return job.ended(error)

    def _one(
        self,
        job: Job,
        computation: Computation,
        name: str,
        relations: Sequence[str],
        before: Mapping[str, Future[ViewOutcome]],
        compute: Compute,
        tick: int,
    ) -> ViewOutcome:
        """Compute one after those before it."""
        suspended = [each for each, found in before.items() if found.result().suspension is not None]
        started = job.began = time.monotonic()
        known, arrangement = self.standing.suspended.get(name), self.standing.arrangement(name)
        try:
            if name in self._catalog.switching and candidate_of(name) not in suspended:
                candidate = candidate_of(name)
                built = before[candidate].result().work if candidate in before else None
                return ViewOutcome(computation.switch(name, candidate, tick, built), switched=True)
            if inputs := [each for each in suspended if each != candidate_of(name)]:
                cause = before[inputs[0]].result().suspension
                assert cause is not None
                origin = inputs[0] if is_shared(cause.because) else cause.because or inputs[0]
                return ViewOutcome(suspension=replace(cause, **self.standing.last_good(name), because=origin))
            if (resting := self._resting(name, computation, relations)) is not None:
                return ViewOutcome(suspension=resting)
            fill = partial(compute, filling=self.standing.is_new(name), since=_since(known))
            work = self._attempt(job, computation, name, fill)
        except BaseException as error:
            if is_the_pipelines(error) or job.attempt.stopped.is_set():
                raise
            fault = f"{error.what}: this is a fault of Headwater" if isinstance(error, LessThanNone) else ""
            computation.discard(name)
            self._attempts.failed(arrangement, computation.taken.get(name, 0), time.monotonic() - started)
            return ViewOutcome(suspension=Suspension(**self.standing.last_good(name), **told(error)), fault=fault)
        self._attempts.succeeded(arrangement)
        took = round(time.monotonic() - started, 6)
        return ViewOutcome(None if work is None else replace(work, seconds=took))

    def _resting(self, name: str, computation: Computation, relations: Sequence[str]) -> Suspension | None:
        """Why a view is not to be computed now, if it is not."""
        known, arrangement, ended = (
            self.standing.suspended.get(name),
            self.standing.arrangement(name),
            self._ended(name),
        )
        if known is not None and name in self._stale:
            return known
        if ended is not None and (known is None or known.what != ended.what):
            return ended
        if known is None or known.because:
            return None
        if computation.moved(relations):
            self._attempts.changed(arrangement)
        return None if self._attempts.is_due(arrangement) else known

    def _ended(self, name: str) -> Suspension | None:
        """A view that ended Java whenever it was computed, even alone."""
        if self.standing.arrangement(name) not in self._attempts.ends.times:
            return None
        what = "Java ended whenever it was computed, also with nothing beside it"
        hint = "correct the row or the function that ends it, or replace the view"
        return Suspension(**self.standing.last_good(name), what=what, hint=hint)

    def _attempt(
        self, job: Job, computation: Computation, name: str, compute: Callable[[], Work | None]
    ) -> Work | None:
        """Compute one; where there was not enough memory, again, with nobody else doing so."""
        try:
            return compute()
        except (OutOfMemory, MemoryError):
            job.began = None  # while it waits
            with self._memory.only(job):
                job.began = time.monotonic()
                job.attempt.alone.set()
                computation.discard(name)
                return compute()

    def renamed(self, outcome: Outcome, tick: int) -> list[Declaration]:
        """The declarations of the views that are replaced in this tick."""
        made = []
        for name in outcome.switched:
            old, new = self._catalog.views[name], self._catalog.views[candidate_of(name)]
            made.append(new.taking_over(old, tick, self._oldest).stored())
        return made


def _since(known: Suspension | None) -> Since | None:
    return Since(known.since, Cut.from_dict(known.cut)) if known is not None and known.since else None
