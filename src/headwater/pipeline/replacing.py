"""Replacing a view: another version is built beside the old one, and takes its place at one tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed
from typing import TYPE_CHECKING

from headwater.catalog.catalog import Catalog
from headwater.catalog.names import base_of, candidate_of
from headwater.catalog.view import ViewDeclaration
from headwater.errors import DeclarationChanged, HeadwaterError, ViewRefused
from headwater.pipeline.views import View, declaration
from headwater.plan.operators import Plan
from headwater.plan.sql_text import same_sql
from headwater.schema import Schema
from headwater.schema.types import DataType
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.pipeline.spark_parts import SparkParts


def replace(
    store: Store,
    parts: SparkParts,
    old: ViewDeclaration,
    sql: str,
    key: Sequence[str],
    on_error: str,
    *,
    hold: bool = False,
) -> View:
    """Declare what is to replace a view; the next tick fills it, and lets it take over unless it is to be held.

    An error, and nothing has changed, if a view that reads it could not go on.
    """
    catalog = parts.catalog()
    plan, schema = parts.planning.plan(old.name, sql, catalog)
    check_inputs(catalog, old.name, plan)
    made = declaration(old.name, sql, key, plan, schema, on_error)
    made = parts.sharing.new(made, plan, catalog, parts.arrangements())
    _check_order(catalog, made)
    _check_readers(parts, catalog, old, made)
    made = changed(made, name=candidate_of(old.name), appends_only=False, hold=hold)
    known = catalog.candidate(old.name)
    if known is not None:
        if _is_same(known, made):
            amended = changed(known, hold=hold)
            if store.amend(amended.stored()):
                return View.of(amended)
            raise _taken_over(old.name)
        abandon(store, known)
    stored = made.stored()
    return View.of(ViewDeclaration.from_stored(store.declare(stored.name, stored.kind, stored.spec)))


def _is_same(known: ViewDeclaration, made: ViewDeclaration) -> bool:
    """Whether a candidate is as one that is there, whatever they share, and whether or not they are held."""
    if not same_sql(known.sql, made.sql):
        return False
    alike = changed(made, sql=known.sql, shares=known.shares, shared=known.shared, hold=known.hold)
    return changed(alike, number=known.number) == known


def switch(store: Store, candidate: ViewDeclaration) -> None:
    """Let the next tick put the new version in the old one's place."""
    if not store.amend(changed(candidate, hold=False).stored()):
        raise _taken_over(candidate.base)


def abandon(store: Store, candidate: ViewDeclaration) -> None:
    """Give the new version up; the old one stays."""
    if not store.forget(candidate.stored()):
        raise _taken_over(candidate.base)
    store.drop_arrangements(candidate.state)


def _taken_over(name: str) -> DeclarationChanged:
    msg = "what was to replace it has just taken its place"
    return DeclarationChanged(msg, where=name, hint="replace it again", retry=True)


def check_inputs(catalog: Catalog, name: str, plan: Plan) -> None:
    """A view cannot read another whose columns are about to change."""
    for each in plan.inputs:
        now, then = catalog.views.get(each), catalog.candidate(each)
        if now is not None and then is not None and now.schema != then.schema:
            msg = f"it reads {each}, which is about to be replaced by a query with other columns"
            raise HeadwaterError(msg, where=name, hint="declare it after the tick that switches", retry=True)


def _check_order(catalog: Catalog, view: ViewDeclaration) -> None:
    """A view cannot read itself, nor what reads it."""
    readers = {view.name, *catalog.readers(view.name)}
    for each in view.inputs:
        if each in readers:
            what = "it would read itself" if each == view.name else f"it would read {each}, which reads it"
            raise ViewRefused(what, where=view.name, hint="declare it under another name")


def _check_readers(parts: SparkParts, catalog: Catalog, old: ViewDeclaration, made: ViewDeclaration) -> None:
    direct = [base_of(each) for each in catalog.dependents(old.name)]
    if direct and old.schema != made.schema:
        msg = f"{direct[0]} reads it, and its columns would change from {old.schema} to {made.schema}"
        raise HeadwaterError(msg, where=old.name, hint=f"keep the columns, or drop {direct[0]} first")
    if not old.appends_only:
        return
    changing = {old.name: old.schema}
    for name in catalog.readers(old.name):  # rows of a view that is replaced disappear
        view = catalog.views[name]
        plan, schema = parts.planning.plan(name, view.sql, catalog, changing, view.seen)
        if declaration(name, view.sql, view.key, plan, schema, view.on_error).plan != view.plan:
            msg = f"{name} counts on that no row of it ever disappears"
            raise HeadwaterError(msg, where=old.name, hint=f"drop {name} first, and declare it again afterwards")
        changing[name] = schema


def types_of(schema: Schema) -> list[tuple[str, DataType]]:
    """The names and types of columns, by which others plan."""
    return [(column.name, column.type) for column in schema]


def check_unread(view: ViewDeclaration, schema: Schema, catalog: Catalog) -> None:
    """An error if a view gets columns of other types although others read it, which were planned on those."""
    readers = [each.base for each in catalog.views.values() if view.base in each.inputs]
    if readers:
        told = ", ".join(sorted({*readers}))
        msg = f"its columns would become {schema.ddl}, and {told} reads it as {view.schema.ddl}"
        raise ViewRefused(msg, where=view.base, hint="drop what reads it, replace it and declare that anew")
