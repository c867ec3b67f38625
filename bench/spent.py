"""Where the time of ticks goes: `python -m bench.spent` (`make bench-spent`).

Two kinds of work, each watched by py-spy, in this process and in Spark's workers: small ticks of the shop's five
views, and large ticks of queries of Nexmark. Seconds in which a thread was busy are counted for the innermost
function of ours that was running, whatever Arrow or NumPy did for it; those of Java are its processor time.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import headwater as hw
from bench.latency import FAST, stocked, traffic
from bench.nexmark import events, ours
from bench.nexmark.queries import QUERIES
from bench.processes import family, processor_seconds_of
from bench.progress import say
from bench.workspace import scratch
from headwater.spark.session.start import start

_RATE = 100
_SHOP_SECONDS = 20
_WARMING = 200_000
_OURS = re.compile(r"^(\w+) \(.*headwater/([\w/]+)\.py:\d+\)$")
_SHOWN = 18
_QUERIES = ["q1", "q5", "q9", "q17"]


def spent(work: Callable[[], object], folder: Path) -> dict[str, float]:
    """Busy seconds by function of ours, and of Java, while the work is done."""
    raw = folder / "samples.txt"
    watch = [str(Path(sys.executable).parent / "py-spy"), "record", "--pid", str(os.getpid()), "--subprocesses"]
    options = ["--rate", str(_RATE), "--format", "raw", "--nonblocking", "--output", str(raw)]
    with subprocess.Popen([*watch, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as watcher:
        before = _java_seconds()
        work()
        java = _java_seconds() - before
        watcher.send_signal(signal.SIGINT)
    found: dict[str, float] = defaultdict(float)
    for line in raw.read_text().splitlines():
        frames, _, count = line.rpartition(" ")
        found[_place(frames.split(";"))] += int(count) / _RATE
    found["Java"] = java
    return found


def _place(frames: list[str]) -> str:
    """The innermost function of ours in a stack."""
    for frame in reversed(frames):
        if (ours := _OURS.match(frame)) is not None:
            return f"{ours[2]}: {ours[1]}"
    return "outside: pyspark, this benchmark"


def _java_seconds() -> float:
    mine = [each for each in family(os.getpid()) if _command(each).endswith("java")]
    return sum(map(processor_seconds_of, mine))


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().split("\0")[0]
    except OSError:
        return ""


def shop(folder: Path) -> dict[str, float]:
    """Small ticks: 10,000 rows a second for a while."""
    with hw.Pipeline("shop", folder / "shop") as pipeline:
        stocked(pipeline)
        traffic(pipeline, FAST, _SHOP_SECONDS, 0)
        return spent(lambda: traffic(pipeline, FAST, _SHOP_SECONDS, 100_000_000), folder)


def nexmark(query: str, count: int, folder: Path) -> dict[str, float]:
    """Large ticks of one query."""
    ours.run(query, QUERIES[query], events.made(_WARMING), _WARMING)
    data = events.made(count)
    return spent(lambda: ours.run(query, QUERIES[query], data, count), folder)


def show(what: str, found: dict[str, float]) -> str:
    """The places that took most, and the rest."""
    whole = sum(found.values())
    most = sorted(found.items(), key=lambda one: -one[1])[:_SHOWN]
    shown = [*most, ("the rest", whole - sum(seconds for _, seconds in most))]
    lines = [f"{seconds:8.2f} s {seconds / whole:6.1%}  {place}" for place, seconds in shown]
    return "\n".join([f"\n{what}: {whole:.1f} busy seconds", *lines])


def main() -> None:
    """Run it and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--queries", nargs="*", default=_QUERIES, choices=list(QUERIES), metavar="q")
    parser.add_argument("--no-shop", action="store_true", help="large ticks only")
    given = parser.parse_args()
    start("spent", master="local[2]")
    if not given.no_shop:
        say("spent: the shop")
        with scratch("spent") as folder:
            print(show("the shop, 10,000 rows a second through five views, sending included", shop(folder)))
    for query in given.queries:
        say(f"spent: {query}")
        with scratch("spent") as folder:
            print(show(f"{query}, {given.events:,} events, loading included", nexmark(query, given.events, folder)))


if __name__ == "__main__":
    main()
