"""Driving: the part of a pipeline that needs Spark, made when a view is declared or a tick asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.files import Files
from headwater.read.relation import LOG
from headwater.schema import Column, Schema
from headwater.schema.plain import plain
from headwater.spark.build import Relation as Known
from headwater.spark.engine import Engine
from headwater.store import Declaration
from headwater.tick.driver import Declared, Driver, Retention
from headwater.tick.loop import run
from headwater.tick.report import Tick
from headwater.topics.record_view import LOG_COLUMNS
from headwater.views.plan import Plan

if TYPE_CHECKING:
    from headwater.pipeline.pipeline import Pipeline

_UNITS = {"microsecond": 1e-6, "millisecond": 1e-3, "second": 1, "minute": 60, "hour": 3600, "day": 86400}


class Driving:
    """One process's Spark session for a pipeline, and its driver."""

    def __init__(self, pipeline: Pipeline, engine: Engine | None = None, files: Files | None = None) -> None:
        self._pipeline = pipeline
        self._seen: tuple[Mapping[str, Declaration], Declared] | None = None
        self.engine = engine or Engine(
            pipeline.name, self._known, pipeline._udfs, master=pipeline.master, timezone=pipeline.timezone
        )
        self.driver = Driver(
            pipeline._store,
            pipeline._log,
            pipeline.path,
            pipeline._lease,
            pipeline.clock,
            self.engine,
            self._declared,
            Retention(pipeline.retain_ticks, duration_seconds(pipeline.retain_for)),
            max_rows=pipeline.max_rows,
            files=files,
        )

    def plan(self, name: str, sql: str) -> tuple[Plan, Schema]:
        """The plan of a view that is to be declared, and its columns."""
        plan, schema = self.engine.plan(name, sql)
        self.engine.check(name, plan)
        return plan, schema

    def forget(self, name: str) -> None:
        """Forget a relation that was dropped."""
        self.engine.forget(name)

    def run(self, topics: Sequence[str], *, seconds: float | None, until: Callable[[Tick], bool] | None) -> None:
        """Tick whenever data arrives."""
        run(self.driver, self._pipeline._log, topics, seconds=seconds, until=until)

    def _known(self, name: str) -> Known | None:
        """What a name in SQL stands for."""
        relation = self._pipeline._relations.find(name)
        if relation is None:
            return None
        if relation.kind == "view":
            stored = self._pipeline._store.find(relation.name)
            appends = stored is not None and bool(stored.spec["appends_only"])
            return Known(relation.name, relation.schema, appends)
        schema = plain(relation.schema)
        if relation.kind == "log":
            columns = [Column(column.name, column.type) for column in schema]
            schema = Schema((*LOG_COLUMNS, *columns))
        return Known(relation.name, schema, relation.kind in {"stream", "log"})

    def _declared(self) -> Declared:
        """What the store has declared; made anew only if that has changed, since every tick asks."""
        declarations = self._pipeline._store.declarations()
        if self._seen is None or self._seen[0] != declarations:
            self._seen = declarations, self._made(declarations)
        return self._seen[1]

    def _made(self, declarations: Mapping[str, Declaration]) -> Declared:
        relations, views = {}, {}
        for stored in declarations.values():
            found = self._pipeline._relations.find(stored.name)
            if found is None:
                continue  # dropped in this moment
            relations[stored.name] = found
            if stored.kind == "view":
                views[stored.name] = str(stored.spec["sql"])
            elif (log := self._pipeline._relations.find(stored.name + LOG)) is not None:
                relations[log.name] = log
        return Declared(relations, views)

    def close(self) -> None:
        """Stop the driver, and Spark if it was started here."""
        self.driver.close()


def duration_seconds(text: str) -> float:
    """A duration like `1 hour` in seconds."""
    parts = str(text).split()
    unit = parts[1].lower().removesuffix("s") if len(parts) == 2 else ""
    try:
        return float(parts[0]) * _UNITS[unit]
    except (KeyError, ValueError, IndexError):
        msg = f"{text!r} is not a duration"
        raise HeadwaterError(msg, hint="write it like '1 hour'") from None
