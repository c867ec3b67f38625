"""A pipeline without an engine: real topics, views that are only text, and readings that a test makes up.

With it the oracle and the grammar are tested on their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa

from headwater.log import Cut
from headwater.oracle.oracle import _batch
from headwater.pipeline import Pipeline
from headwater.pipeline.reopen import declared
from headwater.store import Declaration, Store, TickRecord
from headwater.topics import Topic
from tests.inside import log_of, store_of, topic_of


class StandIn:
    """What the oracle needs of a pipeline. `readings` is what `read` gives."""

    def __init__(self, pipeline: Pipeline, views: Mapping[str, str]) -> None:
        self.timezone = pipeline.timezone
        self.readings: dict[str, pa.Table] = {}
        self._udfs: dict[str, Any] = {}
        self._pipeline = pipeline
        self._views = {
            name: Declaration(name, "view", 1000 + number, {"sql": sql, "key": [], "schema": "", "inputs": []})
            for number, (name, sql) in enumerate(views.items())
        }
        self._store = cast(
            "Store", SimpleNamespace(last_tick=self._last_tick, declarations=self._declarations, kept={}.get)
        )

    def _last_tick(self) -> TickRecord:
        cut = log_of(self._pipeline).cut(list(declared(self._pipeline)))
        return TickRecord(7, 0, cut.as_dict())

    def _declarations(self) -> dict[str, Declaration]:
        return {**store_of(self._pipeline).declarations(), **self._views}

    def _topic(self, name: str) -> Topic:
        found: Topic = topic_of(self._pipeline, name)
        return found

    def read(self, name: str, *, as_of: int | None = None) -> pa.Table:
        assert as_of == 7
        return self.readings[name]

    def answers(self) -> dict[str, pa.Table]:
        """What Spark says."""
        cut = Cut.from_dict(self._last_tick().cut)
        return _batch(self, self._declarations(), list(self._views), cut)[0]
