"""Replacing a view: another version is built beside the old one, and takes its place at one tick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.errors import DeclarationChanged, HeadwaterError, ViewRefused
from headwater.pipeline.views import View, dependents, in_order, specification
from headwater.schema import parse
from headwater.store import NEXT, Declaration, Store
from headwater.views.plan import Plan

if TYPE_CHECKING:
    from headwater.pipeline.driving import Driving


def replace(
    store: Store,
    driving: Driving,
    old: Declaration,
    sql: str,
    key: Sequence[str],
    on_error: str,
    *,
    hold: bool = False,
) -> View:
    """Declare what is to replace a view; the next tick fills it, and lets it take over unless it is to be held.

    An error, and nothing has changed, if a view that reads it could not go on.
    """
    plan, schema = driving.plan(old.name, sql)
    check_inputs(store, old.name, plan)
    spec = specification(old.name, sql, key, plan, schema, on_error) | driving.terms(plan, on_error)
    _check_order(store, old.name, spec)
    _check_readers(store, driving, old, spec)
    spec |= {"appends_only": False, "hold": hold}
    known = store.find(old.name + NEXT)
    if known is not None:
        again = {**known.spec, "hold": hold}
        if again == {**spec, **{each: known.spec[each] for each in ("shares", "shared")}}:
            amended = Declaration(known.name, known.kind, known.number, again)
            if store.amend(amended):
                return View.of(amended)
            raise _taken_over(old.name)
        abandon(store, old.name)
    return View.of(store.declare(old.name + NEXT, "view", spec))


def candidate(store: Store, name: str) -> Declaration:
    """What is to replace a view; an error if nothing is."""
    found = store.find(name.lower() + NEXT)
    if found is None:
        raise HeadwaterError("nothing is to replace it", where=name, hint="begin with `headwater views replace`")
    return found


def switch(store: Store, name: str) -> Declaration:
    """Let the next tick put the new version in the old one's place."""
    found = candidate(store, name)
    if not store.amend(Declaration(found.name, found.kind, found.number, {**found.spec, "hold": False})):
        raise _taken_over(name)
    return found


def abandon(store: Store, name: str) -> None:
    """Give the new version up; the old one stays."""
    found = candidate(store, name)
    if not store.forget(found):
        raise _taken_over(name)
    store.drop_arrangements(f"v{found.number}")


def _taken_over(name: str) -> DeclarationChanged:
    msg = "what was to replace it has just taken its place"
    return DeclarationChanged(msg, where=name, hint="replace it again", retry=True)


def check_inputs(store: Store, name: str, plan: Plan) -> None:
    """A view cannot read another whose columns are about to change."""
    for each in plan.inputs:
        now, then = store.find(each), store.find(each + NEXT)
        if now is not None and then is not None and now.spec["schema"] != then.spec["schema"]:
            msg = f"it reads {each}, which is about to be replaced by a query with other columns"
            raise HeadwaterError(msg, where=name, hint="declare it after the tick that switches", retry=True)


def _check_order(store: Store, name: str, spec: dict[str, Any]) -> None:
    """A view cannot read itself, nor what reads it."""
    readers = {name, *_readers(store, name)}
    for each in spec["inputs"]:
        if each in readers:
            what = "it would read itself" if each == name else f"it would read {each}, which reads it"
            raise ViewRefused(what, where=name, hint="declare it under another name")


def _check_readers(store: Store, driving: Driving, old: Declaration, spec: dict[str, Any]) -> None:
    readers = _readers(store, old.name)
    direct = [each.removesuffix(NEXT) for each in dependents(store, old.name)]
    if direct and old.spec["schema"] != spec["schema"]:
        msg = f"{direct[0]} reads it, and its columns would change from {old.spec['schema']} to {spec['schema']}"
        raise HeadwaterError(msg, where=old.name, hint=f"keep the columns, or drop {direct[0]} first")
    if not old.spec["appends_only"]:
        return
    changing = {old.name: parse(old.spec["schema"])}
    for name in readers:  # rows of a view that is replaced disappear: some plans count on that they never do
        view = store.find(name)
        if view is None:
            continue
        plan, schema = driving.plan(name, view.spec["sql"], changing)
        if specification(name, view.spec["sql"], view.spec["key"], plan, schema)["plan"] != view.spec["plan"]:
            msg = f"{name} counts on that no row of it ever disappears"
            raise HeadwaterError(msg, where=old.name, hint=f"drop {name} first, and declare it again afterwards")
        changing[name] = schema


def _readers(store: Store, name: str) -> list[str]:
    """The views that read a view, or one that reads it, in an order in which each follows its inputs."""
    declarations = store.declarations()
    found = {name}
    for each in in_order(declarations):
        if found & set(declarations[each].spec["inputs"]):
            found |= {each, each.removesuffix(NEXT)}
    return [each for each in in_order(declarations) if each in found and each != name]
