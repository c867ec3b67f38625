"""What a change costs: `python -m bench.change` (`make bench-change`).

Queries of TPC-H as views at several scale factors, and the same small change at each: so many new orders with their
lineitems, and as many old ones deleted, in tables that the query may not read too. Printed is the median time of a
tick at each scale, their ratio, the most memory that all processes had, and, with `--recompute`, how long Spark
needs to compute the query anew from Parquet.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq
from tests.tpch.source import TABLES

import headwater as hw
from bench import results, tpch
from bench.processes import Memory, Peak, memory
from bench.table import Line, memory_line, show
from bench.workspace import BATCH, BENCH, size

Keys = npt.NDArray[np.int64]

QUERIES = ["q1", "q3", "q5", "q9", "q13", "q18", "q21"]
_SEED = 20261120
_CHUNK = 1_000_000
_WARM = 15
_LONGEST = 100
_REWRITTEN = 32 << 20
"""A tick that writes more than so many bytes anew still merges what loading left."""
_MOST, _LEAST = 1.3, 20.0
"""How much longer a tick may take at the largest scale, and how many times faster it is to be than anew."""


@dataclass
class Measured:
    """One query at one scale: seconds of each tick, state rows that the last read, seconds of a recomputation."""

    scale: float
    query: str
    fill: float = 0.0
    ticks: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    rows_read: int = 0
    recompute: float | None = None
    memory: Memory = field(default_factory=lambda: Memory(0, 0))
    loading: Memory = field(default_factory=lambda: Memory(0, 0))
    anonymous: list[int] = field(default_factory=list)
    disk: int = 0
    """Of all tables, the view, and what is kept of earlier ticks."""

    @property
    def tick(self) -> float:
        """The median of the warm ticks."""
        return statistics.median(self.ticks)


def schema_of(table: str) -> str:
    """The declared columns that the benchmark uses."""
    declared = dict(each.strip().split(" ", 1) for each in _columns(TABLES[table].schema))
    return ", ".join(f"{name} {declared[name]}" for name in tpch.COLUMNS[table])


def _columns(schema: str) -> list[str]:
    parts: list[str] = []
    for piece in schema.split(","):
        if parts and parts[-1].count("(") > parts[-1].count(")"):
            parts[-1] += "," + piece
        else:
            parts.append(piece)
    return parts


class Warehouse:
    """All tables at one scale, loaded into a pipeline once, and one query after the other as a view over them."""

    def __init__(self, data: Path, folder: Path, scale: float) -> None:
        self.memory = Memory(0, 0)
        self._data = data
        self._scale = scale
        self.pipeline = hw.Pipeline("warehouse", folder)
        self.tables = {
            table: self.pipeline.table(table, schema_of(table), key=list(TABLES[table].key), durability="none")
            for table in TABLES
        }
        self._random = np.random.default_rng(_SEED)
        self._made = self._mapped("orders")["o_orderkey"].to_numpy()
        self._held = self._copied = self._made
        self._mapped("lineitem")
        self._next = 10**12

    def load(self) -> None:
        """Append all rows and take them in; no view is there yet."""
        started = time.perf_counter()
        with Peak() as peak:
            for name, target in self.tables.items():
                files = self._data.glob(f"{name}-*.parquet")
                for file in sorted(files, key=lambda path: int(path.stem.split("-")[1])):
                    for batch in pq.ParquetFile(file).iter_batches(_CHUNK):
                        target.upsert(pa.Table.from_batches([batch]))
            loaded = time.perf_counter() - started
            while (tick := self.pipeline.tick()) is not None:
                print(
                    f"  {self._scale:g}: tick {tick.number}, {tick.rows_in:,} rows in {tick.seconds:.1f} s",
                    flush=True,
                )
        self.memory = peak.memory
        taken = time.perf_counter() - started - loaded
        print(f"  {self._scale:g}: loaded in {loaded:.0f} s, taken in within {taken:.0f} s", flush=True)

    def measure(self, query: str, sql: str, orders: int, ticks: int) -> Measured:
        """Fill a view, tick until all is calm, then so many times, and drop it."""
        self.measured = Measured(self._scale, query)
        with Peak() as peak:
            self.pipeline.view(query, sql)
            started = time.perf_counter()
            self.pipeline.tick()
            self.measured.fill = time.perf_counter() - started
            print(f"  {query} at {self._scale:g}: filled in {self.measured.fill:.1f} s", flush=True)
            self.settle(orders)
            self.measured.anonymous = [memory(os.getpid()).anonymous]
            for _ in range(ticks):
                self.change(orders)
                self.measured.anonymous.append(memory(os.getpid()).anonymous)
        self.measured.memory = peak.memory
        self.measured.disk = size(Path(self.pipeline.path) / "state")
        self.pipeline.drop(query)
        return self.measured

    def change(self, orders: int) -> None:
        """Insert so many orders, copies of others under new keys, delete as many, and tick."""
        copied = self._random.choice(self._made, orders, replace=False)
        new = np.arange(self._next, self._next + orders)
        gone = self._random.choice(len(self._held), orders, replace=False)
        self._next += orders
        with self.pipeline.transaction() as transaction:
            for table, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
                transaction.upsert(table, self._rows(table, key, copied, new))
                old = self._rows(table, key, self._copied[gone], self._held[gone])
                transaction.delete(table, old.select(list(TABLES[table].key)).to_pylist())
        self._held = np.append(np.delete(self._held, gone), new)
        self._copied = np.append(np.delete(self._copied, gone), copied)
        tick = self.pipeline.tick()
        assert tick is not None
        self.measured.ticks.append(tick.seconds)
        self.measured.rows_read = tick.rows_read

    def settle(self, orders: int) -> None:
        """Tick until Java and the files are warm, and what loading left is on disk and merged.

        How long those ticks took is said apart.
        """
        os.sync()
        calm = 0
        while calm < _WARM and len(self.measured.ticks) < _LONGEST:
            self.change(orders)
            last = self.pipeline._store.last_tick()
            assert last is not None
            busy = self.pipeline._driver().merging or last.detail["rewritten"] > _REWRITTEN
            calm = 0 if busy else calm + 1
        self.measured.warm, self.measured.ticks = self.measured.ticks, []

    def _mapped(self, table: str) -> pa.Table:
        """The rows of a table's first part, as memory that belongs to a file and not to the pipeline."""
        file = self._data / f"{table}-0.arrow"
        if not file.exists():
            made = file.with_suffix(".part")
            feather.write_feather(pq.read_table(file.with_suffix(".parquet")), made, compression="uncompressed")
            made.rename(file)
        return feather.read_table(file, memory_map=True)

    def _rows(self, table: str, key: str, made: Keys, names: Keys) -> pa.Table:
        """The rows of these orders, each under another key; one may be there several times."""
        rows = self._mapped(table)
        rows = rows.filter(pc.is_in(rows[key], value_set=pa.array(made)))
        named = rows.join(pa.table({key: made, "name": names}), key, join_type="inner")
        return named.set_column(named.schema.get_field_index(key), key, named["name"]).select(rows.column_names)


