"""Ticks made by hand: real topics, runs and commits, with the contents worked out by the slow and obvious way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import headwater as hw
from headwater.change import HASH, WEIGHT
from headwater.change.hash import hash_rows
from headwater.liveness import LockedFiles
from headwater.log import Cut
from headwater.pipeline.reopen import declared
from headwater.read import Reader
from headwater.schema import Schema, parse
from headwater.state import RunFile
from headwater.state.files import LocalStateFiles
from headwater.store import Declaration, RunRecord, TickRecord
from tests.inside import log_of, store_of, topic_of

Rows = Counter[tuple[Any, ...]]


def rows_of(table: pa.Table) -> Rows:
    """The rows of a table with how often each is in."""
    return Counter(tuple(map(_frozen, row.values())) for row in table.to_pylist())


def summed(tables: Iterable[pa.Table], until: int | None = None) -> Rows:
    """What changes add up to; up to a tick if one is given."""
    total: Rows = Counter()
    for table in tables:
        for tick, weight, *values in (row.values() for row in table.to_pylist()):
            if until is None or tick <= until:
                total[tuple(map(_frozen, values))] += weight
    assert all(weight >= 0 for weight in total.values())
    return +total


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


class Meddling:
    """A store in which something happens just after the first question of a kind was answered."""

    def __init__(self, store: Any, question: str, meddle: Callable[[], object]) -> None:
        self._store, self._question, self._meddle = store, question, meddle

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._store, name)
        if name != self._question:
            return asked

        def answer(*values: Any, **named: Any) -> Any:
            result = asked(*values, **named)
            self._question = ""
            self._meddle()
            return result

        return answer


class Hand:
    """Drives a pipeline by hand. `contents[name][tick]` is what a table or view holds at a tick."""

    def __init__(self, pipeline: hw.Pipeline, hashes: Callable[[Sequence[pa.Array]], Any] = hash_rows) -> None:
        self.pipeline = pipeline
        self.store = store_of(pipeline)
        self.state = Path(pipeline.path) / "state"
        self.state.mkdir(exist_ok=True)
        self.reader = self.open_reader()
        self.contents: dict[str, dict[int, Rows]] = {}
        self._hashes = hashes
        self._epoch = self.store.raise_epoch({"pid": 4711}, seen=self.store.lease().epoch)
        self._runs: dict[str, list[dict[str, Any]]] = {}
        self._cut = Cut()
        self._attempts = count()
        self._switching: list[Declaration] = []

    def open_reader(self, store: Any = None) -> Reader:
        pipeline = self.pipeline
        return Reader(
            store or store_of(pipeline),
            log_of(pipeline),
            pipeline.state_files,
            LockedFiles(pipeline.path),
            pipeline.path,
            partial(topic_of, pipeline),
            timezone=pipeline.timezone,
        )

    def view(self, name: str, schema: str, key: Sequence[str] = ()) -> None:
        spec = {"sql": "…", "key": list(key), "schema": parse(schema).ddl, "inputs": [], "timezone": "UTC"}
        self.store.declare(name, "view", spec)

    def switch(self, name: str, schema: str) -> None:
        """Let the next tick replace a view by another version, which begins with no rows."""
        old = self.store.find(name)
        assert old is not None
        self.view(f"{name}@next", schema)
        new = self.store.find(f"{name}@next")
        assert new is not None
        spec = {**new.spec, "before": {**old.spec, "number": old.number}, "since": self.store.ticks()[-1][0] + 1}
        self._switching = [Declaration(name, "view", new.number, spec)]

    def tick(self, **views: Iterable[tuple[Any, ...]]) -> int:
        """Commit everything appended so far, with these views holding these rows; others stay as they are."""
        topics = declared(self.pipeline)
        self._cut = log_of(self.pipeline).cut(list(topics), after=self._cut)
        last = self.store.last_tick()
        number = last.number + 1 if last else 1
        file = RunFile(LocalStateFiles(str(self.state)), f"1-{number}-{next(self._attempts)}.runs")
        records: list[RunRecord] = []
        for name, rows in views.items():
            stored = self.store.find(name)
            assert stored is not None
            schema, key = parse(stored.spec["schema"]), stored.spec["key"]
            records += self._change(file, number, name, f"v{stored.number}", schema, key, Counter(rows))
        for name, topic in topics.items():
            if topic.kind == "table":
                content = self._replayed(topic)
                records += self._change(file, number, name, f"t{topic.number}", topic.schema, topic.key, content)
        file.finish()
        self.store.commit(
            TickRecord(number, number * 1_000_000, self._cut.as_dict(), tuple(records)),
            epoch=self._epoch,
            renamed=self._switching,
        )
        self._switching = []
        for history in self.contents.values():
            history.setdefault(number, history.get(number - 1, Counter()))
        return number

    def keep(self, *ticks: int) -> None:
        """Forget all other ticks but the newest, as retention does, and sweep."""
        newest = self.store.ticks()[-1][0]
        oldest = min(*ticks, newest) if ticks else newest
        self.store.expire(ticks, changes_after=oldest, epoch=self._epoch)
        used = {run["file"] for detail in self.store.files() for run in detail["runs"]}
        for path in self.state.glob("*.runs"):
            if path.name not in used:
                path.unlink()

    def rewrite(self) -> None:
        """Let the next tick write everything anew, so that no file of an earlier one is needed for it."""
        self._runs.clear()
        for history in self.contents.values():
            history.clear()

    def _replayed(self, topic: Any) -> Rows:
        """A table's rows, from its log read from the beginning."""
        by_key: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        bag: Rows = Counter()
        names = topic.schema.names
        for table in topic.tail():
            for row in table.to_pylist():
                values = tuple(_frozen(row[name]) for name in names)
                if row["_offset"] >= self._cut.end(topic.name, row["_partition"]):
                    continue
                if topic.key and row["_op"] == "delete":
                    by_key.pop(tuple(row[name] for name in topic.key), None)
                elif topic.key:
                    by_key[tuple(row[name] for name in topic.key)] = values
                elif row["_op"] == "delete":
                    bag = bag - Counter([values])
                else:
                    bag[values] += 1
        return Counter(by_key.values()) if topic.key else bag

    def _change(
        self, file: RunFile, number: int, name: str, place: str, schema: Schema, key: Sequence[str], rows: Rows
    ) -> list[RunRecord]:
        history = self.contents.setdefault(name, {})
        delta = Counter(rows)
        delta.subtract(history.get(number - 1, Counter()))
        history[number] = rows
        changed = {values: weight for values, weight in delta.items() if weight}
        if not changed:
            return [] if place in self._runs else [self._record(place, number, self._runs.setdefault(place, []))]
        run = file.add(self._table(schema, key, changed)).as_dict()
        self._runs[place] = [*self._runs.get(place, []), run]
        return [self._record(place, number, self._runs[place]), self._record(f"{place}/changes", number, [run])]

    def _record(self, place: str, number: int, runs: list[dict[str, Any]]) -> RunRecord:
        return RunRecord(f"{place}@{number}", place, {"runs": runs})

    def _table(self, schema: Schema, key: Sequence[str], changed: Mapping[tuple[Any, ...], int]) -> pa.Table:
        arrays = [
            pa.array([values[place] for values in changed], field.type) for place, field in enumerate(schema.stored)
        ]
        hashed = [arrays[schema.stored.get_field_index(name)] for name in key or schema.names]
        weights = pa.array(np.array(list(changed.values()), np.int64))
        columns = [*arrays, pa.array(self._hashes(hashed)), weights]
        return pa.Table.from_arrays(columns, names=[*schema.names, HASH, WEIGHT])
