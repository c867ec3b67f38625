"""Driving: the part of a pipeline that needs Spark, made when a view is declared or a tick asked for."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError
from headwater.files import Files
from headwater.log import Cut
from headwater.pipeline.views import described, in_order
from headwater.read.relation import DEAD_LETTER, LOG
from headwater.schema import Column, Schema, parse
from headwater.schema.plain import plain
from headwater.spark.build import Relation as Known
from headwater.spark.engine import Engine
from headwater.store import NEXT, SHARED, Declaration
from headwater.tick.driver import Driver, Retention
from headwater.tick.inputs import is_complete
from headwater.tick.loop import run
from headwater.tick.past import Declared, Shared
from headwater.tick.report import Tick
from headwater.topics.record_view import LOG_COLUMNS
from headwater.views.function import Udf
from headwater.views.plan import Keyed, Plan
from headwater.views.sharing import Split, is_aggregate, is_same, relation_read, split

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
        self._splits: dict[int, tuple[Mapping[str, str], Split]] = {}
        self._functions: Mapping[str, Udf] = {}
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
            self,
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

    def split(self, view: Declaration) -> Split:
        """The plan of a declared view, without what is kept elsewhere: its state is of that plan."""
        if (functions := self.engine.functions) != self._functions:
            self._functions = functions
            self._splits.clear()
        shares, found = self._splits.get(view.number, (None, None))
        if found is None or shares != view.spec.get("shares", {}):  # another process may have built all state again
            return self._split(view, self._replan(view))
        return found

    def keep(self, view: Declaration, plan: Plan) -> None:
        """Tick a view that was declared just now by the plan that it was declared with.

        Not if something that it reads was declared anew meanwhile, or another process may have begun to replace a
        view that it reads, or if there are functions, which can be declared anew.
        """
        inputs = map(self._pipeline._relations.find, plan.inputs)
        steady = self.engine.knows(plan.inputs) and not self.engine.functions
        if steady and all(each and each.kind != "view" for each in inputs):
            self._split(view, plan)

    def _split(self, view: Declaration, plan: Plan) -> Split:
        shares = view.spec.get("shares", {})
        made = split(plan, lambda place, _: shares.get(place))
        self._splits[view.number] = shares, made
        return made

    def _replan(self, view: Declaration) -> Plan:
        """The plan of a declared view, on what was assumed when it was declared."""
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

    def terms(self, plan: Plan, on_error: str) -> dict[str, Any]:
        """What a view that is declared now can count on.

        Rows of the views in `steady` never disappear. `shares` has the inputs of its operators that are kept
        elsewhere, `shared` what is read by those of them that are no tables. What a view sets aside is its own, so
        one that does shares nothing.
        """
        found = [self._pipeline._relations.find(name) for name in plan.inputs]
        steady = [each.name for each in found if each and each.kind == "view" and self._appends_only(each.name)]
        if on_error == DEAD_LETTER:
            return {"steady": steady, "shares": {}, "shared": {}}
        return {"steady": steady, **self._shares(plan, self._shared_by_readers(set(plan.inputs)))}

    def share_anew(self) -> None:
        """Decide anew what views share, since nothing of it is there any more: plans may have become others."""
        declared, known = self._declared(), dict[str, Keyed]()
        self._splits.clear()
        for view in declared.views.values():
            plan = self._replan(view)
            spec = {**view.spec, **described(plan)}
            if view.spec["on_error"] != DEAD_LETTER:
                spec |= self._shares(plan, known)
            self._pipeline._store.amend(Declaration(view.name, view.kind, view.number, spec))

    def _shares(self, plan: Plan, known: dict[str, Keyed]) -> dict[str, Any]:
        """For each input of an operator the table that has its rows, or the name under which they are shared.

        So for aggregates that are needed more than once. What is not known yet becomes known.
        """
        chosen: dict[str, str] = {}
        aggregates: list[Keyed] = []

        def note(place: str, keyed: Keyed) -> None:
            if is_aggregate(place):
                aggregates.append(keyed)

        def choose(place: str, keyed: Keyed) -> str | None:
            if is_aggregate(place) and sum(is_same(each, keyed, self.engine.same) for each in aggregates) <= 1:
                return None
            same = (name for name, each in known.items() if is_same(each, keyed, self.engine.same))
            name = chosen[place] = self._table(keyed) or next(same, None) or SHARED + uuid.uuid4().hex[:12]
            if name.startswith(SHARED):
                known.setdefault(name, keyed)
            return name

        split(plan, note)
        made = split(plan, choose)
        return {"shares": chosen, "shared": {name: list(each.relations) for name, each in made.shared.items()}}

    def _table(self, keyed: Keyed) -> str | None:
        """The table that has the rows of an input by its key."""
        read = relation_read(keyed)
        relation = self._pipeline._relations.find(read[0]) if read is not None else None
        if read is None or relation is None or relation.kind != "table":
            return None
        return relation.name if relation.key and relation.key == read[1] else None

    def _shared_by_readers(self, inputs: set[str]) -> dict[str, Keyed]:
        """What is shared by views that read one of these relations.

        Nothing if one of them has lost its beginning: others have read more of it than a new view may.
        """
        relations = [self._pipeline._relations.find(name) for name in inputs]
        streams = [each for each in relations if each and each.kind in {"stream", "log"}]
        found: dict[str, Keyed] = {}
        if not all(is_complete(each, self._pipeline._log, Cut()) for each in streams):
            return found
        for each in self._pipeline._store.declarations().values():
            if each.kind == "view" and inputs.intersection(each.spec["inputs"]):
                with suppress(HeadwaterError):  # one that cannot be planned in this process
                    found |= self.split(each).shared
        return found

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
        shared: dict[str, Shared] = {}
        for name, view in views.items():
            for each, reads in view.spec.get("shared", {}).items():
                known = shared.get(each, Shared((), tuple(reads)))
                shared[each] = replace(known, views=(*known.views, name))
        return Declared(relations, views, switching, shared)

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
