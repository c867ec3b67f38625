"""Joins by ranges: `python -m bench.ranges` (`make bench-ranges`).

A million points and ten thousand ranges that lie side by side, joined by BETWEEN; and for so many orders the sum of
the payments of the same customer before each, as a correlated aggregate. Of both views the time to fill them, the
ticks of one new row on either side with the state rows that they read, and Spark's batch answer to the whole query
over cached tables in the same process. Every view is compared with batch at the end. Printed too is the most memory
that all processes had while the views were filled, of which Java's heap is a part.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import headwater as hw
from bench.processes import Memory, Peak
from headwater.testing import assert_same_as_batch

VIEWS = {
    "ranged": "SELECT p.id AS point, r.id AS range FROM points p JOIN ranges r ON p.x BETWEEN r.lo AND r.hi",
    "before": "SELECT o.id, (SELECT sum(p.cents) FROM payments p WHERE p.customer = o.customer AND p.at < o.at) "
    "AS paid FROM orders o",
}
SCHEMAS = {
    "points": "id BIGINT, x BIGINT",
    "ranges": "id BIGINT, lo BIGINT, hi BIGINT",
    "payments": "id BIGINT, customer BIGINT, at BIGINT, cents BIGINT",
    "orders": "id BIGINT, customer BIGINT, at BIGINT",
}
_MOST_READ = 5_000
_PER_CUSTOMER = 100
_TICKS = 7
_CHUNK = 500_000


def tables(points: int, ranges: int, seed: int) -> dict[str, pa.Table]:
    """The rows of all tables: as many payments as points, and as many orders as ranges."""
    random = np.random.default_rng(seed)
    width, customers = points // ranges, max(1, points // _PER_CUSTOMER)
    lo = np.arange(ranges) * width
    return {
        "points": pa.table({"id": np.arange(points), "x": random.permutation(points)}),
        "ranges": pa.table({"id": np.arange(ranges), "lo": lo, "hi": lo + width - 1}),
        "payments": pa.table(
            {
                "id": np.arange(points),
                "customer": random.integers(0, customers, points),
                "at": random.integers(0, points, points),
                "cents": random.integers(1, 1000, points),
            }
        ),
        "orders": pa.table(
            {
                "id": np.arange(ranges),
                "customer": random.integers(0, customers, ranges),
                "at": random.integers(0, points, ranges),
            }
        ),
    }


def changes(points: int) -> dict[str, Callable[[int], tuple[str, dict[str, int]]]]:
    """One new row, by its number, for each side of each join."""
    middle = points // 2
    return {
        "a point": lambda n: ("points", {"id": points + n, "x": middle + n}),
        "a range": lambda n: ("ranges", {"id": points + n, "lo": middle + n, "hi": middle + n + 99}),
        "a payment": lambda n: ("payments", {"id": points + n, "customer": n, "at": middle, "cents": 5}),
        "an order": lambda n: ("orders", {"id": points + n, "customer": n, "at": middle}),
    }


def measured(folder: Path, points: int, ranges: int, seed: int) -> dict[str, object]:
    """Everything, as plain data."""
    given = tables(points, ranges, seed)
    found: dict[str, object] = {"points": points, "ranges": ranges, "seed": seed}
    with hw.Pipeline("ranges", folder) as pipeline:
        made = {name: pipeline.table(name, ddl, key="id") for name, ddl in SCHEMAS.items()}
        for name, rows in given.items():
            for start in range(0, rows.num_rows, _CHUNK):
                made[name].upsert(rows.slice(start, _CHUNK))
        while pipeline.tick() is not None:
            pass
        for name, sql in VIEWS.items():
            found[f"fill {name}"] = filled(pipeline, name, sql)
        for what, change in changes(points).items():
            found[what] = ticked(pipeline, made, change)
        found["batch"] = {name: batch(given, sql) for name, sql in VIEWS.items()}
        assert_same_as_batch(pipeline)
    return found


def filled(pipeline: hw.Pipeline, name: str, sql: str) -> dict[str, float]:
    """Seconds of the tick that fills a view, its rows, and the most memory of all processes."""
    pipeline.view(name, sql)
    with Peak() as peak:
        started = time.perf_counter()
        while pipeline.tick() is not None:
            pass
        seconds = time.perf_counter() - started
    return {"seconds": seconds, "rows": pipeline.read(name).num_rows, **_bytes(peak.memory)}


def ticked(
    pipeline: hw.Pipeline, made: dict[str, hw.Table], change: Callable[[int], tuple[str, dict[str, int]]]
) -> dict[str, float]:
    """The median seconds of ticks of one new row, and the most state rows that one read."""
    taken, read = [], []
    for number in range(_TICKS):
        table, row = change(number)
        made[table].upsert([row])
        started = time.perf_counter()
        tick = pipeline.tick()
        taken.append(time.perf_counter() - started)
        assert tick is not None
        read.append(tick.rows_read)
    return {"seconds": statistics.median(taken[2:]), "rows_read": max(read)}


def batch(given: dict[str, pa.Table], sql: str) -> float:
    """Seconds that Spark takes for the whole query over cached tables."""
    spark = SparkSession.builder.getOrCreate()
    for name, rows in given.items():
        frame = spark.createDataFrame(rows).cache()
        frame.count()
        frame.createOrReplaceTempView(name)
    started = time.perf_counter()
    spark.sql(sql).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def _bytes(memory: Memory) -> dict[str, float]:
    return {"anonymous": memory.anonymous, "mapped": memory.mapped}


def main() -> int:
    """Measure, print, keep it as JSON; exit code 0 if one new row reads no more than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--ranges", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    try:
        found = measured(root / "pipeline", arguments.points, arguments.ranges, arguments.seed)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(json.dumps(found, indent=2))
    folder = Path("bench/results")
    folder.mkdir(exist_ok=True)
    (folder / "ranges.json").write_text(json.dumps(found, indent=2) + "\n")
    read = {what: found[what]["rows_read"] for what in changes(1)}  # type: ignore[index]
    late = {what: rows for what, rows in read.items() if rows > _MOST_READ}
    print("\n".join(f"{what} read {rows:,} rows, of at most {_MOST_READ:,}" for what, rows in late.items()))
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
