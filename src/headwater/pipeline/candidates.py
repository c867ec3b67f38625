"""Candidates: versions of views that are to replace them, held back until they were looked at."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.catalog.names import candidate_of
from headwater.catalog.suspension import suspensions_of
from headwater.catalog.view import ViewDeclaration
from headwater.errors import HeadwaterError, NotReached
from headwater.pipeline import replacing
from headwater.pipeline.pipeline import Pipeline
from headwater.pipeline.views import View, checked_view
from headwater.read.query import QueryEngine


def begin(pipeline: Pipeline, name: str, sql: str, *, hold: bool) -> View:
    """Declare another version of a view, which waits with the switch if it is to be held; starts Spark."""
    old = pipeline._relations.view(name.lower())
    if old is None:
        msg = f"there is no view called {name!r}"
        raise HeadwaterError(msg, hint="`headwater views` lists them")
    name, sql, key = checked_view(old.name, sql, old.key, old.on_error)
    return replacing.replace(pipeline._store, pipeline._spark(), old, sql, key, old.on_error, hold=hold)


def switch(pipeline: Pipeline, name: str) -> View:
    """Let the next tick put the new version in the old one's place."""
    found = _candidate(pipeline, name)
    replacing.switch(pipeline._store, found)
    return View.of(found)


def abandon(pipeline: Pipeline, name: str) -> None:
    """Give the new version up; the old one stays."""
    replacing.abandon(pipeline._store, _candidate(pipeline, name))


@dataclass(frozen=True)
class Difference:
    """A view and its candidate at a tick: all rows of both, and those that only one of them has.

    Rows are not compared, so that both are None, if the columns are others.
    """

    view: str
    tick: int
    now: pa.Table
    then: pa.Table
    gone: pa.Table | None = None
    new: pa.Table | None = None


def difference(pipeline: Pipeline, name: str) -> Difference:
    """Compare a view with its candidate; `NotReached` if that was not built yet."""
    found = _candidate(pipeline, name)
    last = pipeline._store.last_tick()
    if last is None or found.state not in pipeline._store.arrangements(last.number):
        raise NotReached(
            "it was not built yet",
            where=found.base,
            hint="the next tick builds it: `headwater status` says who ticks",
        )
    suspension = suspensions_of(last.detail).get(found.base)
    now = pipeline.read(found.base, as_of=None if suspension is not None else last.number)
    then = pipeline.read(found.name, as_of=last.number)
    if now.schema.names != then.schema.names or now.schema.types != then.schema.types:
        return Difference(found.base, last.number, now, then)
    only = [_only(pipeline, mine, other) for mine, other in ((now, then), (then, now))]
    return Difference(found.base, last.number, now, then, *only)


def _candidate(pipeline: Pipeline, name: str) -> ViewDeclaration:
    found = pipeline._relations.view(candidate_of(name.lower()))
    if found is None:
        raise HeadwaterError("nothing is to replace it", where=name, hint="begin with `headwater views replace`")
    return found


def _only(pipeline: Pipeline, mine: pa.Table, other: pa.Table) -> pa.Table:
    """The rows of one table that the other has not, or not so often."""
    engine = QueryEngine(pipeline.timezone)
    statement = engine.parse("SELECT * FROM mine EXCEPT ALL SELECT * FROM other")
    return engine.answer(statement, {"mine": mine, "other": other}, pipeline._relations.unknown)