def recomputed(data: Path, sql: str, runs: int = 2) -> float:
    """Seconds that Spark needs for the query over the Parquet files; the best of some runs."""
    from headwater.spark.session.start import start  # noqa: PLC0415  brings Spark with it

    spark = start("recompute", settings=BATCH)
    for table in tpch.COLUMNS:
        spark.read.parquet(*map(str, data.glob(f"{table}-*.parquet"))).createOrReplaceTempView(table)
    took = []
    for _ in range(runs):
        started = time.perf_counter()
        spark.sql(sql).toArrow()
        took.append(time.perf_counter() - started)
    spark.stop()
    return min(took)


def run(scales: list[float], queries: list[str], orders: int, ticks: int, *, recompute: bool) -> list[Measured]:
    """Every query at every scale, one after the other."""
    found = []
    for scale in scales:
        data = BENCH / ".cache" / f"tpch-{scale:g}"
        texts = tpch.made(data, scale)
        folder = Path(tempfile.mkdtemp(prefix="bench-change-", dir=BENCH / ".cache"))
        try:
            warehouse = Warehouse(data, folder, scale)
            with warehouse.pipeline:
                warehouse.load()
                mine = [warehouse.measure(query, texts[query], orders, ticks) for query in queries]
        finally:
            shutil.rmtree(folder)
        for one in mine:
            one.loading = warehouse.memory
            if recompute:
                one.recompute = recomputed(data, texts[one.query])
            print(_line(one), flush=True)
        found += mine
    return found


