"""A topic of many rows is altered again and again, while others write to it and a driver ticks.

    python -m tests.tick.altering --rows 10000000

Two processes append all the while, one of which opened the topic before anything was altered. Every view is
compared with Spark's batch answer before, between and after the alterations, and how long each took is printed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import headwater as hw
from headwater.testing import assert_same_as_batch
from tests.seed import SEED

COLUMNS = "id BIGINT, country STRING, cents INT, note STRING"
ALTERATIONS: tuple[tuple[str, dict[str, str]], ...] = (
    (f"{COLUMNS}, tax INT", {}),
    (f"{COLUMNS}, tax INT, origin STRING DEFAULT 'web'", {}),
    ("id BIGINT, country STRING, cents BIGINT, note STRING, tax INT, origin STRING DEFAULT 'web'", {}),
    ("id BIGINT, country STRING, cents BIGINT, remark STRING, origin STRING DEFAULT 'web'", {"note": "remark"}),
    ("id BIGINT, country STRING, cents BIGINT, remark STRING, origin STRING DEFAULT 'web', tax BIGINT", {}),
)
"""Columns come, with and without a default, one becomes wider, one goes, one is renamed, and a name comes back."""
VIEWS = {
    "revenue": "SELECT country, sum(cents) AS cents, max(cents) AS most FROM orders GROUP BY country",
    "counts": "SELECT country, count(*) AS n FROM orders GROUP BY country",
    "clicked": "SELECT o.country, count(*) AS n FROM clicks c JOIN orders o USING (id) GROUP BY o.country",
}
AT_ONCE = 1.0
"""An alteration that takes more seconds is not at once."""


def orders(first: int, count: int, names: tuple[str, ...], dice: np.random.Generator, ids: int) -> pa.Table:
    """Rows with these columns, of so many ids."""
    numbers = dice.integers(0, ids, count) if first < 0 else np.arange(first, first + count)
    countries = pa.array(["NO", "SE", "DK", None]).take(pa.array(numbers % 4))
    made: dict[str, Any] = {"id": numbers, "country": countries, "cents": (numbers % 1000).astype(np.int32)}
    texts = pa.array([f"n{number % 97}" for number in range(count)])
    made |= {"note": texts, "remark": texts, "origin": texts, "tax": (numbers % 7).astype(np.int32)}
    return pa.table({name: made[name] for name in names})


def write(path: str, seed: str, ids: int, ready: Event, done: Event, *, old: bool) -> None:
    """Append until it is done: orders with the columns of the beginning, or clicks."""
    dice = np.random.default_rng([ord(each) for each in seed])
    with hw.Pipeline("many", path) as pipeline:
        first: Any = pipeline.table("orders", COLUMNS, key="id", partitions=2) if old else None
        clicks: Any = pipeline.stream("clicks", "id BIGINT")
        ready.set()
        while not done.is_set():
            if old:
                first.upsert(orders(-1, 200, first.schema.names, dice, ids))
                first.delete(dice.integers(0, ids, 5).tolist())
            else:
                with pipeline.transaction() as transaction:
                    transaction.append(clicks, [{"id": int(n)} for n in dice.integers(0, ids, 50)])
            time.sleep(0.01)


def filled(pipeline: hw.Pipeline, rows: int, dice: np.random.Generator) -> None:
    table: Any = pipeline.table("orders", COLUMNS, key="id", partitions=2)
    pipeline.stream("clicks", "id BIGINT").append([{"id": n} for n in range(0, min(rows, 100_000), 7)])
    for first in range(0, rows, 500_000):
        table.upsert(orders(first, min(500_000, rows - first), table.schema.names, dice, rows))
    for name, sql in VIEWS.items():
        pipeline.view(name, sql)
    while pipeline.tick() is not None:
        pass
    assert_same_as_batch(pipeline)


def run(path: str, rows: int, seed: str, ticks: int = 3) -> list[float]:
    """The seconds that each alteration took; AssertionError if a view is ever not what Spark says."""
    dice, took = np.random.default_rng([ord(each) for each in seed]), []
    context = multiprocessing.get_context("spawn")
    with hw.Pipeline("many", path) as pipeline:
        filled(pipeline, rows, dice)
        done, ready = context.Event(), [context.Event(), context.Event()]
        writers = [
            context.Process(target=write, args=(path, seed, rows, each, done), kwargs={"old": old})
            for each, old in zip(ready, (True, False), strict=True)
        ]
        for writer in writers:
            writer.start()
        try:
            assert all(each.wait(60) for each in ready), "a writer did not begin"
            for schema, rename in ALTERATIONS:
                for _ in range(ticks):
                    pipeline.tick()
                started = time.monotonic()
                table: Any = pipeline.alter("orders", schema, rename=rename)
                took.append(time.monotonic() - started)
                assert_same_as_batch(pipeline)
                table.upsert(orders(-1, 1000, table.schema.names, dice, rows))
                pipeline.tick()
                assert_same_as_batch(pipeline)
                print(f"{took[-1]:8.3f} s  {schema}", flush=True)
        finally:
            done.set()
            for writer in writers:
                writer.join(timeout=60)
        assert [writer.exitcode for writer in writers] == [0, 0], "a writer failed"
        while pipeline.tick() is not None:
            pass
        assert_same_as_batch(pipeline)
    return took


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tick.altering", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--seed", default=SEED)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headwater-altering-") as folder:
        took = run(str(Path(folder) / "many"), options.rows, str(options.seed))
    print(f"{options.rows:,} rows: the longest alteration took {max(took):.3f} s")
    return 0 if max(took) <= AT_ONCE else 1


if __name__ == "__main__":
    sys.exit(main())
