"""Ours: a query as a view over events that are in the log already, to the commit of its last change."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import headwater as hw
from bench.nexmark.events import files
from bench.nexmark.streams import SIDE_INPUT, SIDE_INPUT_KEY, SIDE_INPUT_SCHEMA, STREAMS, side_input
from bench.processes import Peak
from bench.workspace import scratch, size

MOST_ROWS = 2_000_000
MOST_SECONDS = 3.0
_FIRST_ROWS = 500_000
_LEAST_ROWS = 50_000
_AIM = 0.6
"""Of the seconds that a tick may take: while runs are merged beside it, it takes longer than the one before."""
_APPENDED = 50_000


@dataclass
class Measured:
    """A query: how long it took to take in all events, tick by tick, and what it left."""

    query: str
    events: int
    seconds: float = 0.0
    ticks: list[tuple[int, float]] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    rows: int = 0
    state_bytes: int = 0
    memory: int = 0
    anonymous: list[int] = field(default_factory=list)
    merging: float = 0.0
    """Seconds for which runs were still merged beside the ticks when all events were taken in."""

    @property
    def rate(self) -> float:
        """Events in a second."""
        return self.events / self.seconds

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {**asdict(self), "paths": sorted(self.paths), "rate": self.rate}


def measure(query: str, sql: str, data: Path, warm: Path, events: int) -> Measured:
    """Load the events, and tick until the view has them all; first a few, so that Java has seen the query."""
    run(query, sql, warm, events)
    return run(query, sql, data, events)


def run(query: str, sql: str, data: Path, events: int) -> Measured:
    """Once, as it is."""
    found = Measured(query, events)
    read = [name for name in STREAMS if name in _words(sql) or f"{name}__log" in _words(sql)]
    with scratch("nexmark") as folder, hw.Pipeline("nexmark", folder, max_rows=_FIRST_ROWS) as pipeline:
        if SIDE_INPUT in sql:
            table = pipeline.table(SIDE_INPUT, SIDE_INPUT_SCHEMA, key=SIDE_INPUT_KEY, durability="none")
            table.upsert(side_input())
        for name in read:
            stream = pipeline.stream(name, STREAMS[name], durability="none")
            for file in files(data, name):
                for batch in pq.read_table(file).to_batches(max_chunksize=_APPENDED):
                    stream.append(pa.Table.from_batches([batch]))
        pipeline.view(query, sql)
        os.sync()
        with Peak() as memory:
            started = time.perf_counter()
            while (tick := pipeline.tick()) is not None:
                found.ticks.append((tick.rows_in, tick.seconds))
                found.paths |= set(tick.paths.values())
                pipeline._driver()._max_rows = _next_size(tick.rows_in, tick.seconds)
            found.seconds = time.perf_counter() - started
            found.merging = _waited(pipeline._driver()._merging._thread)
        found.memory, found.anonymous = memory.memory.anonymous, memory.anonymous
        found.rows = pipeline.read(query).num_rows
        found.state_bytes = size(Path(pipeline.path) / "state")
    return found


def _waited(merging: threading.Thread | None) -> float:
    started = time.perf_counter()
    if merging is not None:
        merging.join()
    return time.perf_counter() - started


def _next_size(rows: int, seconds: float) -> int:
    """As many rows as a tick can take in, if it goes on like this, without taking too long; at most twice these."""
    wanted = min(MOST_ROWS, 2 * rows, int(_AIM * MOST_SECONDS * rows / seconds)) if rows else _FIRST_ROWS
    return max(_LEAST_ROWS, wanted)


def _words(sql: str) -> set[str]:
    return set(sql.replace("(", " ").replace(")", " ").replace(",", " ").split())
