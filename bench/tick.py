"""How long a tick takes: `python -m bench.tick` (`make bench-tick`).

A warm tick of 1,000 rows through three views (a filter, a join with an aggregate, an aggregate) over tables of
100,000 rows and of 10 million, interleaved; ticks of a million rows through join and aggregate; the time from
nothing to the first committed tick; a query from a cold shell. Every figure is a median unless it says otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import headwater as hw

COUNTRIES = ["NO", "SE", "DK", "FI", "IS", "DE", "NL", "FR", "ES", "IT"]
VIEWS = {
    "large_orders": "SELECT id, customer, cents * 2 AS twice FROM orders WHERE cents > 90000",
    "revenue": "SELECT c.country, sum(o.cents) AS cents, count(*) AS orders FROM orders o "
    "JOIN customers c ON o.customer = c.id GROUP BY c.country",
    "by_customer": "SELECT customer, count(*) AS orders, sum(cents) AS cents FROM orders GROUP BY customer",
}
FIRST_TICK = """
import time; started = time.perf_counter()
import headwater as hw
with hw.Pipeline("first", {path!r}) as p:
    orders = p.table("orders", "id BIGINT, customer BIGINT, cents BIGINT", key="id")
    p.view("totals", "SELECT customer, sum(cents) AS cents FROM orders GROUP BY customer")
    orders.upsert([{{"id": 1, "customer": 1, "cents": 500}}])
    p.tick()
    print(time.perf_counter() - started)
