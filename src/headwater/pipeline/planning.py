"""Planning: the plans of views, made by Spark from their SQL, or found as some process has kept them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from headwater.catalog.catalog import Catalog
from headwater.catalog.view import VIEW, ViewDeclaration
from headwater.errors import HeadwaterError, ViewRefused
from headwater.pipeline.plans import Plans
from headwater.pipeline.resolver import Resolver
from headwater.plan.engine import Engine
from headwater.plan.fingerprint import Fingerprint
from headwater.plan.function import Udf
from headwater.plan.operators import Plan
from headwater.plan.planned import Planned, differs
from headwater.plan.sharing import split
from headwater.schema import Column, Schema
from headwater.tick.faults import refusing

Columns = Mapping[str, tuple[Column, ...]]
"""What a view names of topics that were altered."""


class _Known(NamedTuple):
    """A plan, and of which columns it is."""

    planned: Planned
    columns: Columns


class Planning:
    """Plans by one catalog at a time, which whoever asks gives. Remembers the plans of declared views."""

    def __init__(self, engine: Engine, plans: Plans) -> None:
        self._engine = engine
        self._plans = plans
        self._known: dict[int, _Known] = {}
        self._refused: dict[int, tuple[HeadwaterError, Columns]] = {}
        self._functions: Mapping[str, Udf] = {}

    @property
    def basis(self) -> object:
        """What the plans of the same views depend on, beside their inputs, that may change while it lives."""
        return self._engine.functions

    def plan(
        self,
        name: str,
        sql: str,
        catalog: Catalog,
        changing: Mapping[str, Schema] | None = None,
        seen: Mapping[str, int] | None = None,
    ) -> tuple[Plan, Schema]:
        """The plan of a view that is to be declared, and its columns; `ViewRefused` if it cannot be.

        Of views in `changing` it is assumed that rows can disappear, of topics what was `seen` of them.
        """
        plan, schema = self._engine.plan(name, sql, Resolver(catalog, changing, seen=seen))
        self._engine.check(name, plan)
        return plan, schema

    def again(self, view: ViewDeclaration, catalog: Catalog) -> tuple[Plan, Schema]:
        """The plan of a declared view and its columns, on what was assumed when it was declared."""
        with refusing(view.name):
            return self._engine.plan(view.base, view.sql, Resolver.as_declared(view, catalog))

    def planned(self, view: ViewDeclaration, catalog: Catalog) -> Planned:
        """The plan of a declared view, without what is kept elsewhere; `ViewRefused` if it has none now."""
        found = self._found(view, catalog)
        if found is None:
            try:
                with refusing(view.name):
                    found = self._opened(view, catalog)
            except ViewRefused as error:
                self._refused[view.number] = error, _columns(view, catalog)
                raise
        return found

    def differs(self, view: ViewDeclaration, catalog: Catalog, arrangements: Mapping[str, Any]) -> str:
        """Why the state of a view is not of its plan; empty if it is, or there is none. Raises as `planned`."""
        found = self._found(view, catalog)
        kept = self._plans.fingerprints(view, catalog, self._engine) if found is None else found.fingerprints
        return differs(kept or self.planned(view, catalog).fingerprints, arrangements)

    def _found(self, view: ViewDeclaration, catalog: Catalog) -> Planned | None:
        """The plan of a view if it is known here already; an error if it is known that it has none."""
        if (functions := self._engine.functions) != self._functions:
            self._functions = functions
            self.forget()
        columns = _columns(view, catalog)
        if view.number in self._refused and self._refused[view.number][1] == columns:
            raise self._refused[view.number][0]
        known = self._known.get(view.number)
        if known is None or known.columns != columns or known.planned.shares != view.shares:
            return None  # another process may have built all again
        return known.planned

    def keep(self, view: ViewDeclaration, plan: Plan, catalog: Catalog) -> None:
        """Tick a view that was declared just now by the plan that it was declared with.

        Not if something that it reads was declared anew meanwhile, or another process may have begun to replace a
        view that it reads, or if there are functions, which can be declared anew.
        """
        inputs = map(catalog.find, plan.inputs)
        steady = self._engine.knows(plan.inputs, Resolver(catalog)) and not self._engine.functions
        if steady and all(each and each.kind != VIEW for each in inputs):
            self._split(view, plan, catalog)

    def forget(self) -> None:
        """Forget all plans."""
        self._known.clear()
        self._refused.clear()

    def _opened(self, view: ViewDeclaration, catalog: Catalog) -> Planned:
        """The plan of a view as some process has kept it, or else made anew."""
        made = self._plans.find(view, catalog, self._engine)
        if made is None:
            return self._split(view, self.again(view, catalog)[0], catalog)
        return self._split(view, made[0], catalog, made[1])

    def _split(
        self,
        view: ViewDeclaration,
        plan: Plan,
        catalog: Catalog,
        known: tuple[Fingerprint, Mapping[str, Fingerprint]] | None = None,
    ) -> Planned:
        """Note the plan of a view; its fingerprints are known if it was kept, else it is kept from now on."""
        made = split(plan, lambda state, _: view.shares.get(state))
        own, shared = known or self._engine.fingerprints(made)
        planned = Planned(view.state, view.shares, made, own, shared)
        self._known[view.number] = _Known(planned, _columns(view, catalog))
        if known is None:
            self._plans.keep(view, catalog, self._engine, plan, planned)
        return planned


def _columns(view: ViewDeclaration, catalog: Catalog) -> Columns:
    altered = catalog.alterations(view.inputs)
    known = {name: catalog.relations[name].seen(view.seen.get(name, 0)) for name in altered}
    return {name: tuple(each for each in columns if view.names(name, each.name)) for name, columns in known.items()}
