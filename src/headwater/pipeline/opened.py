"""What whoever opened a pipeline by its folder asks of it beside its methods: the command line, for instance."""

from __future__ import annotations

from typing import Any

from headwater.catalog.suspension import suspensions_of
from headwater.errors import HeadwaterError
from headwater.pipeline.leasing import to_drive
from headwater.pipeline.pipeline import Pipeline
from headwater.topics import Stream, Table


def topic(pipeline: Pipeline, name: str) -> Stream | Table:
    """A topic by name, whoever declared it; an error that lists the names if there is none."""
    return pipeline._topic(name)


def topic_kinds(pipeline: Pipeline) -> dict[str, str]:
    """The kind of every topic by its name, in the order of their names; also of those that cannot be opened."""
    declarations = sorted(pipeline._store.declarations().values(), key=lambda each: each.name)
    return {each.name: each.kind for each in declarations if each.kind in {"stream", "table"}}


def get_ready(pipeline: Pipeline) -> None:
    """Take the lease and start Spark, as the first tick would: `LeaseHeld` comes before Spark starts."""
    with to_drive(pipeline):
        pipeline._spark()


def suspended(pipeline: Pipeline) -> dict[str, str]:
    """The views and candidates that the newest tick left suspended, each with the reason."""
    last = pipeline._store.last_tick()
    return {name: each.reason for name, each in suspensions_of(last.detail).items()} if last is not None else {}


def declared_views(pipeline: Pipeline) -> set[str]:
    """The names of views and candidates."""
    return {view.name for view in pipeline._relations.views()}


def filling(pipeline: Pipeline) -> dict[str, int]:
    """The views that this process is filling at this moment, and from how many rows."""
    return {view.name: view.filling for view in pipeline.status().views if view.filling is not None}


def described(pipeline: Pipeline, name: str) -> dict[str, Any]:
    """A view as JSON-ready data: its SQL, key, columns, inputs and operators."""
    view = pipeline._relations.view(name.lower())
    if view is None:
        raise HeadwaterError("only views have a plan", where=name, hint="name a view")
    told = view.as_dict()
    return {"name": view.name, **{each: told[each] for each in ("sql", "key", "schema", "inputs", "plan")}}
