"""Driving: the part of a pipeline that needs Spark, made when a view is declared or a tick asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.files import Files
from headwater.pipeline.views import in_order
from headwater.read.relation import LOG
from headwater.schema import Column, Schema, parse
from headwater.schema.plain import plain
from headwater.spark.build import Relation as Known
from headwater.spark.engine import Engine
from headwater.store import NEXT, Declaration
from headwater.tick.driver import Driver, Retention
from headwater.tick.loop import run
from headwater.tick.report import Tick
from headwater.tick.views import Declared
from headwater.topics.record_view import LOG_COLUMNS
from headwater.views.plan import Plan

if TYPE_CHECKING:
    from headwater.pipeline.pipeline import Pipeline

_UNITS = {"microsecond": 1e-6, "millisecond": 1e-3, "second": 1, "minute": 60, "hour": 3600, "day": 86400}


class Driving:
    """One process's Spark session for a pipeline, and its driver."""

    def __init__(self, pipeline: Pipeline, engine: Engine | None = None, files: Files | None = None) -> None:
        self._pipeline = pipeline
        self._changing: Mapping[str, Schema] = {}
        self._steady: frozenset[str] = frozenset()
        self._assuming = threading.Lock()
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
            self.replan,
            Retention(pipeline.retain_ticks, duration_seconds(pipeline.retain_for)),
            max_rows=pipeline.max_rows,
            files=files,
        )

    def plan(self, name: str, sql: str, changing: Mapping[str, Schema] | None = None) -> tuple[Plan, Schema]:
        """The plan of a view that is to be declared, and its columns.

        Of views in `changing` it is assumed that rows can disappear.
        """
        with self._assuming:
            self._changing = changing or {}
            try:
                plan, schema = self.engine.plan(name, sql)
            finally:
                self._changing = {}
        self.engine.check(name, plan)
        return plan, schema

    def replan(self, view: Declaration) -> Plan:
        """The plan of a declared view, on what was assumed when it was declared: its state is of that plan."""
        inputs = {name: self._pipeline._store.find(name) for name in view.spec["inputs"]}
        views = {name: parse(each.spec["schema"]) for name, each in inputs.items() if each and each.kind == "view"}
        steady = frozenset(view.spec["steady"])
        with self._assuming:
            self._changing = {name: schema for name, schema in views.items() if name not in steady}
            self._steady = steady
            try:
                return self.engine.plan(view.name.removesuffix(NEXT), view.spec["sql"])[0]
            finally:
                self._changing, self._steady = {}, frozenset()

    def steady(self, names: Iterable[str]) -> list[str]:
        """Those of some relations that are views of which rows never disappear."""
        found = [self._pipeline._relations.find(name) for name in names]
        return [each.name for each in found if each and each.kind == "view" and self._appends_only(each.name)]

    def forget(self, name: str) -> None:
        """Forget a relation that was dropped."""
        self.engine.forget(name)

    def run(self, topics: Sequence[str], *, seconds: float | None, until: Callable[[Tick], bool] | None) -> None:
        """Tick whenever data arrives."""
        run(self.driver, self._pipeline._log, topics, seconds=seconds, until=until)

    def _known(self, name: str) -> Known | None:
        """What a name in SQL stands for."""
        if name.lower() in self._changing:
            return Known(name.lower(), self._changing[name.lower()], appends_only=False)
        relation = self._pipeline._relations.find(name)
        if relation is None or relation.kind == "letters" or relation.name.endswith(NEXT):
            return None
        if relation.kind == "view":
            appends_only = relation.name in self._steady or self._appends_only(relation.name)
            return Known(relation.name, relation.schema, appends_only)
        schema = plain(relation.schema)
        if relation.kind == "log":
            columns = [Column(column.name, column.type) for column in schema]
            schema = Schema((*LOG_COLUMNS, *columns))
        return Known(relation.name, schema, relation.kind in {"stream", "log"})

    def _appends_only(self, name: str) -> bool:
        """Whether rows never disappear: of no view that was or will be replaced, and of none that reads one."""
        store = self._pipeline._store
        stored = store.find(name)
        if stored is None or stored.kind != "view":
            return True
        steady = bool(stored.spec["appends_only"]) and store.find(name + NEXT) is None
        return steady and all(map(self._appends_only, stored.spec["inputs"]))

    def _declared(self) -> Declared:
        """What the store has declared; made anew only if that has changed, since every tick asks."""
        declarations = self._pipeline._store.declarations()
        if self._seen is None or self._seen[0] != declarations:
            self._seen = declarations, self._made(declarations)
        return self._seen[1]

    def _made(self, declarations: Mapping[str, Declaration]) -> Declared:
        relations = {}
        for stored in declarations.values():
            found = self._pipeline._relations.find(stored.name)
            if found is None:
                continue  # dropped in this moment
            relations[stored.name] = found
            if stored.kind != "view" and (log := self._pipeline._relations.find(stored.name + LOG)) is not None:
                relations[log.name] = log
        views = {name: declarations[name] for name in in_order(declarations) if name in relations}
        candidates = {name.removesuffix(NEXT): view for name, view in views.items() if name.endswith(NEXT)}
        switching = frozenset(
            name
            for name, view in candidates.items()
            if name in views and not view.spec.get("hold") and _may_switch(views, name, view)
        )
        return Declared(relations, views, switching)

    def close(self) -> None:
        """Stop the driver, and Spark if it was started here."""
        self.driver.close()


def _may_switch(views: Mapping[str, Declaration], name: str, view: Declaration) -> bool:
    """Whether all that read a view can read what is to replace it."""
    same = views[name].spec["schema"] == view.spec["schema"]
    return same or not any(name in each.spec["inputs"] for each in views.values())


def duration_seconds(text: str) -> float:
    """A duration like `1 hour` in seconds."""
    parts = str(text).split()
    unit = parts[1].lower().removesuffix("s") if len(parts) == 2 else ""
    try:
        return float(parts[0]) * _UNITS[unit]
    except (KeyError, ValueError, IndexError):
        msg = f"{text!r} is not a duration"
        raise HeadwaterError(msg, hint="write it like '1 hour'") from None
