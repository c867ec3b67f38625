"""Declaring views: a new one, or one that is to be made anew as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwater.catalog.amendment import amend
from headwater.catalog.names import candidate_of
from headwater.catalog.view import VIEW, ViewDeclaration
from headwater.errors import DeclarationChanged
from headwater.pipeline.replacing import abandon, check_inputs
from headwater.pipeline.views import View, declaration, known_view

if TYPE_CHECKING:
    from headwater.pipeline.pipeline import Pipeline


def declare_view(pipeline: Pipeline, name: str, sql: str, key: Sequence[str], on_error: str) -> View:
    """Declare a view under a name that nothing has; `ViewRefused` if it cannot be maintained. For one thread."""
    parts = pipeline._spark()
    catalog = parts.catalog()
    plan, schema = parts.planning.plan(name, sql, catalog)
    check_inputs(catalog, name, plan)
    made = declaration(name, sql, key, plan, schema, on_error)
    made = parts.sharing.new(made, plan, catalog, parts.arrangements())
    try:
        stored = pipeline._store.declare(name, VIEW, made.as_dict())
    except DeclarationChanged:  # the same may have been declared at once: what is shared gets other names
        first = known_view(pipeline._relations, name, sql, key, on_error, replace=False)
        if first is None:
            raise
        return first
    declared = ViewDeclaration.from_stored(stored)
    parts.planning.keep(declared, plan, parts.catalog())
    return View.of(declared)


def replaced_by_itself(pipeline: Pipeline, known: View, sql: str, key: Sequence[str], on_error: str) -> View:
    """A view, or its candidate, that is to be made anew as it is."""
    relations, store = pipeline._relations, pipeline._store
    candidate = relations.view(candidate_of(known.name))
    if candidate is not None:
        again = known_view(relations, candidate.name, sql, key, on_error, replace=True)
        if again is not None or candidate.hold:
            return again or known
        abandon(store, candidate)  # what was declared last holds
        return known
    with pipeline._threads:
        parts = pipeline._spark()
        catalog, kept = parts.catalog(), parts.arrangements()
        if known.name in catalog.views:
            amend(store, list(parts.renewing.rebuilt(catalog.views[known.name], catalog, kept)))
    candidate = relations.view(candidate_of(known.name))
    return known if candidate is None else View.of(candidate)
