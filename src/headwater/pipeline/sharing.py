"""Sharing: which inputs of a view's operators are kept once, for it and others."""

from __future__ import annotations

from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any

from headwater.catalog.catalog import Catalog
from headwater.catalog.names import is_shared, new_shared
from headwater.catalog.view import VIEW, ViewDeclaration
from headwater.errors import HeadwaterError
from headwater.log import Cut, Log
from headwater.pipeline.planning import Planning
from headwater.plan.engine import Engine
from headwater.plan.operators import Keyed, Plan
from headwater.plan.sharing import is_aggregate, is_same, relation_read, split
from headwater.state.manifest import PLAN
from headwater.tick.inputs import is_complete


class Sharing:
    """Decides what a view counts on and shares, by one catalog and by what is kept; it changes nothing.

    What a view sets aside is its own, so one that does shares nothing.
    """

    def __init__(self, engine: Engine, planning: Planning, log: Log) -> None:
        self._engine = engine
        self._planning = planning
        self._log = log

    def new(
        self, view: ViewDeclaration, plan: Plan, catalog: Catalog, arrangements: Mapping[str, Any]
    ) -> ViewDeclaration:
        """A view that is declared now: what it counts on and knows of what it reads, and what it shares."""
        found = [each for each in map(catalog.find, plan.inputs) if each is not None]
        steady = (each.name for each in found if each.kind == VIEW and catalog.appends_only(each.name))
        topics = {each.name for each in found if each.topic is not None}
        reads = {name: columns for name, columns in plan.reads if name in topics}
        view = replace(view, steady=tuple(steady), reads=reads, seen=catalog.alterations(plan.inputs))
        return self.among(view, plan, {} if view.sets_aside else self.known(plan, catalog, arrangements), catalog)

    def among(
        self, view: ViewDeclaration, plan: Plan, known: dict[str, Keyed], catalog: Catalog
    ) -> ViewDeclaration:
        """A view with what it shares, given what is known to be shared; what is not known yet becomes known.

        For each input of an operator that is the table that has its rows, or the name under which they are shared.
        So for aggregates that are needed more than once.
        """
        if view.sets_aside:
            return replace(view, shares={}, shared={})
        chosen: dict[str, str] = {}
        aggregates: list[Keyed] = []
        same = self._engine.same

        def note(state: str, keyed: Keyed) -> None:
            if is_aggregate(state):
                aggregates.append(keyed)

        def choose(state: str, keyed: Keyed) -> str | None:
            if is_aggregate(state) and sum(is_same(each, keyed, same) for each in aggregates) <= 1:
                return None
            alike = (name for name, each in known.items() if is_same(each, keyed, same))
            name = chosen[state] = _table(keyed, catalog) or next(alike, None) or new_shared()
            if is_shared(name):
                known.setdefault(name, keyed)
            return name

        split(plan, note)
        made = split(plan, choose)
        return replace(view, shares=chosen, shared={name: each.relations for name, each in made.shared.items()})

    def known(
        self, plan: Plan, catalog: Catalog, arrangements: Mapping[str, Any], distrusted: Set[str] = frozenset()
    ) -> dict[str, Keyed]:
        """What is shared by views that read what a plan reads, if what is kept of it is of its plan, and trusted.

        Nothing if one of these has lost its beginning: others have read more of it than a new view may.
        """
        inputs = {*plan.inputs}
        found: dict[str, Keyed] = {}
        streams = [each for name in inputs if (each := catalog.find(name)) and each.kind in {"stream", "log"}]
        if not all(is_complete(each, self._log, Cut()) for each in streams):
            return found
        for view in catalog.views.values():
            if inputs.intersection(view.inputs):
                with suppress(HeadwaterError):  # one that cannot be planned in this process
                    planned = self._planning.planned(view, catalog)
                    for name, keyed in planned.split.shared.items():
                        if name not in arrangements or not planned.shared[name].differs(
                            arrangements[name].get(PLAN)
                        ):
                            found[name] = keyed
        return {name: each for name, each in found.items() if name not in distrusted}


def _table(keyed: Keyed, catalog: Catalog) -> str | None:
    """The table that has the rows of an input by its key."""
    read = relation_read(keyed)
    relation = catalog.find(read[0]) if read is not None else None
    if read is None or relation is None or relation.kind != "table":
        return None
    return relation.name if relation.key and relation.key == read[1] else None
