"""A pipeline as it was left: opened by its folder alone, with all that any process declared."""

from __future__ import annotations

import os

from headwater.backends import DATABASE, check_not_lost, open_store
from headwater.errors import HeadwaterError
from headwater.pipeline.foundation import NAME
from headwater.pipeline.pipeline import Pipeline
from headwater.topics import Stream, Table


def reopen(path: str) -> Pipeline:
    """Open the pipeline that a folder holds, under its own name, time zone and settings."""
    folder = os.path.abspath(path)
    check_not_lost(folder)
    if not os.path.isfile(os.path.join(folder, DATABASE)):  # or else it would be made
        raise HeadwaterError("there is no pipeline here", where=folder, hint="check the path")
    store = open_store(None, folder)
    name = store.kept(NAME)
    store.close()
    if name is None:
        raise HeadwaterError("this folder was never a whole pipeline", where=folder)
    return Pipeline(name, path)


def declared(pipeline: Pipeline) -> dict[str, Stream | Table]:
    """All topics that any process declared, in the order of their declaration."""
    return {name: pipeline._topic(name) for name in pipeline._relations.topics()}
