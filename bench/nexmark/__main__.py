"""Nexmark: `python -m bench.nexmark` (`make bench-nexmark`). Every query, ours against Flink on the same events.

Ours takes in events that are in the log already, in ticks of at most two million rows and three seconds, to the
commit of the last change. Flink SQL reads the same events from Parquet into a sink that throws them away, once
with state in RocksDB and checkpoints every 10 seconds, which is what ours is compared with since ours is lasting
too, and once with state on the heap. Both have seen the query before, on a few events. Spark's own batch answer is
what the engine underneath could do at best; its Structured Streaming runs beside where it can run the query.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from bench import results
from bench.nexmark import batch, events, flink, native, ours, recorded
from bench.nexmark.queries import QUERIES
from bench.processes import growth
from bench.progress import say
from bench.table import Line, memory_line, show
from bench.workspace import CannotMeasure
from headwater.spark.session.start import start

_STATELESS = {"q0", "q1", "q2", "q10", "q14", "q21", "q22"}
_WARMING, _QUICK_WARMING = 1_000_000, 200_000
"""Events on which everybody has seen a query before: enough for ours to take the path that it is measured on."""
_QUADRATIC = {"q7": 2_000_000}
"""Queries for which a peer's time grows with the square of the events, and so many of them for everybody."""
_QUICK = 500_000
_QUICK_QUERIES = {"q0", "q3", "q4", "q17", "q18"}
_EACH, _STATEFUL, _ON_HEAP = 1.0, 3.0, 1.5
"""So many times Flink with RocksDB: each query, those with state together; all, where its state is on the heap."""
_GIB = 2**30


def compare(query: str, data: Path, warm: Path, count: int, *, peers: bool) -> list[Line]:
    """One query, everybody in turn: a line against Flink with each kind of state."""
    say(f"Nexmark: {query}, ours")
    one = ours.measure(query, QUERIES[query], data, warm, count)
    say(f"Nexmark: {query}, batch")
    limit = count / batch.measure(QUERIES[query], data)
    detail: dict[str, Any] = {**one.as_json(), "batch": limit, "stateless": query in _STATELESS}
    note = (
        f"{one.rate / limit:.1%} of batch; {len(one.ticks)} ticks, slowest {max(s for _, s in one.ticks):.1f} s; "
        f"merging {one.merging:.1f} s more; {one.memory / _GIB:.1f} GiB, {one.state_bytes / _GIB:.2f} GiB on disk"
    )
    if not peers:
        return [Line(query, [one.rate], None, None, "events/s", note, detail)]
    say(f"Nexmark: {query}, Structured Streaming")
    detail["native"] = _rate(count, lambda: native.measure(QUERIES[query], data))
    note += "; " + _beside("Structured Streaming", one.rate, detail["native"])
    for name, figures in (("Feldera", recorded.FELDERA), ("Flink", recorded.FLINK_ROCKSDB)):
        if query in figures:
            note += "; " + _beside(f"{name}, recorded,", one.rate, 1e6 * figures[query])
    lines = []
    for state, bar in ((flink.ROCKSDB, _EACH), (flink.HEAP, None)):
        say(f"Nexmark: {query}, Flink with {state}")
        try:
            ran = flink.measure(query, data, warm, state)
        except CannotMeasure as reason:
            lines.append(Line(f"{query}, {state}", [one.rate], None, None, "events/s", f"{reason}; {note}", detail))
            continue
        detail = {**detail, f"flink {state}": {"seconds": ran.seconds, "memory": ran.memory}}
        lines.append(Line(f"{query}, {state}", [one.rate], [count / ran.seconds], bar, "events/s", note, detail))
    return lines


def _rate(count: int, seconds: Callable[[], float]) -> float | str:
    try:
        return count / seconds()
    except CannotMeasure as reason:
        return str(reason)


def _beside(name: str, ours: float, theirs: float | str) -> str:
    return theirs if isinstance(theirs, str) else f"{name} {theirs:,.0f} = {ours / theirs:.2f}x"


def together(lines: list[Line]) -> list[Line]:
    """All queries as one figure, against each kind of state, and the most memory that one had."""
    found = []
    for state, kind, bar in (
        (flink.ROCKSDB, "with state", _STATEFUL),
        (flink.ROCKSDB, "all", None),
        (flink.HEAP, "all", _ON_HEAP),
    ):
        kept = [line for line in lines if line.what.endswith(state)]
        ratios = [line.ratio for line in kept if line.ratio and (kind == "all" or not line.detail["stateless"])]
        if ratios:
            what = f"geometric mean, {kind}, {state}"
            found.append(Line(what, [geometric_mean(ratios)], [1.0], bar, "times", f"{len(ratios)} queries"))
    most = max(growth(line.detail["anonymous"]) for line in lines)
    note = f"from the second quarter of a query's time to the last it grew {most:.2f} times at the most"
    return [*found, memory_line(max(line.detail["memory"] for line in lines), note)]


def main() -> None:
    """Run it, print a table and keep it as a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--queries", nargs="+", default=list(QUERIES), choices=list(QUERIES), metavar="q")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK:,} events and a few queries")
    parser.add_argument("--alone", action="store_true", help="without Flink")
    given = parser.parse_args()
    count = _QUICK if given.quick else given.events
    queries = [q for q in given.queries if not given.quick or q in _QUICK_QUERIES]
    warm = events.made(_QUICK_WARMING if given.quick else _WARMING)
    start("bench", master="local[2]")  # for all of them
    lines: list[Line] = []
    for query in queries:
        few = min(count, _QUADRATIC.get(query, count))
        made = compare(query, events.made(few), warm, few, peers=not given.alone)
        print(show(made), flush=True)
        lines += made
    lines += together(lines)
    print("\n" + show(lines))
    print(f"written to {results.write(lines, 'nexmark', events.SEED)}")


if __name__ == "__main__":
    main()
