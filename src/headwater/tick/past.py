"""What was before a tick: what ticks changed, and which suspended views can still catch up with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.log import Cut, Log
from headwater.read.relation import Relation
from headwater.read.suspended import Suspended, suspended
from headwater.state.manifest import Manifest
from headwater.state.run import Run
from headwater.store import NEXT, Declaration, Store, TickRecord
from headwater.tick.inputs import is_complete
from headwater.tick.relations import hashed
from headwater.views.sharing import SHARED

SHARES = "shared"
"""In a tick's detail: what is shared and was kept up by it, and why not if it stood still."""


@dataclass(frozen=True)
class Declared:
    """What the store has declared: topics and views, the views in an order in which each follows its inputs.

    `switching` are the views that are to be replaced as soon as their candidates are filled; `shared` has what
    views share, with the names of those views.
    """

    relations: Mapping[str, Relation]
    views: Mapping[str, Declaration]
    switching: frozenset[str] = frozenset()
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def inputs(self, name: str) -> list[Relation]:
        """What a view reads; of something shared, what the views read that share it."""
        users = self.shared.get(name, (name,))
        names = dict.fromkeys(each for user in users for each in self.views[user].spec["inputs"])
        return [self.relations[each] for each in names if each in self.relations]


def stopped(last: TickRecord | None) -> dict[str, Suspended]:
    """What stood still at a tick: views, and what views share."""
    if last is None:
        return {}
    shared = {name: Suspended(**each) for name, each in last.detail.get(SHARES, {}).items() if each is not None}
    return suspended(last.detail) | shared


class Past:
    """The ticks that are kept."""

    def __init__(self, store: Store, log: Log, declared: Callable[[], Declared]) -> None:
        self._store = store
        self._log = log
        self._declared = declared

    def changes(self, relation: Relation | str, after: int) -> list[Run]:
        """The runs of what ticks after a given one changed in a relation, or in what is shared under a name."""
        last = self._store.last_tick()
        assert last is not None
        if isinstance(relation, str):
            spans = [(relation, after, last.number)]
        else:
            spans = [(str(each.arrangement), since, end) for each, since, end in relation.spans(after, last.number)]
        return [
            run
            for name, since, until in spans
            for _, detail in self._store.details(f"{name}/changes", after=since, until=until)
            for run in Manifest.from_dict(detail).runs
        ]

    def rows(self, arrangement: str, tick: int) -> tuple[Run, ...]:
        """The runs that an arrangement had at a tick."""
        detail = self._store.arrangements(tick).get(arrangement)
        return Manifest.from_dict(detail).runs if detail else ()

    def stale(self, last: TickRecord | None, oldest: int) -> list[str]:
        """What stands still and cannot catch up with what is kept: views, and what views share.

        Some of what they missed has expired, or one that they read was replaced by one that is arranged otherwise.
        """
        found = []
        declared = self._declared()
        for name, each in stopped(last).items():
            if last is None or not each.since or not _is_declared(declared, name, each):
                continue
            spans = [r.spans(each.since, last.number) for r in declared.inputs(name)]
            arranged = [{hashed(part) for part, _, _ in parts} for parts in spans]
            if each.since < oldest or any(len(several) > 1 for several in arranged):
                found.append(name)
        return found

    def renew(self, stale: Iterable[str]) -> None:
        """Have stale views replaced by themselves, made anew, unless the log has lost its beginning."""
        for name in stale:
            view, base = self._store.find(name), name.removesuffix(NEXT)
            if view is None or not self._is_repeatable(name):
                continue
            if name != base:  # what is to replace another is simply begun again
                self._store.forget(view)
            if self._store.find(base + NEXT) is None:
                self._store.declare(base + NEXT, "view", _anew(view))

    def trusted(
        self, arrangements: Mapping[str, Any], last: TickRecord | None, stale: Collection[str]
    ) -> dict[str, Any]:
        """Arrangements but for what is shared and was not kept up, which is made anew."""
        noted = last.detail.get(SHARES, {}) if last is not None else {}
        still = stopped(last)
        kept = {
            name
            for name in noted
            if name not in still or (still[name].since and not (name in stale and self._is_repeatable(name)))
        }
        return {
            name: detail
            for name, detail in arrangements.items()
            if not name.startswith(SHARED) or name.partition("/")[0] in kept
        }

    def _is_repeatable(self, name: str) -> bool:
        """Whether the log still has all that is read of it."""
        streams = [each for each in self._declared().inputs(name) if each.kind in {"stream", "log"}]
        return all(is_complete(each, self._log, Cut()) for each in streams)

    def unrepeatable(self) -> set[int]:
        """The last good ticks of what stands still and cannot be made anew."""
        declared = self._declared()
        still = {n: each for n, each in stopped(self._store.last_tick()).items() if _is_declared(declared, n, each)}
        return {each.since for name, each in still.items() if not self._is_repeatable(name)}


def _is_declared(declared: Declared, name: str, still: Suspended) -> bool:
    view = declared.views.get(name)
    return name in declared.shared or (view is not None and view.number == still.number)


def _anew(view: Declaration) -> dict[str, Any]:
    """The specification of the same view, to be made anew."""
    return {each: value for each, value in view.spec.items() if each not in {"since", "before"}}
