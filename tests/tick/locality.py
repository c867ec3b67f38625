"""What a tick reads when one key of many changes, operator by operator.

    python -m tests.tick.locality --keys 1000000

Every view is over tables with so many keys; then one row goes from one key to another, and `rows_read` is what the
tick had to look at in the state.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import headwater as hw
from headwater.spark.session.start import start

VIEWS = {
    "inner join": "SELECT a.id AS i, b.x AS y FROM a JOIN b ON a.k = b.k",
    "left join": "SELECT a.id AS i, b.x AS y FROM a LEFT JOIN b ON a.k = b.k",
    "full join": "SELECT a.id AS i, b.id AS j FROM a FULL JOIN b ON a.k = b.k AND a.x < b.x",
    "semi join": "SELECT id FROM a WHERE k IN (SELECT k FROM b WHERE x > 2)",
    "anti join": "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x > 2)",
    "not in": "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE x > 2)",
    "correlated": "SELECT id, (SELECT max(x) FROM b WHERE b.k = a.k) AS m FROM a",
    "sum": "SELECT k, count(*) AS n, sum(id) AS t FROM a GROUP BY k",
    "max": "SELECT k, max(x) AS m FROM a GROUP BY k",
    "count distinct": "SELECT k, count(DISTINCT x) AS n FROM a GROUP BY k",
    "rollup": "SELECT k, id, count(*) AS n FROM a GROUP BY GROUPING SETS ((k), (k, id))",
    "distinct": "SELECT DISTINCT k, x FROM a",
    "except": "SELECT k FROM a EXCEPT SELECT k FROM b",
    "window": "SELECT id, rank() OVER (PARTITION BY k ORDER BY x) AS r FROM a",
    "limit": "SELECT id FROM a ORDER BY x, id LIMIT 3",
    "top-k by group": "SELECT id FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY x, id) <= 1",
}
PER_KEY = 2
MOST = dict.fromkeys(VIEWS, 10 * PER_KEY) | {"limit": 1_000}
"""So many rows may be read; where all rows are of one key, a leaf of them, and the nodes above."""


def measure(keys: int, folder: Path, views: dict[str, str] = VIEWS) -> dict[str, int]:
    """The rows that a tick read for each view, when one row went from one of so many keys to another."""
    found = {}
    with hw.Pipeline("locality", folder / "locality") as pipeline:
        first, _ = [_filled(pipeline, name, keys) for name in "ab"]
        for number, (name, sql) in enumerate(views.items()):
            started = time.monotonic()
            pipeline.view("v", sql)
            while pipeline.tick() is not None:
                pass
            key = PER_KEY * number
            first.upsert([{"id": key, "k": number + 1, "x": 4.5}])
            tick = pipeline.tick()
            assert tick is not None
            found[name] = tick.rows_read
            pipeline.drop("v")
            print(f"{name:16} {found[name]:8} rows read, {time.monotonic() - started:6.1f} s", flush=True)
    return found


def _filled(pipeline: hw.Pipeline, name: str, keys: int) -> hw.Table:
    table = pipeline.table(name, "id BIGINT, k BIGINT, x DOUBLE", key="id", durability="none")
    table.upsert(_rows(keys))
    return table


def _rows(keys: int) -> pa.Table:
    numbers = np.arange(keys * PER_KEY)
    return pa.table({"id": numbers, "k": numbers // PER_KEY, "x": (numbers % 5).astype(np.float64)})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tick.locality", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--keys", type=int, default=1_000_000)
    options = parser.parse_args()
    start("locality", master="local[2]")
    with tempfile.TemporaryDirectory(prefix="headwater-locality-") as folder:
        found = measure(options.keys, Path(folder))
    return 1 if any(found[name] > most for name, most in MOST.items()) else 0


if __name__ == "__main__":
    sys.exit(main())
