"""The views of one tick: each computed after those it reads; one that fails is suspended, the others go on."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from headwater.log import Cut
from headwater.operators.failing import EvaluationFailed
from headwater.read.relation import Relation
from headwater.read.suspended import Suspended, suspended
from headwater.store import NEXT, Declaration, TickRecord
from headwater.tick.computation import Computation, Since
from headwater.views.plan import Plan

_MANY = 100_000
_REST = 4
"""An attempt with many rows is repeated only after several times as long as it took."""


@dataclass(frozen=True)
class Declared:
    """What the store has declared: topics and views, the views in an order in which each follows its inputs.

    `switching` are the views that are to be replaced as soon as their candidates are filled.
    """

    relations: Mapping[str, Relation]
    views: Mapping[str, Declaration]
    switching: frozenset[str] = frozenset()


class Attempts:
    """When views that failed are tried again: when an input has changed, and if it is much, after a while.

    It lives as long as the driver: another process may have other functions, and tries once in any case.
    """

    def __init__(self) -> None:
        self._failed: dict[int, float] = {}
        self._changed: set[int] = set()

    def failed(self, number: int, rows: int, seconds: float) -> None:
        """Note that computing a view from so many rows failed after so many seconds."""
        self._changed.discard(number)
        self._failed[number] = time.monotonic() + (_REST * seconds if rows > _MANY else 0)

    def succeeded(self, number: int) -> None:
        """Note that a view is well."""
        self._changed.discard(number)
        self._failed.pop(number, None)

    def forget(self) -> None:
        """Try all of them again."""
        self._failed.clear()

    def changed(self, number: int) -> None:
        """Note that an input of a view has changed since it failed."""
        self._changed.add(number)

    def is_due(self, number: int) -> bool:
        """Whether computing it may succeed now."""
        rest = self._failed.get(number)
        return rest is None or (number in self._changed and time.monotonic() >= rest)


class Views:
    """What one tick does with the views.

    `oldest` is the oldest tick that is kept. Views that are `stale` cannot catch up any more, and are being made
    anew. `waiting` are the views that have work although nothing came; `news` says whether those that stand still
    are others than before.
    """

    def __init__(
        self,
        declared: Declared,
        last: TickRecord | None,
        before: Mapping[str, Any] | None,
        attempts: Attempts,
        *,
        oldest: int,
        stale: Collection[str] = (),
    ) -> None:
        self._oldest = oldest
        self._stale = stale
        self._declared = declared
        self._last = last
        self._filled = before or {}
        self._attempts = attempts
        stopped = suspended(last.detail) if last is not None and before is not None else {}
        self._before = {
            name: each
            for name, each in stopped.items()
            if name in declared.views and declared.views[name].number == each.number
        }
        self.suspended: dict[str, Suspended] = {}
        self.switched: dict[str, Relation] = {}

    @property
    def waiting(self) -> list[str]:
        """Views that are to be filled, or to catch up, or to be replaced, and may be now."""
        numbers = {name: view.number for name, view in self._declared.views.items()}
        behind = [n for n in numbers if self._is_new(n) or n in self._before]
        due = [n for n in behind if self._attempts.is_due(numbers[n]) and not self._before.get(n, _NOTHING).because]
        return due + [n for n in self._declared.switching if n + NEXT not in behind]

    @property
    def news(self) -> bool:
        """Whether other views stand still than before, or for other reasons, or some were replaced."""
        return bool(self.switched) or self.suspended != self._before

    def compute(
        self, computation: Computation, plans: Mapping[str, Plan], threads: ThreadPoolExecutor, tick: int
    ) -> None:
        """Compute them all in threads."""
        jobs: dict[str, Future[Suspended | None]] = {}
        for name, plan in plans.items():
            before = {each: jobs[each] for each in (*plan.relations, name + NEXT) if each in jobs}
            jobs[name] = threads.submit(self._view, computation, name, plan, before, tick)
        failed = [error for job in jobs.values() if (error := job.exception()) is not None]
        if failed:
            raise failed[0]
        self.suspended = {
            name: found
            for name, job in jobs.items()
            if (found := job.result()) is not None and name.removesuffix(NEXT) not in self.switched
        }

    def _view(
        self,
        computation: Computation,
        name: str,
        plan: Plan,
        before: Mapping[str, Future[Suspended | None]],
        tick: int,
    ) -> Suspended | None:
        """Compute one after those before it; why it stands still, if it does."""
        stopped = [each for each, job in before.items() if job.result() is not None]
        if name in self._declared.switching and name + NEXT not in stopped:
            self.switched[name] = computation.switch(name, name + NEXT, tick)
            return None
        if inputs := [each for each in stopped if each != name + NEXT]:
            cause = before[inputs[0]].result()
            assert cause is not None
            return replace(cause, **self._last_good(name), because=cause.because or inputs[0])
        number = self._declared.views[name].number
        known = self._before.get(name)
        if known is not None and name in self._stale:
            return known
        if known is not None and not known.because:
            if computation.moved(plan.relations):
                self._attempts.changed(number)
            if not self._attempts.is_due(number):
                return known
        started = time.monotonic()
        try:
            computation.view(name, plan, filling=self._is_new(name), since=_since(known))
        except EvaluationFailed as error:
            computation.discard(name)
            self._attempts.failed(number, computation.taken[name], time.monotonic() - started)
            return Suspended(**self._last_good(name), what=error.what, expression=error.where, row=error.row)
        self._attempts.succeeded(number)
        return None

    def _is_new(self, name: str) -> bool:
        return self._declared.relations[name].arrangement not in self._filled

    def _last_good(self, name: str) -> dict[str, Any]:
        """Which view it is, its last good tick, and what that had read of the log."""
        number, known = self._declared.views[name].number, self._before.get(name)
        if known is not None:
            return {"number": number, "since": known.since, "cut": known.cut}
        if self._last is None or self._is_new(name):
            return {"number": number, "since": 0, "cut": {}}
        return {"number": number, "since": self._last.number, "cut": self._last.cut}

    def renamed(self, tick: int) -> list[Declaration]:
        """The declarations of the views that are replaced in this tick."""
        made = []
        for name in self.switched:
            old, new = self._declared.views[name], self._declared.views[name + NEXT]
            kept = ("schema", "key", "since", "before", "on_error")
            before = self._still_needed({"number": old.number, **{n: old.spec[n] for n in kept if n in old.spec}})
            spec = {each: value for each, value in new.spec.items() if each != "hold"}
            made.append(Declaration(name, "view", new.number, {**spec, "since": tick, "before": before}))
        return made

    def _still_needed(self, view: Mapping[str, Any]) -> dict[str, Any]:
        """A view that was replaced, and of those before it the ones that a kept version has."""
        if "before" not in view or view["since"] <= self._oldest:
            return {each: value for each, value in view.items() if each != "before"}
        return {**view, "before": self._still_needed(view["before"])}


_NOTHING = Suspended(0, 0)


def _since(known: Suspended | None) -> Since | None:
    return Since(known.since, Cut.from_dict(known.cut)) if known is not None and known.since else None


def anew(view: Declaration) -> dict[str, Any]:
    """The specification of the same view, to be made anew."""
    return {each: value for each, value in view.spec.items() if each not in {"since", "before"}}
