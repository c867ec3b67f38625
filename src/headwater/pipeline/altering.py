"""Altering topics: other columns, from one moment on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from headwater import crashpoint
from headwater.catalog.catalog import Catalog
from headwater.catalog.names import is_candidate
from headwater.catalog.relation import Relation
from headwater.errors import DeclarationChanged, HeadwaterError
from headwater.pipeline.replacing import check_unread, types_of
from headwater.store import Declaration
from headwater.tick.history import History
from headwater.topics import TopicDeclaration
from headwater.topics.altering import Alteration, altered
from headwater.topics.declaration import Kind, topic_name

if TYPE_CHECKING:
    from headwater.pipeline.pipeline import Pipeline

_TRIES = 10


def alter(pipeline: Pipeline, name: str, schema: str, rename: Mapping[str, str] | None = None) -> Declaration:
    """Give a topic other columns, by one write in the store: rows and state stay, and are read otherwise.

    An error, and nothing has changed, if it is not possible, or if a view that reads a column could not go on.
    """
    name = topic_name(name)
    for _ in range(_TRIES):
        stored = pipeline._store.find(name)
        if stored is None or stored.kind not in {"stream", "table"}:
            msg = f"there is no topic called {name!r}"
            raise HeadwaterError(msg, where=pipeline.name, hint="`headwater topics` lists them")
        before = TopicDeclaration.from_dict(name, cast("Kind", stored.kind), stored.spec)
        made = altered(before, schema, rename)
        if made.declaration is before:
            return stored
        catalog = pipeline._relations.catalog()
        _check_unnamed(catalog, made)
        _check_renewable(pipeline, catalog, made)
        changed = replace(stored, spec=made.declaration.as_dict())
        if pipeline._store.amend(changed, seen=stored):
            crashpoint.reach("alter.stored")
            return changed
    msg = "others alter it over and over"
    raise DeclarationChanged(msg, where=name, hint="alter it again", retry=True)


def check_columns(known: TopicDeclaration, declaration: TopicDeclaration) -> None:
    """`DeclarationChanged` that tells of altering, if a topic is declared with other columns than it has."""
    now, then = known.schema.without_comments, declaration.schema.without_comments
    if known.kind != declaration.kind or now.ddl.lower() == then.ddl.lower():
        return
    times = known.alterations.number
    since = f", and was altered {times} time{'s' if times > 1 else ''} since" if times else ""
    msg = f"it is already declared differently{since}: schema is {now.ddl!r} and would become {then.ddl!r}"
    hint = f"declare it as it is now, or alter it: alter({known.name!r}, …), or `headwater topics alter`"
    raise DeclarationChanged(msg, where=known.name, hint=hint)


def _check_unnamed(catalog: Catalog, made: Alteration) -> None:
    """No view may name a column that goes or gets another name."""
    topic, told = made.declaration.name, []
    for column in made.gone:
        views = [name for name, view in catalog.views.items() if view.names(topic, column)]
        if views:
            told.append(f"{column} is read by {', '.join(views)}")
    if told:
        abandon = ", and abandon what ends in @next" if any(map(is_candidate, catalog.views)) else ""
        raise HeadwaterError("; ".join(told), where=topic, hint=f"replace or drop these views first{abandon}")


def _check_renewable(pipeline: Pipeline, catalog: Catalog, made: Alteration) -> None:
    """Views that name a column whose type becomes another are made anew, which must be possible."""
    topic = made.declaration.name
    views = [each for each in catalog.views.values() if any(each.names(topic, column) for column in made.widened)]
    history = History(pipeline._store, pipeline._log)
    for view in views:
        if not history.is_repeatable(catalog, view.name):
            msg = f"{view.name} would have to be made anew, and the log has lost the beginning of what it reads"
            raise HeadwaterError(msg, where=topic, hint=f"add a column instead, or drop {view.name} first")
    read = [view for view in views if any(view.base in each.inputs for each in catalog.views.values())]
    if not read:
        return
    parts, changed = pipeline._spark(), _with_columns(catalog, made)
    for view in read:
        _, schema = parts.planning.again(view, changed)
        if types_of(schema) != types_of(view.schema):
            check_unread(view, schema, catalog)


def _with_columns(catalog: Catalog, made: Alteration) -> Catalog:
    """The catalog as it will be."""
    relations = dict(catalog.relations)
    for name, relation in catalog.relations.items():
        if relation.topic is not None and relation.topic.name == made.declaration.name:
            relations[name] = _altered(relation, made.declaration)
    return Catalog(relations, catalog.views)


def _altered(relation: Relation, declaration: TopicDeclaration) -> Relation:
    return replace(relation, schema=declaration.schema, alterations=declaration.alterations)