"""


def orders(random: np.random.Generator, ids: np.ndarray, customers: int) -> pa.Table:
    """Orders with these ids."""
    return pa.table(
        {
            "id": pa.array(ids),
            "customer": pa.array(random.integers(0, customers, len(ids))),
            "cents": pa.array(random.integers(1, 100_000, len(ids))),
        }
    )


def shop(folder: Path, rows: int, seed: int) -> tuple[hw.Pipeline, hw.Table, np.random.Generator]:
    """A pipeline whose orders hold that many rows, with three views, all filled."""
    random = np.random.default_rng(seed)
    pipeline = hw.Pipeline("bench", folder)
    table = pipeline.table("orders", "id BIGINT, customer BIGINT, cents BIGINT", key="id")
    customers = pipeline.table("customers", "id BIGINT, country STRING", key="id")
    count = max(1, rows // 100)
    names = pa.array(np.array(COUNTRIES)[random.integers(0, len(COUNTRIES), count)])
    customers.upsert(pa.table({"id": pa.array(np.arange(count)), "country": names}))
    for start in range(0, rows, 500_000):
        table.upsert(orders(random, np.arange(start, min(rows, start + 500_000)), count))
    for name, sql in VIEWS.items():
        pipeline.view(name, sql)
    while (tick := pipeline.tick()) is not None:
        print(f"  filling {rows:,}: tick {tick.number}, {tick.rows_in:,} rows, {tick.seconds:.1f} s", flush=True)
    return pipeline, table, random


def small_ticks(root: Path, sizes: list[int], ticks: int, seed: int) -> dict[int, dict[str, float]]:
    """The times of warm ticks of 1,000 rows over tables of each size, interleaved."""
    shops = {size: shop(root / str(size), size, seed) for size in sizes}
    times: dict[int, list[float]] = {size: [] for size in sizes}
    counts: dict[int, tuple[int, int]] = {}
    for number in range(ticks + 5):
        for size, (pipeline, table, random) in shops.items():
            ids = random.choice(size, 1_000, replace=False)
            table.upsert(orders(random, ids, max(1, size // 100)))
            started = time.perf_counter()
            tick = pipeline.tick()
            if number >= 5:
                times[size].append(time.perf_counter() - started)
            assert tick is not None
            assert set(tick.paths.values()) == {"small"}
            detail = pipeline._store.last_tick().detail  # type: ignore[union-attr]
            counts[size] = (detail["queries"], detail["jobs"])
    for pipeline, _, _ in shops.values():
        pipeline.close()
    return {
        size: {
            "p50": statistics.median(taken),
            "p95": sorted(taken)[int(len(taken) * 0.95)],
            "queries": counts[size][0],
            "jobs": counts[size][1],
        }
        for size, taken in times.items()
    }


def large_ticks(root: Path, ticks: int, seed: int) -> dict[str, float]:
    """Rows per second of ticks of a million rows through join and aggregate."""
    random = np.random.default_rng(seed)
    with hw.Pipeline("large", root / "large", max_rows=1_000_000) as pipeline:
        stream = pipeline.stream("orders", "id BIGINT, customer BIGINT, cents BIGINT")
        customers = pipeline.table("customers", "id BIGINT, country STRING", key="id")
        names = pa.array(np.array(COUNTRIES)[random.integers(0, len(COUNTRIES), 100_000)])
        customers.upsert(pa.table({"id": pa.array(np.arange(100_000)), "country": names}))
        pipeline.view("revenue", VIEWS["revenue"])
        pipeline.tick()
        rates = []
        for number in range(ticks + 2):
            for part in range(10):
                start = (number * 10 + part) * 100_000
                stream.append(orders(random, np.arange(start, start + 100_000), 100_000))
            tick = pipeline.tick()
            assert tick is not None
            assert tick.paths == {"revenue": "large"}
            detail = pipeline._store.last_tick().detail  # type: ignore[union-attr]
            print(f"  tick {tick.number}: {tick.rows_in:,} rows in {tick.seconds:.2f} s", flush=True)
            if number >= 2:
                rates.append(tick.rows_in / tick.seconds)
    return {
        "rows_per_second": statistics.median(rates),
        "sustained": statistics.harmonic_mean(rates),
        "jobs": detail["jobs"],
        "queries": detail["queries"],
    }


def first_tick(root: Path) -> float:
    """Seconds from a new process to its first committed tick."""
    program = FIRST_TICK.format(path=str(root / "first"))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1])


def query(root: Path) -> float:
    """Seconds of `headwater query` from a cold shell, the best of five."""
    command = [
        os.path.join(os.path.dirname(sys.executable), "headwater"),
        "query",
        "--pipeline",
        str(root / "first"),
    ]
    taken = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run([*command, "SELECT * FROM totals"], check=True, capture_output=True)
        taken.append(time.perf_counter() - started)
    return min(taken)


def main() -> None:
    """Measure, print a table, keep it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100000,10000000", help="rows of the tables, by commas")
    parser.add_argument("--ticks", type=int, default=40)
    parser.add_argument("--large-ticks", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="first,large,small")
    arguments = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    results: dict[str, object] = {"seed": arguments.seed, "python": platform.python_version(), "commit": _commit()}
    wanted = arguments.only.split(",")
    try:
        if "first" in wanted:
            results["first_tick_seconds"] = first_tick(root)
            results["query_seconds"] = query(root)
        if "large" in wanted:
            results["large"] = large_ticks(root, arguments.large_ticks, arguments.seed)
        if "small" in wanted:
            sizes = [int(size) for size in arguments.sizes.split(",")]
            results["small"] = small_ticks(root, sizes, arguments.ticks, arguments.seed)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    _show(results)
    folder = Path("bench/results")
    folder.mkdir(exist_ok=True)
    (folder / "tick.json").write_text(json.dumps(results, indent=2) + "\n")


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _show(results: dict[str, object]) -> None:
    lines = []
    if "first_tick_seconds" in results:
        lines.append(("session start to first committed tick", f"{results['first_tick_seconds']:.1f} s", "12 s"))
        lines.append(("headwater query, cold shell", f"{results['query_seconds']:.2f} s", "1 s"))
    large = results.get("large")
    if isinstance(large, dict):
        median, all_of_them = (large[each] / 1e6 for each in ("rows_per_second", "sustained"))
        rate = f"{median:.2f} M rows/s, over all {all_of_them:.2f}, {large['jobs']} jobs"
        lines.append(("ticks of a million rows, join and aggregate", rate, "0.5 M rows/s"))
    small = results.get("small")
    if isinstance(small, dict):
        for size, row in small.items():
            text = f"p50 {row['p50']:.3f} s, p95 {row['p95']:.3f} s, {row['queries']} queries, {row['jobs']} jobs"
            lines.append((f"tick of 1,000 rows, tables of {int(size):,}", text, "0.3 s"))
        medians = [row["p50"] for row in small.values()]
        lines.append(("largest against smallest table", f"{medians[-1] / medians[0]:.2f}x", "1.2x"))
    for what, figure, bar in lines:
        print(f"{what:<48} {figure:<52} bar {bar}")


if __name__ == "__main__":
    main()
