"""What views cost that have nothing to do: `python -m bench.views --views 50 200 1000` (`make bench-views`).

Simple views (filters, sums by a key, joins with a small table) over five tables of 10,000 rows. Three of them
read the last table, seven the one before that, all others the first three. For each number of views it tells what
it takes to declare one; a tick of one row that touches three views, beside a pipeline that has just those three; a
tick of 100 rows that touches all; and the first tick of a new process, when seven views are touched, with what
Spark's start takes of it. All of it with at most 1,024 open files.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater as hw
from bench import results
from bench.progress import say
from bench.table import Line, show
from bench.workspace import scratch

FILES = 1024
ROWS = 10_000
_TABLES = 5
_FEW, _SOME = 3, 10
_KINDS = (
    "SELECT k, count(*) AS n, sum(x) AS s FROM {t} WHERE x % {i} = 0 GROUP BY k",
    "SELECT id, k, x + {i} AS y FROM {t} WHERE x > {i} * 10",
    "SELECT n.name, sum(t.x) AS x FROM {t} t JOIN names n ON t.k = n.k WHERE t.x <> {i} GROUP BY n.name",
)


def table_of(view: int) -> int:
    """Which table a view reads: three views the last one, seven more that before it, all others the rest."""
    if view < _FEW:
        return _TABLES - 1
    return _TABLES - 2 if view < _SOME else view % (_TABLES - 2)


def rows(first: int, count: int) -> pa.Table:
    """Rows with such ids."""
    ids = list(range(first, first + count))
    return pa.table({"id": ids, "k": [each % 50 for each in ids], "x": [each * 7919 % 10_007 for each in ids]})


class Shop:
    """A pipeline with so many views, and its tables."""

    def __init__(self, folder: Path) -> None:
        self.pipeline = hw.Pipeline("views", folder)
        schema = "id BIGINT, k BIGINT, x BIGINT"
        self.tables = [self.pipeline.table(f"t{n}", schema, key="id") for n in range(_TABLES)]
        self.names = self.pipeline.table("names", "k BIGINT, name STRING", key="k")
        self._next = ROWS

    def fill(self) -> None:
        """Have rows in all tables."""
        self.names.upsert([{"k": k, "name": f"name {k % 10}"} for k in range(50)])
        for each in self.tables:
            each.upsert(rows(0, ROWS))

    def declare(self, count: int) -> float:
        """Declare views; seconds for each, once Spark has started."""
        self.pipeline._spark()
        began = time.perf_counter()
        for number in range(count):
            sql = _KINDS[number % len(_KINDS)].format(t=f"t{table_of(number)}", i=number + 1)
            self.pipeline.view(f"v{number}", sql)
        return (time.perf_counter() - began) / count

    def tick(self, count: int, tables: range) -> tuple[float, hw.Tick]:
        """Add so many rows to each of some tables; the seconds of the tick that takes them in."""
        self._next += count
        for number in tables:
            self.tables[number].upsert(rows(self._next, count))
        began = time.perf_counter()
        tick = self.pipeline.tick()
        assert tick is not None
        return time.perf_counter() - began, tick

    def ticks(self, count: int, tables: range, times: int) -> list[float]:
        """The seconds of so many such ticks, once some are done."""
        return [self.tick(count, tables)[0] for _ in range(times + 5)][5:]


def measure(folder: Path, count: int, times: int) -> dict[str, Any]:
    """What a pipeline with so many views takes; of a process that does nothing else."""
    shop = Shop(folder)
    shop.fill()
    declare = shop.declare(count)
    began = time.perf_counter()
    while (tick := shop.pipeline.tick()) is not None:
        say(f"views: {count} of them, filled in tick {tick.number}")
    fill = time.perf_counter() - began
    found = {
        "declare": declare,
        "fill": fill,
        "few": shop.ticks(1, range(_TABLES - 1, _TABLES), times),
        "all": shop.ticks(20, range(_TABLES), max(3, times // 4)) if count > _FEW else [],
        "files": len(os.listdir("/proc/self/fd")),
    }
    shop.pipeline.close()
    return found


def first(folder: Path) -> dict[str, Any]:
    """What the first tick of a process takes, which touches seven views; and of that what Spark takes to start."""
    began = time.perf_counter()
    shop = Shop(folder)
    shop._next += 1_000_000
    parts = time.perf_counter()
    shop.pipeline._spark()
    started = time.perf_counter() - parts
    _, tick = shop.tick(1, range(_TABLES - 2, _TABLES - 1))
    found = {"first": time.perf_counter() - began, "start": started, "touched": len(tick.paths)}
    shop.pipeline.close()
    return found


def _in_a_process(what: str, *given: str) -> dict[str, Any]:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))

    command = [sys.executable, "-m", "bench.views", "--only", what, *given]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, preexec_fn=limited)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def lines(count: int, found: dict[str, Any], alone: dict[str, Any]) -> list[Line]:
    """What was found for a number of views."""
    median = statistics.median(found["few"]) / statistics.median(alone["few"])
    ours = [1 / each for each in found["few"]]
    peer = [1 / each for each in alone["few"]]
    start = f"{found['start']:.1f} s of it Spark's start, {found['touched']} views touched"
    return [
        Line(f"{count} views: to declare one", [found["declare"]], unit="s"),
        Line(f"{count} views: the first fill", [found["fill"]], unit="s"),
        Line(f"{count} views: one row, three touched", ours, peer, 1 / 1.5, "ticks/s", f"takes {median:.2f}x"),
        Line(f"{count} views: 100 rows, all touched", found["all"], None, 1.0 if count <= 200 else None, "s"),
        Line(f"{count} views: first tick of a process", [found["first"]], None, 5.0, "s", start),
        Line(f"{count} views: open files", [found["files"]], None, None, "files", f"at most {FILES}"),
    ]


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--views", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--times", type=int, default=20, help="ticks of each kind")
    parser.add_argument("--only", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        what, folder, *rest = given.only
        print(json.dumps(first(Path(folder)) if what == "first" else measure(Path(folder), *map(int, rest))))
        return
    made: list[Line] = []
    with scratch("views") as folder:
        alone = _in_a_process("measure", str(folder / "alone"), str(_FEW), str(given.times))
        for count in given.views:
            say(f"views: {count}")
            found = _in_a_process("measure", str(folder / str(count)), str(count), str(given.times))
            found |= _in_a_process("first", str(folder / str(count)))
            made += lines(count, found, alone)
    print(show(made))
    results.write(made, "views")


if __name__ == "__main__":
    main()
