"""The views of one tick: each computed after those it reads; one that fails is suspended, the others go on."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from headwater.log import Cut
from headwater.operators.failing import EvaluationFailed
from headwater.read.relation import Relation
from headwater.read.suspended import Suspended
from headwater.store import NEXT, SHARED, Declaration, TickRecord
from headwater.tick.computation import Computation, Since
from headwater.tick.past import Declared, stopped
from headwater.tick.relations import arrangement_of
from headwater.views.sharing import Split

_MANY = 100_000
_REST = 4
"""An attempt with many rows is repeated only after several times as long as it took."""


class Attempts:
    """When views that failed are tried again: when an input has changed, and if it is much, after a while.

    It lives as long as the driver: another process may have other functions, and tries once in any case.
    """

    def __init__(self) -> None:
        self._failed: dict[str, float] = {}
        self._changed: set[str] = set()

    def failed(self, arrangement: str, rows: int, seconds: float) -> None:
        """Note that computing a view from so many rows failed after so many seconds."""
        self._changed.discard(arrangement)
        self._failed[arrangement] = time.monotonic() + (_REST * seconds if rows > _MANY else 0)

    def succeeded(self, arrangement: str) -> None:
        """Note that a view is well."""
        self._changed.discard(arrangement)
        self._failed.pop(arrangement, None)

    def forget(self) -> None:
        """Try all of them again."""
        self._failed.clear()

    def changed(self, arrangement: str) -> None:
        """Note that an input of a view has changed since it failed."""
        self._changed.add(arrangement)

    def is_due(self, arrangement: str) -> bool:
        """Whether computing it may succeed now."""
        rest = self._failed.get(arrangement)
        return rest is None or (arrangement in self._changed and time.monotonic() >= rest)


class Compute(Protocol):
    """Computes a view, or what is shared."""

    def __call__(self, *, filling: bool, since: Since | None) -> None:
        """All of it, or what changed in this tick, or what changed since one."""
        ...


class Views:
    """What one tick does with the views, and with what they share.

    `oldest` is the oldest tick that is kept. What is `stale` cannot catch up any more, and is being made anew.
    `waiting` is what has work although nothing came; `news` says whether what stands still is other than before.
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
        self._before = {
            name: each
            for name, each in stopped(last if before is not None else None).items()
            if self._is_known(name, each)
        }
        self._now: dict[str, Suspended] = {}
        self._shared: list[str] = []
        self.switched: dict[str, Relation] = {}

    def _is_known(self, name: str, each: Suspended) -> bool:
        """Whether it is still the same that stood still."""
        if name in self._declared.shared:
            return not each.since or name in self._filled
        return name in self._declared.views and self._declared.views[name].number == each.number

    @property
    def suspended(self) -> dict[str, Suspended]:
        """The views that stand still."""
        return {name: each for name, each in self._now.items() if name in self._declared.views}

    @property
    def shared(self) -> dict[str, Suspended | None]:
        """What is shared, and why it stands still if it does."""
        return {name: self._now.get(name) for name in self._shared}

    @property
    def waiting(self) -> list[str]:
        """What is to be filled, or to catch up, or to be replaced, and may be now."""
        behind = [name for name in self._declared.views if self._is_new(name) or name in self._before]
        behind += [name for name in self._declared.shared if self._is_new(name) or name in self._before]
        known = [name for name in behind if not self._before.get(name, _NOTHING).because]
        due = [name for name in known if self._attempts.is_due(self._arrangement(name))]
        return due + [name for name in self._declared.switching if name + NEXT not in behind]

    @property
    def news(self) -> bool:
        """Whether other views stand still than before, or for other reasons, or some were replaced."""
        return bool(self.switched) or self._now != self._before

    def compute(
        self, computation: Computation, splits: Mapping[str, Split], threads: ThreadPoolExecutor, tick: int
    ) -> None:
        """Compute them all in threads."""
        jobs: dict[str, Future[Suspended | None]] = {}

        def begin(name: str, relations: Sequence[str], compute: Compute) -> None:
            before = {each: jobs[each] for each in (*relations, name + NEXT) if each in jobs}
            jobs[name] = threads.submit(self._one, computation, name, relations, before, compute, tick)

        for name, split in splits.items():
            for each, keyed in split.shared.items():
                if each not in jobs:
                    begin(each, keyed.relations, partial(computation.share, each))
            begin(name, split.relations, partial(computation.view, name, split))
        failed = [error for job in jobs.values() if (error := job.exception()) is not None]
        if failed:
            raise failed[0]
        self._shared = [name for name in jobs if name in self._declared.shared]
        self._now = {
            name: found
            for name, job in jobs.items()
            if (found := job.result()) is not None and name.removesuffix(NEXT) not in self.switched
        }

    def _one(
        self,
        computation: Computation,
        name: str,
        relations: Sequence[str],
        before: Mapping[str, Future[Suspended | None]],
        compute: Compute,
        tick: int,
    ) -> Suspended | None:
        """Compute one after those before it; why it stands still, if it does."""
        still = [each for each, job in before.items() if job.result() is not None]
        if name in self._declared.switching and name + NEXT not in still:
            self.switched[name] = computation.switch(name, name + NEXT, tick)
            return None
        if inputs := [each for each in still if each != name + NEXT]:
            cause = before[inputs[0]].result()
            assert cause is not None
            origin = inputs[0] if cause.because.startswith(SHARED) else cause.because or inputs[0]
            return replace(cause, **self._last_good(name), because=origin)
        known, arrangement = self._before.get(name), self._arrangement(name)
        if known is not None and name in self._stale:
            return known
        if known is not None and not known.because:
            if computation.moved(relations):
                self._attempts.changed(arrangement)
            if not self._attempts.is_due(arrangement):
                return known
        started = time.monotonic()
        try:
            compute(filling=self._is_new(name), since=_since(known))
        except EvaluationFailed as error:
            computation.discard(name)
            self._attempts.failed(arrangement, computation.taken[name], time.monotonic() - started)
            return Suspended(**self._last_good(name), what=error.what, expression=error.where, row=error.row)
        self._attempts.succeeded(arrangement)
        return None

    def _arrangement(self, name: str) -> str:
        return name if name in self._declared.shared else arrangement_of(self._declared.relations[name])

    def _is_new(self, name: str) -> bool:
        return self._arrangement(name) not in self._filled

    def _last_good(self, name: str) -> dict[str, Any]:
        """Which view it is, its last good tick, and what that had read of the log."""
        known = self._before.get(name)
        number = self._declared.views[name].number if name in self._declared.views else 0
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
            kept = ("schema", "key", "by", "since", "before", "on_error")
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
