"""A living reader keeps the files of what it reads, however many ticks come; a dead one keeps nothing."""

from __future__ import annotations

import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

import headwater as hw
from headwater.state import Pins
from headwater.state.manifest import Manifest
from tests.crash import expected, shop
from tests.crash.children import child, told
from tests.crash.hand_engine import drive
from tests.inside import driver_of, store_of
from tests.read.hand import rows_of, summed

TICKS = 80
RETAINED = 3
ORDERS = "id BIGINT NOT NULL, customer BIGINT, cents BIGINT"


def read_slowly(pipe: Connection, path: str) -> None:
    """Take one table of changes, wait; when told a tick, take all up to that one, and say what they add up to."""
    with shop.opened(path) as pipeline:
        changes = pipeline.changes("orders", follow=True)
        tables = [next(changes)]
        pipe.send(tables[0]["_tick"][0].as_py())
        last = pipe.recv()
        while tables[-1]["_tick"][0].as_py() < last:
            tables.append(next(changes))
        pipe.send(summed(tables))
        pipe.recv()


def driven(pipeline: hw.Pipeline) -> shop.Traffic:
    drive(pipeline)
    shop.declare_views(pipeline)
    traffic = shop.Traffic(pipeline, "pins")
    tick(pipeline, traffic, RETAINED)
    return traffic


def tick(pipeline: hw.Pipeline, traffic: shop.Traffic, count: int) -> None:
    for _ in range(count):
        for _ in range(3):
            traffic.step()
        pipeline.tick()


def files(pipeline: hw.Pipeline) -> set[str]:
    return {path.name for path in Path(pipeline.path, "state").glob("*.runs")}


def named(pipeline: hw.Pipeline) -> set[str]:
    return {run.file for detail in store_of(pipeline).files() for run in Manifest.from_dict(detail).runs}


def kept(pipeline: hw.Pipeline) -> list[int]:
    return [number for number, _ in store_of(pipeline).ticks()]


@pytest.mark.slow
def test_a_slow_reader_in_another_process_keeps_its_changes_over_eighty_ticks(tmp_path: Path) -> None:
    with shop.opened(str(tmp_path), views=False, retain_ticks=RETAINED) as pipeline:
        traffic = driven(pipeline)
        with child(read_slowly, str(tmp_path)) as (_, pipe):
            began = told(pipe)
            tick(pipeline, traffic, TICKS)
            assert kept(pipeline)[0] <= began
            assert named(pipeline) <= files(pipeline)
            orders = pipeline.table("orders", ORDERS, key="id", partitions=2)
            orders.upsert([{"id": 5000, "customer": 1, "cents": 1}])
            pipeline.tick()
            pipe.send(last := kept(pipeline)[-1])
            assert told(pipe) == rows_of(pipeline.read("orders", as_of=last))
        tick(pipeline, traffic, 10)
        assert kept(pipeline)[0] > last - 10
        expected.check(pipeline)


def test_a_killed_readers_pin_is_given_up_and_its_files_go(tmp_path: Path) -> None:
    with shop.opened(str(tmp_path), views=False, retain_ticks=RETAINED) as pipeline:
        traffic = driven(pipeline)
        with child(read_slowly, str(tmp_path)) as (process, pipe):
            began = told(pipe)
            tick(pipeline, traffic, 10)
            assert kept(pipeline)[0] <= began
            process.kill()
            process.join()
        tick(pipeline, traffic, 10)
        assert kept(pipeline)[0] > began + 5
        assert not list(Path(pipeline.path, "state", "pins").iterdir())
        assert files(pipeline) == named(pipeline)


def test_a_reader_that_pins_between_forgetting_and_sweeping_keeps_its_files(tmp_path: Path) -> None:
    """Also if the driver dies in between, and another one begins with sweeping."""
    with shop.opened(str(tmp_path), views=False, retain_ticks=RETAINED) as pipeline:
        traffic = driven(pipeline)
        state = tmp_path / "state"
        oldest = kept(pipeline)[0]
        garbage = state / "0-1-abandoned.runs"
        garbage.touch()
        with Pins(str(state)).hold(10_000):  # of a tick that was just forgotten
            driver_of(pipeline)._checked = 0
            tick(pipeline, traffic, 1)
            assert garbage.exists()
        driver_of(pipeline)._checked = 0
        tick(pipeline, traffic, 1)
        assert not garbage.exists()
        assert oldest in kept(pipeline)


def test_a_child_that_only_reads_needs_no_spark(tmp_path: Path) -> None:
    with shop.opened(str(tmp_path), views=False) as pipeline:
        driven(pipeline)
    code = (
        "import sys; from tests.crash import shop\n"
        f"with shop.opened({str(tmp_path)!r}) as p:\n"
        "    p.read('total'); p.lookup('dear', 1); list(p.changes('revenue')); p.query('SELECT * FROM words')\n"
        "assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
