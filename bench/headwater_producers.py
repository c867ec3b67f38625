"""Our throughput: processes that append to one topic of one partition through the public interface."""

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import crew, rows
from bench.workspace import CannotMeasure, scratch

_WARMUP_SECONDS = 0.5
_PREPARED_BATCHES = 64


def open_pipeline(path: Path) -> Any:
    """Open the pipeline at *path*, or say that this tree has none to open yet."""
    headwater = importlib.import_module("headwater")
    if not hasattr(headwater, "Pipeline"):
        message = "headwater.Pipeline does not exist yet"
        raise CannotMeasure(message)
    return headwater.Pipeline("bench", path=str(path))


@dataclass(frozen=True)
class HeadwaterProducer:
    """One process of ours: appends batches of 1,000 rows, each acknowledged before the next."""

    path: Path
    durability: str

    def produce(self, start: Callable[[], float], seconds: float) -> crew.Share:
        """Append until the time is over; the last append's return is its acknowledgement."""
        batches = [rows.record_batch(number * rows.ROWS_PER_BATCH) for number in range(_PREPARED_BATCHES)]
        with open_pipeline(self.path) as pipeline:
            stream = pipeline.stream("rows", rows.SCHEMA, durability=self.durability)
            warmup = append_until(stream, batches, time.monotonic() + _WARMUP_SECONDS)
            started = start()
            syncs = _syncs(stream)
            appended = append_until(stream, batches, started + seconds)
            ended = time.monotonic()
            return crew.Share(started, ended, appended, warmup, _difference(syncs, _syncs(stream)))


def append_until(stream: Any, batches: list[Any], deadline: float) -> int:
    """Append the batches in turn until the deadline; give the number of rows."""
    appended = 0
    while time.monotonic() < deadline:
        for batch in batches:
            stream.append(batch)
            appended += rows.ROWS_PER_BATCH
            if time.monotonic() >= deadline:
                break
    return appended


def measure(durability: str, producers: int, seconds: float) -> crew.Throughput:
    """Measure *producers* processes on a new pipeline's topic."""
    with scratch("ours") as path:
        with open_pipeline(path) as pipeline:
            pipeline.stream("rows", rows.SCHEMA, durability=durability)
        return crew.run([HeadwaterProducer(path, durability)] * producers, seconds)


def _syncs(stream: Any) -> int | None:
    files = getattr(getattr(stream, "log", None), "files", None)
    count = getattr(files, "syncs", None)
    return count if isinstance(count, int) else None


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
