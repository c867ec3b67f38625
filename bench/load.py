"""How long the first fill of a view takes: `python -m bench.load` (`make bench-load`).

TPC-H's lineitems at scale factor 10, 10 and 60 million of them, are in the log already. A view over them is
declared, and the tick that fills it is measured, to its commit. Spark computes the same query from Parquet files
with the same rows. One view groups by a supplier, one keeps an eighth of the rows, one joins them with orders.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import headwater as hw
from bench import results, tpch
from bench.change import schema_of
from bench.processes import Peak
from bench.progress import say
from bench.table import Line, show
from bench.workspace import BATCH, CACHE, scratch, size
from headwater.spark.session.start import start

QUERIES = {
    "aggregate": "SELECT l_suppkey, count(*) AS items, sum(l_extendedprice * (1 - l_discount)) AS revenue "
    "FROM lineitem GROUP BY l_suppkey",
    "filter": "SELECT l_orderkey, l_linenumber, l_extendedprice * (1 - l_discount) AS revenue "
    "FROM lineitem WHERE l_shipdate >= DATE '1997-09-01' AND l_quantity <= 20",
    "join": "SELECT o_orderstatus, count(*) AS items, sum(l_quantity) AS quantity FROM lineitem JOIN orders "
    "ON l_orderkey = o_orderkey WHERE o_orderdate >= DATE '1997-01-01' GROUP BY o_orderstatus",
}
ROWS = [10_000_000, 60_000_000]
_QUICK_ROWS = [2_000_000]
_SCALE, _QUICK_SCALE = 10, 1
_BAR = 0.2
_CHUNK = 1_000_000
_RUNS = 2


def rows_of(data: Path, table: str, most: int | None) -> Iterator[pa.Table]:
    """The rows of a table, at most so many, in pieces."""
    left = most
    for file in sorted(data.glob(f"{table}-*.parquet"), key=lambda path: int(path.stem.split("-")[1])):
        for batch in pq.ParquetFile(file).iter_batches(_CHUNK):
            if left is not None and left <= 0:
                return
            piece = pa.Table.from_batches([batch])
            piece = piece if left is None else piece.slice(0, left)
            left = None if left is None else left - piece.num_rows
            yield piece


def ours(data: Path, rows: int, queries: list[str], folder: Path) -> dict[str, tuple[float, int, int]]:
    """Seconds, bytes of memory and bytes on disk of filling each view, one after the other."""
    found = {}
    with hw.Pipeline("load", folder) as pipeline:
        for table, most in (("orders", None), ("lineitem", rows)):
            topic = pipeline.stream(table, schema_of(table), durability="none")
            for piece in rows_of(data, table, most):
                topic.append(piece)
        pipeline.view("warm", "SELECT count(*) AS n FROM lineitem WHERE l_orderkey < 100")
        while pipeline.tick() is not None:
            pass
        for query in queries:
            state = Path(pipeline.path) / "state"
            before = size(state)
            pipeline.view(f"view_{query}", QUERIES[query])
            with Peak() as peak:
                started = time.perf_counter()
                tick = pipeline.tick()
                seconds = time.perf_counter() - started
            assert tick is not None
            found[query] = seconds, peak.memory.anonymous, size(state) - before
            say(f"load: {query} over {rows:,} rows took {seconds:.1f} s")
    return found


def batch(data: Path, rows: int, queries: list[str], folder: Path) -> dict[str, float]:
    """Seconds that Spark needs for each query over the same rows in Parquet files: the better of two runs."""
    files = folder / "lineitem"
    files.mkdir()
    for number, piece in enumerate(rows_of(data, "lineitem", rows)):
        pq.write_table(piece, files / f"{number:04}.parquet")
    spark = start("batch", settings=BATCH)
    spark.read.parquet(str(files)).createOrReplaceTempView("lineitem")
    spark.read.parquet(*map(str, data.glob("orders-*.parquet"))).createOrReplaceTempView("orders")
    found = {}
    for query in queries:
        took = []
        for _ in range(_RUNS):
            started = time.perf_counter()
            spark.sql(QUERIES[query]).write.format("noop").mode("overwrite").save()
            took.append(time.perf_counter() - started)
        found[query] = min(took)
    spark.stop()
    return found


def compare(data: Path, rows: int, queries: list[str]) -> list[Line]:
    """Ours and Spark's."""
    say(f"load: {rows:,} rows")
    with scratch("load") as folder:
        filled = ours(data, rows, queries, folder)
    with scratch("load") as folder:
        computed = batch(data, rows, queries, folder)
    lines = []
    for query in queries:
        seconds, memory, disk = filled[query]
        note = (
            f"{seconds / computed[query]:.1f}x its time; {memory / 2**30:.1f} GiB, {disk / 2**30:.2f} GiB on disk"
        )
        detail = {"seconds": seconds, "batch": computed[query], "memory": memory, "disk": disk}
        rates = [rows / seconds], [rows / computed[query]]
        lines.append(Line(f"{query}, {rows:,} rows", *rates, _BAR, "rows/s", note, detail))
    return lines


def main() -> None:
    """Run it, print a table and keep it as a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--queries", nargs="+", default=list(QUERIES), choices=list(QUERIES))
    parser.add_argument("--quick", action="store_true", help="two million rows")
    given = parser.parse_args()
    scale = _QUICK_SCALE if given.quick else _SCALE
    data = CACHE / f"tpch-{scale}"
    tpch.made(data, scale)
    lines: list[Line] = []
    for rows in _QUICK_ROWS if given.quick else given.rows:
        lines += compare(data, rows, given.queries)
    print(show(lines))
    print(f"written to {results.write(lines, 'load')}")


if __name__ == "__main__":
    main()
