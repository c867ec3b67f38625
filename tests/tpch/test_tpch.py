"""The 22 queries of TPC-H as views, kept up to date through a stream of changes and held against batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.testing import ManualClock, assert_same_as_batch
from tests.inside import driver_of
from tests.tpch.refresh import Change, Refresh
from tests.tpch.source import TABLES, Source, Unobtainable, source

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TICKS = 4
SEED = 20260701


@pytest.fixture(scope="session")
def tpch() -> Source:
    try:
        return source(0.01)
    except Unobtainable as error:
        pytest.skip(f"TPC-H cannot be had here: {error}")


class Warehouse:
    """A pipeline over TPC-H: what it refused, and what its views came to."""

    def __init__(self, folder: Path, path: str, tpch: Source) -> None:
        self.path = path
        self.pipeline = hw.Pipeline("warehouse", folder, clock=ManualClock())
        self.refused: dict[str, str] = {}
        self.rows: dict[str, Counter[str]] = {}
        self.changed: Counter[str] = Counter()
        for name, declared in TABLES.items():
            self.pipeline.table(name, declared.schema, key=list(declared.key), durability="none")
        for name, sql in tpch.queries.items():
            try:
                self.pipeline.view(name, sql)
                self.rows[name] = Counter()
            except hw.ViewRefused as error:
                self.refused[name] = str(error)

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Take in whole tables."""
        with self.pipeline.transaction() as transaction:
            for name in TABLES:
                transaction.upsert(name, tables[name])
        self._tick()

    def refresh(self, changes: list[Change]) -> None:
        """Take in the changes of one tick, and note which results they changed."""
        with self.pipeline.transaction() as transaction:
            for change in changes:
                transaction.delete(change.table, change.deletes)
                transaction.upsert(change.table, change.upserts)
        before = dict(self.rows)
        tick = self._tick()
        assert set(tick.paths.values()) <= {self.path}, tick.paths
        self.changed.update(name for name, rows in self.rows.items() if rows != before[name])

    def _tick(self) -> hw.Tick:
        if self.path == "large":
            driver_of(self.pipeline).small_rows = 0
        tick = self.pipeline.tick()
        assert tick is not None
        assert_same_as_batch(self.pipeline)
        self.rows = {name: Counter(map(repr, self.pipeline.read(name).to_pylist())) for name in self.rows}
        return tick

    def report(self) -> str:
        """Every view with its rows and in how many ticks it changed; then the refusals."""
        views = [f"{name} ({rows.total()} rows, {self.changed[name]} ticks)" for name, rows in self.rows.items()]
        kept = f"TPC-H {len(views)}/{len(views) + len(self.refused)}: {' '.join(views)}"
        return "\n".join([kept, *(f"{name} was refused: {reason}" for name, reason in self.refused.items())])


@pytest.fixture(params=["small", "large"])
def warehouse(
    tmp_path: Path, request: pytest.FixtureRequest, tpch: Source, spark: SparkSession
) -> Iterator[Warehouse]:
    made = Warehouse(tmp_path, request.param, tpch)
    yield made
    made.pipeline.close()


@pytest.mark.timeout(3600)
def test_all_22_views_stay_equal_to_batch(
    warehouse: Warehouse, tpch: Source, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = Refresh(tpch.tables, seed=SEED)
    warehouse.load(tpch.tables)
    for changes in islice(stream.ticks(), TICKS):
        warehouse.refresh(changes)
    with capsys.disabled():
        print(f"\n{warehouse.path}: {warehouse.report()}")
    for name, table in stream.tables.items():
        assert warehouse.pipeline.read(name).num_rows == table.num_rows
    if warehouse.refused:
        pytest.fail(warehouse.report(), pytrace=False)
    assert set(warehouse.changed) == set(tpch.queries), "the stream misses some of the queries"


def test_the_same_seed_gives_the_same_stream(tpch: Source) -> None:
    one, other = (list(islice(Refresh(tpch.tables, seed=SEED).ticks(), 3)) for _ in range(2))
    assert one == other


def test_after_every_tick_no_row_points_nowhere(tpch: Source) -> None:
    stream = Refresh(tpch.tables, seed=SEED)
    points = {
        ("lineitem", "l_orderkey"): ("orders", "o_orderkey"),
        ("lineitem", "l_partkey", "l_suppkey"): ("partsupp", "ps_partkey", "ps_suppkey"),
        ("partsupp", "ps_suppkey"): ("supplier", "s_suppkey"),
        ("partsupp", "ps_partkey"): ("part", "p_partkey"),
        ("orders", "o_custkey"): ("customer", "c_custkey"),
        ("orders", "o_orderkey"): ("lineitem", "l_orderkey"),
        ("customer", "c_nationkey"): ("nation", "n_nationkey"),
        ("supplier", "s_nationkey"): ("nation", "n_nationkey"),
    }
    for _ in islice(stream.ticks(), TICKS):
        for (name, *columns), (other, *key) in points.items():
            rows = stream.tables[name].select(columns)
            assert rows.join(stream.tables[other].select(key), columns, key, "left anti").num_rows == 0, (
                name,
                columns,
            )
        for name, declared in TABLES.items():
            keys = stream.tables[name].select(list(declared.key))
            assert keys.group_by(list(declared.key)).aggregate([]).num_rows == keys.num_rows, name
