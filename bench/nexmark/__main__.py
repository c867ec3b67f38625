"""Nexmark: `python -m bench.nexmark` (`make bench-nexmark`). Every query, ours against Flink on the same events.

Ours takes in events that are in the log already, in ticks of at most two million rows and three seconds, to the
commit of the last change. Flink SQL reads the same events from Parquet into a sink that throws them away, once
with state in RocksDB and checkpoints every 10 seconds, which is what ours is compared with since ours is lasting
too, and once with state on the heap. Spark's own batch answer is what the engine underneath could do at best.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import results
from bench.nexmark import batch, events, flink, ours
from bench.nexmark.queries import QUERIES
from bench.progress import say
from bench.table import Line, show
from bench.workspace import CannotMeasure

_STATELESS = {"q0", "q1", "q2", "q10", "q14", "q21", "q22"}
_QUICK = 500_000


def compare(query: str, data: Path, count: int, *, peers: bool) -> list[Line]:
    """One query, everybody in turn."""
    say(f"Nexmark: {query}, ours")
    one = ours.measure(query, QUERIES[query], data, count)
    say(f"Nexmark: {query}, batch")
    limit = count / batch.measure(QUERIES[query], data)
    detail = {**one.as_json(), "batch": limit, "stateless": query in _STATELESS}
    gib = 2**30
    note = (
        f"{one.rate / limit:.1%} of batch; {len(one.ticks)} ticks, slowest {max(s for _, s in one.ticks):.1f} s; "
        f"{one.memory / gib:.1f} GiB, {one.state_bytes / gib:.2f} GiB on disk"
    )
    lines = []
    for state, bar in ((flink.ROCKSDB, 1.0), (flink.HEAP, None)) if peers else ():
        say(f"Nexmark: {query}, Flink with {state}")
        try:
            ran = flink.measure(query, data, state)
        except CannotMeasure as reason:
            lines.append(Line(f"{query}, {state}", [one.rate], None, None, "events/s", str(reason), detail))
            continue
        detail = {**detail, f"flink {state}": {"seconds": ran.seconds, "memory": ran.memory}}
        lines.append(Line(f"{query}, {state}", [one.rate], [count / ran.seconds], bar, "events/s", note, detail))
    return lines or [Line(query, [one.rate], None, None, "events/s", note, detail)]


def main() -> None:
    """Run it, print a table and keep it as a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--queries", nargs="+", default=list(QUERIES), choices=list(QUERIES), metavar="q")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK:,} events and a few queries")
    parser.add_argument("--alone", action="store_true", help="without Flink")
    given = parser.parse_args()
    count = _QUICK if given.quick else given.events
    queries = [q for q in given.queries if not given.quick or q in {"q0", "q3", "q4", "q17", "q18"}]
    data = events.made(count)
    lines: list[Line] = []
    for query in queries:
        made = compare(query, data, count, peers=not given.alone)
        print(show(made), flush=True)
        lines += made
    print("\n" + show(lines))
    print(f"written to {results.write(lines, 'nexmark')}")


if __name__ == "__main__":
    main()
