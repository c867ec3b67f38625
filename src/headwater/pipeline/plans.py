"""The plans of declared views, kept beside the state, so that a process need not make them again."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from headwater.catalog.catalog import Catalog
from headwater.catalog.names import view_state
from headwater.catalog.view import ViewDeclaration
from headwater.pipeline.resolver import Resolver
from headwater.plan.fingerprint import Fingerprint
from headwater.plan.function_code import digest
from headwater.plan.operators import Plan
from headwater.plan.planned import Planned
from headwater.version import __version__

_FOLDER = "plans"
Found = tuple[Plan, tuple[Fingerprint, Mapping[str, Fingerprint]]]


class Keeper(Protocol):
    """Whoever can keep plans in files; what they are depends on `planned_by`."""

    @property
    def planned_by(self) -> Mapping[str, str]:
        """What the plan of the same SQL depends on beside its inputs."""
        ...

    def kept_plan(self, path: str) -> Any:
        """The file of a plan."""
        ...


class Plans:
    """A file for each view, by its number."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, _FOLDER)

    def find(self, view: ViewDeclaration, catalog: Catalog, keeper: Keeper) -> Found | None:
        """The plan of a view with its fingerprints, if it was kept and all that it depends on is as it was."""
        made = keeper.kept_plan(self._path(view)).read(_key(view, catalog, keeper))
        if made is None:
            return None
        return made[0], _parsed(made[1])

    def fingerprints(
        self, view: ViewDeclaration, catalog: Catalog, keeper: Keeper
    ) -> Mapping[str, Fingerprint] | None:
        """Those of a plan that `find` would give, and of what it shares, by owners; the plan itself is not read."""
        marks = keeper.kept_plan(self._path(view)).marks(_key(view, catalog, keeper))
        if marks is None:
            return None
        own, shared = _parsed(marks)
        return {view.state: own, **shared}

    def keep(self, view: ViewDeclaration, catalog: Catalog, keeper: Keeper, plan: Plan, planned: Planned) -> None:
        """Keep the plan of a view, unless it calls functions of the user's, which belong to a process."""
        own, shared = planned.own, planned.shared
        if own.functions or any(each.functions for each in shared.values()):
            return
        marks = [str(own), *(part for name, each in shared.items() for part in (name, str(each)))]
        keeper.kept_plan(self._path(view)).write(_key(view, catalog, keeper), plan, marks)

    def forget_others(self, numbers: Collection[int]) -> None:
        """Remove what was kept of views that are not declared any more, and what was left half written."""
        names = {view_state(number) for number in numbers}
        with suppress(OSError):
            for name in os.listdir(self._folder):
                if name not in names:
                    os.unlink(os.path.join(self._folder, name))

    def _path(self, view: ViewDeclaration) -> str:
        return os.path.join(self._folder, view.state)


def _parsed(marks: Sequence[str]) -> tuple[Fingerprint, dict[str, Fingerprint]]:
    own, *shared = map(str, marks)
    return Fingerprint.parse(own), dict(zip(shared[::2], map(Fingerprint.parse, shared[1::2]), strict=True))


def _key(view: ViewDeclaration, catalog: Catalog, keeper: Keeper) -> str:
    """What a plan depends on."""
    resolver = Resolver.as_declared(view, catalog)
    inputs = [
        (name, each and each.schema.ddl, each and each.appends_only)
        for name, each in ((name, resolver(name)) for name in view.inputs)
    ]
    shares = {"shares": dict(view.shares), "steady": list(view.steady)}
    terms = {"sql": view.sql, "on_error": view.on_error, **shares}
    return digest([__version__, keeper.planned_by, terms, inputs])
