"""A pipeline as it was left: opened by its folder alone, with all that any process declared."""

from __future__ import annotations

import os

from headwater.errors import HeadwaterError
from headwater.pipeline.pipeline import DATABASE, Pipeline
from headwater.store import SqliteStore
from headwater.topics import Stream, Table


def reopen(path: str) -> Pipeline:
    """Open the pipeline that a folder holds, under its own name and the time zone that its views have."""
    database = os.path.join(path, DATABASE)
    if not os.path.isfile(database):
        raise HeadwaterError("there is no pipeline here", where=os.path.abspath(path), hint="check the path")
    store = SqliteStore(database)
    name, timezone = store.kept("pipeline.name"), store.kept("pipeline.timezone")
    last = store.last_tick()
    if last is not None:
        timezone = last.detail.get("meaning", {}).get("time zone", timezone)
    store.close()
    if name is None:
        raise HeadwaterError("this folder was never a whole pipeline", where=os.path.abspath(path))
    return Pipeline(name, path, timezone=timezone or "UTC")


def declared(pipeline: Pipeline) -> dict[str, Stream | Table]:
    """All topics that any process declared, in the order of their declaration."""
    names = [d.name for d in pipeline._store.declarations().values() if d.kind in {"stream", "table"}]
    return {name: pipeline._topic(name) for name in names}
