"""History: what was before a tick. What ticks changed, and which suspended views can still catch up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from headwater.catalog.amendment import Amendment
from headwater.catalog.catalog import Catalog
from headwater.catalog.names import is_shared, owner_of
from headwater.catalog.relation import Relation
from headwater.catalog.suspension import Suspension, all_suspensions, left_by, shared_by
from headwater.catalog.view import ViewDeclaration
from headwater.log import Cut, Log
from headwater.state.manifest import CHANGES, Manifest
from headwater.state.run import Run
from headwater.store import Store, TickRecord
from headwater.tick.inputs import is_complete


class History:
    """The ticks that are kept."""

    def __init__(self, store: Store, log: Log) -> None:
        self._store = store
        self._log = log

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

    def stale(self, catalog: Catalog, last: TickRecord | None, kept: Collection[int]) -> list[str]:
        """What is suspended and cannot catch up with the ticks that are kept: views, and what views share.

        The version that it would go on from has expired, or something that it shares is stale.
        """
        known = {name: each for name, each in suspensions(last).items() if _is_declared(catalog, name, each)}
        found = {name for name, each in known.items() if each.since and last and each.since not in kept}
        while more := {n for n, each in known.items() if each.since and found & {*catalog.shares(n)}} - found:
            found |= more
        return sorted(found)

    def begun_again(self, catalog: Catalog, stale: Iterable[str]) -> Iterator[Amendment]:
        """That stale views are replaced by themselves, made anew, unless the log has lost its beginning."""
        for name in stale:
            view = catalog.views.get(name)
            if view is None or not self.is_repeatable(catalog, name):
                continue
            if view.is_candidate:  # what is to replace another is simply begun again
                yield Amendment("forget", view)
            if view.is_candidate or catalog.candidate(name) is None:
                yield Amendment("declare", view.as_candidate())

    def trusted(
        self, catalog: Catalog, arrangements: Mapping[str, Any], last: TickRecord | None, stale: Collection[str]
    ) -> Mapping[str, Any]:
        """Arrangements but for what is shared and was not kept up, which is made anew; all of them if all was."""
        if last is None:
            return arrangements
        gone = left_by(last.detail, lambda: shared_in(arrangements)) | {
            name
            for name, why in shared_by(last.detail).items()
            if not why.since or (name in stale and self.is_repeatable(catalog, name))
        }
        if not gone:
            return arrangements
        return {name: detail for name, detail in arrangements.items() if owner_of(name) not in gone}

    def is_torn(self, catalog: Catalog, arrangements: Mapping[str, Any], last: TickRecord | None) -> bool:
        """Whether a view is well, but something that it shares is not there."""
        stopped = suspensions(last)
        return any(
            view.state in arrangements and any(each not in arrangements for each in view.shared)
            for name, view in catalog.views.items()
            if name not in stopped
        )

    def is_repeatable(self, catalog: Catalog, name: str) -> bool:
        """Whether the log still has all that is read of it, also by the views that would have to be made anew."""
        relations = [each for user in catalog.users(name) for each in catalog.inputs(user)]
        return all(is_complete(each, self._log, Cut()) for each in relations if each.kind in {"stream", "log"})

    def needed(self, catalog: Catalog) -> tuple[set[int], set[int]]:
        """The last good ticks of what is suspended: if it cannot be made anew, and if it can."""
        found = suspensions(self._store.last_tick())
        known = {name: each for name, each in found.items() if _is_declared(catalog, name, each)}
        always = {each.since for name, each in known.items() if not self.is_repeatable(catalog, name)}
        return always, {each.since for each in known.values()} - always


def otherwise(
    catalog: Catalog, arrangements: Mapping[str, Any], why: Callable[[ViewDeclaration], str]
) -> dict[str, str]:
    """The views whose state is not of the plan that they have now, by name, with the reason that `why` gives.

    So are those that count on that no row of such a view ever disappears: some of its rows will.
    """
    found: dict[str, str] = {}
    for name, view in catalog.views.items():
        reason = why(view)
        gone = [each for each in view.steady if each in found]
        if not reason and gone and view.state in arrangements:
            reason = f"it counts on the rows of {gone[0]}, which is made anew"
        if reason:
            found[name] = reason
    return found


def _is_declared(catalog: Catalog, name: str, suspension: Suspension) -> bool:
    view = catalog.views.get(name)
    return name in catalog.shared or (view is not None and view.number == suspension.number)


def shared_in(arrangements: Iterable[str]) -> set[str]:
    """What of these is shared."""
    return {owner_of(name) for name in arrangements if is_shared(name)}


def suspensions(last: TickRecord | None) -> dict[str, Suspension]:
    """What was suspended at a tick: views, and what views share."""
    return {} if last is None else all_suspensions(last.detail)
