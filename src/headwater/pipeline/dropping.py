"""Dropping views and topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.catalog.names import candidate_of, is_candidate, table_state
from headwater.errors import HeadwaterError
from headwater.pipeline.replacing import abandon

if TYPE_CHECKING:
    from headwater.pipeline.pipeline import Pipeline


def drop(pipeline: Pipeline, name: str) -> None:
    """Remove a view, or a topic with its records and dead letters; an error while views read it. For one thread."""
    relation = pipeline._relations.get(name)
    if relation.kind in {"log", "letters"}:
        owner = relation.name.rpartition("__")[0]
        msg = f"{relation.name} belongs to {owner}, and goes with it"
        raise HeadwaterError(msg, where=pipeline.name, hint=f"drop {owner}, if that is meant")
    users = [view.name for view in pipeline._relations.views() if view.is_over(relation.name)]
    if users:
        msg = f"{relation.name} is read by {', '.join(users)}"
        hint = "drop those first, or abandon what ends in @next" if is_candidate(users[-1]) else ""
        raise HeadwaterError(msg, where=pipeline.name, hint=hint or "drop those first")
    view = pipeline._relations.view(relation.name)
    if view is not None:
        if (candidate := pipeline._relations.view(candidate_of(view.name))) is not None:
            abandon(pipeline._store, candidate)
        pipeline._store.forget(view.stored())
        pipeline._store.drop_arrangements(view.state)
    else:
        _drop_topic(pipeline, relation.name)
    if pipeline._parts is not None:
        pipeline._parts.engine.forget(relation.name)


def _drop_topic(pipeline: Pipeline, name: str) -> None:
    store, topic = pipeline._store, pipeline._topic(name)
    for each in (topic.name, topic.declaration.dead_letters().name):
        stored = store.find(each)
        if stored is not None:
            pipeline._attach(stored)
            store.forget(stored)
            store.drop_arrangements(table_state(stored.number))
            pipeline._log.drop(each)
            del pipeline._topics[each]
