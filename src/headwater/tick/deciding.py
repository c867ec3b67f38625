"""Deciding: what there is to do for a tick. It looks, plans and compares; what it decides is done by the driver."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from headwater.catalog.amendment import Amendment
from headwater.catalog.catalog import Catalog
from headwater.catalog.view import ViewDeclaration
from headwater.errors import HeadwaterError
from headwater.log import Cut
from headwater.plan.planned import Planned, differs
from headwater.store import Faults, TickRecord
from headwater.tick.faults import as_told, is_the_pipelines
from headwater.tick.history import History, otherwise, shared_in
from headwater.tick.losses import without
from headwater.tick.recovery import Arrangements, Before, Recovery


class Planning(Protocol):
    """Whoever knows the plans of views."""

    @property
    def basis(self) -> object:
        """What plans depend on beside declarations and the state: another value whenever that is another."""
        ...

    def planned(self, view: ViewDeclaration, catalog: Catalog) -> Planned:
        """The plan of a declared view, without what is kept elsewhere."""
        ...

    def differs(self, view: ViewDeclaration, catalog: Catalog, arrangements: Mapping[str, Any]) -> str:
        """Why the state of a view is not of its plan; empty if it is, or there is none. Raises as `planned`."""
        ...


class Renewing(Protocol):
    """Whoever decides how views are made anew."""

    def renewal(
        self, view: ViewDeclaration, reason: str, catalog: Catalog, arrangements: Mapping[str, Any]
    ) -> Iterable[Amendment]:
        """How a view is made anew by its present plan, sharing what is of that plan; nothing if it is already.

        It is amended if it can go on as it is, since it has no rows yet.
        """
        ...

    def all_anew(self, catalog: Catalog) -> Iterable[Amendment]:
        """What views share from now on, since nothing of it is there any more."""
        ...


@dataclass(frozen=True)
class Decided:
    """What is to become of declarations before a tick, and what it goes on from.

    `before` is what counts of the state, None if nothing does. What is `stale` cannot catch up any more. Views that
    are `unable`, by their numbers, are not computed and say why; `faults` are to be told, by the same.
    """

    before: Arrangements | None
    stale: Collection[str] = ()
    amendments: tuple[Amendment, ...] = ()
    unable: Mapping[int, HeadwaterError] = field(default_factory=dict)
    faults: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Agreed:
    """What was known when the state of all views was of their plans, but for those that were `refused` one."""

    catalog: Catalog
    before: Arrangements
    basis: object
    faults: Mapping[int, str]
    refused: Mapping[int, HeadwaterError] = field(default_factory=dict)

    def holds(self, now: _Agreed) -> bool:
        """Whether nothing of that has changed, but for what ticks add to the state."""
        is_same = self.catalog is now.catalog and self.before is now.before
        return is_same and self.basis == now.basis and self.faults == now.faults


class Deciding:
    """Decides by one catalog, which whoever asks gives."""

    def __init__(
        self, history: History, recovery: Recovery, planning: Planning, renewing: Renewing, faults: Faults
    ) -> None:
        self._history = history
        self._recovery = recovery
        self._planning = planning
        self._renewing = renewing
        self._faults = faults
        self._agreed: _Agreed | None = None
        self._left: tuple[Catalog, Arrangements, Collection[str]] | None = None

    def declarations(
        self, catalog: Catalog, last: TickRecord | None, kept: Collection[int], found: Before
    ) -> Decided:
        """What is to be made anew: what cannot catch up, and what is not of the plan that it has now."""
        stale = self._history.stale(catalog, last, kept)
        again = tuple(self._history.begun_again(catalog, stale))
        for each in again:
            catalog = each.on(catalog)
        before: Arrangements | None = None
        if found.found is not None:
            before = self._history.trusted(catalog, without(found.found, found.lost), last, stale)
        now = None if before is None else _Agreed(catalog, before, self._planning.basis, self._faults.known())
        if now is not None and self._agreed is not None and self._agreed.holds(now):
            return Decided(now.before, stale, again, self._agreed.refused)
        self._agreed = None
        if before is not None and self._history.is_torn(catalog, before, last):
            hint = "restore the pipeline from a backup"
            self._recovery.check_rebuildable(catalog, "something that views share is missing", hint)
            now = None
        if now is None:
            return Decided(None, stale, (*again, *self._renewing.all_anew(catalog)))
        return self._renewed(now, stale, again)

    def _renewed(self, now: _Agreed, stale: Collection[str], again: tuple[Amendment, ...]) -> Decided:
        """That views whose state is not of their plan are made anew.

        All that is of its plan stays so, as ticks add to it, until something else is declared, or the state is read
        anew, or what plans depend on changes: so it is not asked again before.
        """
        catalog, before = now.catalog, now.before
        amendments, unable, faults = [*again], dict[int, HeadwaterError](), dict[int, str]()
        refused: dict[int, HeadwaterError] = {}
        why = partial(self._differs, now, refused)
        for name, reason in otherwise(catalog, before, why).items():
            view = catalog.views[name]
            if not self._history.is_repeatable(catalog, name):
                faults[view.number] = reason
                msg = f"{reason}, and it cannot be made anew: the log has lost its beginning"
                unable[view.number] = HeadwaterError(msg, where=name, hint="drop the view and declare it anew")
                continue
            try:
                made = list(self._renewing.renewal(view, reason, catalog, before))
            except Exception as error:  # as by a function that is not declared; later it still has to be
                if is_the_pipelines(error):
                    raise
                faults[view.number] = reason
                unable[view.number] = as_told(error)
                continue
            if not any(each.how == "amend" for each in made):
                unable[view.number] = HeadwaterError(f"{reason}; it is being made anew", where=name)
            for each in made:
                catalog = each.on(catalog)
            amendments += made
        if not amendments and not unable:
            self._agreed = replace(now, refused=refused)
        return Decided(before, stale, tuple(amendments), refused | unable, faults)

    def _differs(self, now: _Agreed, refused: dict[int, HeadwaterError], view: ViewDeclaration) -> str:
        """Why the state of a view is not of its plan; empty if it is. That it has no plan is noted in `refused`."""
        if not view.number:  # it is to be declared only now
            return ""
        try:
            return now.faults.get(view.number) or self._planning.differs(view, now.catalog, now.before)
        except Exception as error:
            if is_the_pipelines(error):
                raise
            refused[view.number] = as_told(error)
            return ""

    def left(self, catalog: Catalog, found: Arrangements) -> Collection[str]:
        """What is shared by no view any more, and is in the state still."""
        if self._left is None or self._left[0] is not catalog or self._left[1] is not found:
            self._left = catalog, found, shared_in(found) - catalog.shared.keys()
        return self._left[2]

    def plan(self, view: ViewDeclaration, catalog: Catalog, before: Arrangements) -> Planned | HeadwaterError:
        """The plan by which a view is to be computed, or why it cannot be."""
        try:
            planned = self._planning.planned(view, catalog)
        except Exception as error:
            if is_the_pipelines(error):
                raise
            return as_told(error)
        if reason := differs(planned.fingerprints, before):  # what was kept of the plan could not be used after all
            self._agreed = None
            return HeadwaterError(f"{reason}; it is being made anew", where=view.name)
        return planned


def known_cut(last: TickRecord | None, topics: Mapping[str, int]) -> Cut:
    """The last cut, without topics that were dropped since, also if others have their names now."""
    if last is None:
        return Cut()
    cut, known = Cut.from_dict(last.cut), last.detail["topics"]
    ends = {place: end for place, end in cut.ends.items() if topics.get(place[0]) == known.get(place[0])}
    return Cut(cut.sequence, ends, cut.rows)
