"""Renewing: views that are to be made anew, because their plan, a function or what they share is another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from headwater.catalog.amendment import Amendment
from headwater.catalog.catalog import Catalog
from headwater.catalog.view import ViewDeclaration
from headwater.errors import ViewRefused
from headwater.pipeline.planning import Planning
from headwater.pipeline.replacing import check_unread, types_of
from headwater.pipeline.sharing import Sharing
from headwater.pipeline.views import described
from headwater.plan.arrangement_key import arrangement_key
from headwater.plan.operators import Keyed
from headwater.store import Faults
from headwater.tick.faults import refusing
from headwater.tick.history import otherwise

_ASKED = "it was replaced by itself"


class Renewing:
    """Decides how views are made anew; what it decides is done by whoever asked. It changes nothing."""

    def __init__(self, planning: Planning, sharing: Sharing, faults: Faults) -> None:
        self._planning = planning
        self._sharing = sharing
        self._faults = faults

    def renewal(
        self, view: ViewDeclaration, reason: str, catalog: Catalog, arrangements: Mapping[str, Any]
    ) -> list[Amendment]:
        """How a view is made anew by its present plan, sharing what is of that plan; nothing if it is already.

        What is to replace another is begun again; what has no rows yet is planned anew, and can go on as it is.
        """
        if not view.is_candidate and catalog.candidate(view.name) is not None:
            return []
        again = self._again(view, catalog, arrangements)
        if view.is_candidate:
            return [Amendment("forget", view), Amendment("declare", again.as_candidate(reason))]
        if view.state not in arrangements:
            return [Amendment("amend", again)]
        return [Amendment("declare", again.as_candidate(reason))]

    def rebuilt(
        self, view: ViewDeclaration, catalog: Catalog, arrangements: Mapping[str, Any]
    ) -> Iterator[Amendment]:
        """How a view is made anew on demand, with those that count on that no row of it ever disappears.

        It takes in the columns that topics have come to have.
        """
        if view.state not in arrangements:
            return
        found = otherwise(catalog, arrangements, lambda each: _ASKED if each.name == view.name else "")
        for name, reason in found.items():
            again = catalog.views[name]
            if name == view.name:  # whoever asks takes in the columns that have come
                again = replace(again, seen=catalog.alterations(view.inputs))
            for amendment in self.renewal(again, reason, catalog, arrangements):
                catalog = amendment.on(catalog)
                yield amendment

    def all_anew(self, catalog: Catalog) -> list[Amendment]:
        """What views share from now on, since nothing of it is there any more: plans may have become others."""
        known: dict[str, Keyed] = {}
        made: list[Amendment] = []
        self._planning.forget()
        for view in catalog.views.values():
            with suppress(ViewRefused), refusing(view.name):  # else it will be suspended
                plan, schema = self._planning.again(view, catalog)
                appends_only, lines = described(plan)
                now = replace(view, schema=schema, by=arrangement_key(plan), appends_only=appends_only, plan=lines)
                now = self._sharing.among(now, plan, known, catalog)
                catalog = catalog.with_view(now)
                made.append(Amendment("amend", now))
        return made

    def _again(self, view: ViewDeclaration, catalog: Catalog, arrangements: Mapping[str, Any]) -> ViewDeclaration:
        """The same view by the plan that it has now."""
        candidates = {name: catalog.candidate(name) for name in view.steady}
        steady = tuple(name for name, each in candidates.items() if each is None or each.appends_only)
        view = replace(view, steady=steady)
        plan, schema = self._planning.again(view, catalog)
        if types_of(schema) != types_of(view.schema):  # a function returns something else, or a column is wider
            check_unread(view, schema, catalog)
            view = replace(view, schema=schema)
        view = replace(view, reads={name: columns for name, columns in plan.reads if name in view.reads})
        appends_only, lines = described(plan)
        again = replace(view, by=arrangement_key(plan), appends_only=appends_only and view.appends_only, plan=lines)
        known: dict[str, Keyed] = {}
        if not view.sets_aside:
            distrusted = view.shared.keys() if view.number in self._faults.known() else frozenset()
            known = self._sharing.known(plan, catalog, arrangements, distrusted)
        return self._sharing.among(again, plan, known, catalog)
