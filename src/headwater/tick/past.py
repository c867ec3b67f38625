"""What was before a tick: what ticks changed, and which suspended views can still catch up with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.log import Cut, Log
from headwater.read.relation import Relation
from headwater.read.suspended import Suspended, suspended
from headwater.state.manifest import CHANGES, Manifest
from headwater.state.run import Run
from headwater.store import NEXT, SHARED, Declaration, Store, TickRecord
from headwater.tick.inputs import is_complete

SHARES = "shared"
"""In a tick's detail: what is shared and was kept up by it, and why not if it stood still."""


@dataclass(frozen=True)
class Declared:
    """What the store has declared: topics and views, the views in an order in which each follows its inputs.

    `switching` are the views that are to be replaced as soon as their candidates are filled; `shared` is what views
    share.
    """

    relations: Mapping[str, Relation]
    views: Mapping[str, Declaration]
    switching: frozenset[str] = frozenset()
    shared: Mapping[str, Shared] = field(default_factory=dict)

    def inputs(self, name: str) -> list[Relation]:
        """The relations that a view reads, or something shared; also through what is shared."""
        names: Sequence[str] = ()
        if name in self.shared:
            names = self.shared[name].reads
        elif name in self.views:
            names = self.views[name].spec["inputs"]
        nested = [relation for each in names if each in self.shared for relation in self.inputs(each)]
        return [*(self.relations[each] for each in names if each in self.relations), *nested]

    def shares(self, name: str) -> Collection[str]:
        """What a view, or something shared, has of what is shared."""
        if name in self.shared:
            return [each for each in self.shared[name].reads if each in self.shared]
        return self.views[name].spec.get("shares", {}).values() if name in self.views else ()

    def users(self, name: str) -> Collection[str]:
        """The views that need something shared; of a view, that view."""
        return self.shared[name].views if name in self.shared else (name,)


@dataclass(frozen=True)
class Shared:
    """What `views` share, and what it reads itself."""

    views: tuple[str, ...]
    reads: tuple[str, ...]


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
            for _, detail in self._store.details(name + CHANGES, after=since, until=until)
            for run in Manifest.from_dict(detail).runs
        ]

    def rows(self, arrangement: str, tick: int) -> tuple[Run, ...]:
        """The runs that an arrangement had at a tick."""
        detail = self._store.arrangements(tick).get(arrangement)
        return Manifest.from_dict(detail).runs if detail else ()

    def stale(self, last: TickRecord | None, kept: Collection[int]) -> list[str]:
        """What stands still and cannot catch up with the ticks that are kept: views, and what views share.

        The version that it would go on from has expired, or something that it shares is stale.
        """
        declared = self._declared()
        still = {name: each for name, each in stopped(last).items() if _is_declared(declared, name, each)}
        found = {name for name, each in still.items() if each.since and last and each.since not in kept}
        while more := {n for n, each in still.items() if each.since and found & {*declared.shares(n)}} - found:
            found |= more
        return sorted(found)

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

    def is_torn(self, arrangements: Mapping[str, Any], last: TickRecord | None) -> bool:
        """Whether a view is well, but something that it shares is not there."""
        declared, still = self._declared(), stopped(last)
        return any(
            declared.relations[name].arrangement in arrangements
            and any(each not in arrangements for each in view.spec.get("shared", {}))
            for name, view in declared.views.items()
            if name not in still
        )

    def _is_repeatable(self, name: str) -> bool:
        """Whether the log still has all that is read of it, also by the views that would have to be made anew."""
        declared = self._declared()
        relations = [each for user in declared.users(name) for each in declared.inputs(user)]
        return all(is_complete(each, self._log, Cut()) for each in relations if each.kind in {"stream", "log"})

    def needed(self) -> tuple[set[int], set[int]]:
        """The last good ticks of what stands still: if it cannot be made anew, and if it can."""
        declared = self._declared()
        still = {n: each for n, each in stopped(self._store.last_tick()).items() if _is_declared(declared, n, each)}
        always = {each.since for name, each in still.items() if not self._is_repeatable(name)}
        return always, {each.since for each in still.values()} - always


def _is_declared(declared: Declared, name: str, still: Suspended) -> bool:
    view = declared.views.get(name)
    return name in declared.shared or (view is not None and view.number == still.number)


def _anew(view: Declaration) -> dict[str, Any]:
    """The specification of the same view, to be made anew."""
    return {each: value for each, value in view.spec.items() if each not in {"since", "before"}}