def _line(one: Measured) -> str:
    again = f", anew {one.recompute:.2f} s = {one.recompute / one.tick:.0f}x" if one.recompute is not None else ""
    spread = f"{min(one.ticks):.3f} to {max(one.ticks):.3f}"
    return (
        f"{one.query} at {one.scale:g}: filled in {one.fill:.0f} s, tick {one.tick:.3f} s ({spread}), "
        f"{one.rows_read:,} state rows read{again}; {len(one.warm)} before, {statistics.median(one.warm):.3f} s; "
        f"{one.memory.anonymous / 2**30:.1f} GiB, {one.disk / 2**30:.2f} GiB on disk"
    )


def compare(found: list[Measured], scales: list[float], queries: list[str]) -> list[Line]:
    """Each query's ticks at the largest scale against those at the smallest, and against computing it anew."""
    lines = []
    for query in queries:
        mine = {one.scale: one for one in found if one.query == query}
        small, large = mine[min(scales)], mine[max(scales)]
        detail = {"smallest": asdict(small), "largest": asdict(large)}
        ours, smaller = ([1 / tick for tick in one.ticks] for one in (large, small))
        note = f"{large.tick:.3f} s against {small.tick:.3f} s"
        what = f"{query}: at {max(scales):g} against {min(scales):g}"
        lines.append(Line(what, ours, smaller, 1 / _MOST, "ticks/s", note, detail))
        if large.recompute is not None:
            note = f"anew {large.recompute:.2f} s; filled in {large.fill:.0f} s"
            lines.append(Line(f"{query}: against anew", ours, [1 / large.recompute], None, "times/s", note))
    anew = [line.ratio for line in lines if line.unit == "times/s" and line.ratio]
    if anew:
        lines.append(Line("all: against anew", [statistics.geometric_mean(anew)], [1.0], _LEAST, "geometric mean"))
    most = max(each.anonymous for one in found for each in (one.memory, one.loading))
    growth = max(statistics.median(one.anonymous[-5:]) / statistics.median(one.anonymous[:5]) for one in found)
    return [*lines, memory_line(most, f"over the measured ticks it grew {growth:.3f} times at the most")]


def main() -> None:
    """Run it, print a table and keep it as a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=float, nargs="+", default=[1, 10])
    parser.add_argument("--queries", nargs="+", default=QUERIES)
    parser.add_argument("--orders", type=int, default=1500)
    parser.add_argument("--ticks", type=int, default=25)
    parser.add_argument("--recompute", action="store_true", help="compare with computing the query anew")
    parser.add_argument("--quick", action="store_true", help="three queries at a tenth of the scales")
    given = parser.parse_args()
    scales = [scale / 10 for scale in given.scales] if given.quick else given.scales
    queries = ["q1", "q3", "q18"] if given.quick else given.queries
    found = run(scales, queries, given.orders, given.ticks, recompute=given.recompute)
    lines = compare(found, scales, queries)
    print("\n" + show(lines))
    print(f"written to {results.write(lines, 'change', _SEED)}")


if __name__ == "__main__":
    main()
