"""Warm small ticks of this tree against those of an earlier commit: `python -m bench.against REVISION`.

Two processes, one of each, with the same shop as `bench.tick`, tick in turn: so whatever else the machine does
falls on both. A pair is a round of ticks of either. It tells the ratio of their medians over all pairs, and where
the median ratio lies with 95 % (bootstrapped): in time, and in processor time of the process without that of Java.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench.workspace import BENCH, CACHE, scratch

_CHILD = """
import json, sys, time
from pathlib import Path
from bench.tick import orders, shop
pipeline, table, random = shop(Path(sys.argv[1]), {rows}, 1)
def ticks(count):
    found = []
    for _ in range(count):
        table.upsert(orders(random, random.choice({rows}, {changed}, replace=False), max(1, {rows} // 100)))
        began = time.perf_counter(), time.process_time()
        pipeline.tick()
        found.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    return found
ticks({warming})
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps(ticks(int(line))), flush=True)
pipeline.close()
"""


class Side:
    """A process of one tree that ticks when it is asked to."""

    def __init__(self, tree: Path, folder: Path, rows: int, changed: int, warming: int) -> None:
        program = _CHILD.format(rows=rows, changed=changed, warming=warming)
        environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{tree}"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, str(folder)],
            cwd=tree,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait(self) -> None:
        """Return when it is warm."""
        while self._line() != "ready":
            pass

    def ticks(self, count: int) -> np.ndarray[Any, Any]:
        """The medians, over so many ticks, of their seconds and of their processor time."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        found: np.ndarray[Any, Any] = np.median(np.array(json.loads(self._line())), axis=0)
        return found

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            message = "a side has ended; see what it has told above"
            raise RuntimeError(message)
        return line.strip()

    def close(self) -> None:
        """Have it end."""
        self._process.communicate()


def tree_of(revision: str) -> Path:
    """A work tree of a commit, which is kept."""
    name = _git("rev-parse", "--short", f"{revision}^{{commit}}")
    tree = CACHE / "trees" / name
    if not tree.exists():
        _git("worktree", "add", "--detach", str(tree), name)
    return tree


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(BENCH), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def interval(ratios: list[float]) -> tuple[float, float]:
    """Between what the median of such ratios lies with 95 %."""
    random = np.random.default_rng(1)
    medians = np.median(random.choice(ratios, (10_000, len(ratios))), axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--ticks", type=int, default=20)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--changed", type=int, default=1_000)
    parser.add_argument("--warming", type=int, default=60)
    given = parser.parse_args()
    with scratch("against") as folder:
        trees = {"now": BENCH.parent, "then": tree_of(given.revision)}
        sides = {
            name: Side(tree, folder / name, given.rows, given.changed, given.warming)
            for name, tree in trees.items()
        }
        for each in sides.values():
            each.wait()
        found: dict[str, list[np.ndarray[Any, Any]]] = {name: [] for name in sides}
        for number in range(given.pairs):
            for name in sorted(sides, reverse=bool(number % 2)):
                found[name].append(sides[name].ticks(given.ticks))
        for each in sides.values():
            each.close()
    for place, what in enumerate(("seconds", "processor seconds")):
        now, then = ([float(each[place]) for each in found[name]] for name in ("now", "then"))
        ratios = [one / other for one, other in zip(now, then, strict=True)]
        low, high = interval(ratios)
        middle = f"{statistics.median(now) * 1000:.1f} ms against {statistics.median(then) * 1000:.1f} ms"
        print(f"{what}: {middle}, ratio {statistics.median(ratios):.2f} [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    main()
