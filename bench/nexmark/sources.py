"""Which source Flink reads fastest: `python -m bench.nexmark.sources`. The same events, as Parquet and as CSV."""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from bench.nexmark import events, flink
from bench.nexmark.streams import STREAMS

_WARMING = 200_000


def as_csv(data: Path) -> Path:
    """The events of a folder once more, as Flink's CSV has them."""
    folder = data.with_name(f"{data.name}-csv")
    if not (folder / "complete").exists():
        for stream in STREAMS:
            (folder / stream).mkdir(parents=True, exist_ok=True)
            for file in events.files(data, stream):
                options = csv.WriteOptions(include_header=False)
                csv.write_csv(_plain(pq.read_table(file)), folder / stream / f"{file.stem}.csv", options)
        (folder / "complete").touch()
    return folder


def _plain(table: pa.Table) -> pa.Table:
    """Moments without a zone, to the millisecond."""
    fields = [
        field.with_type(pa.timestamp("ms")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def main() -> None:
    """Run some queries from both, and print their rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--queries", nargs="+", default=["q0", "q2", "q17"], metavar="q")
    given = parser.parse_args()
    data, warm = events.made(given.events), events.made(_WARMING)
    for query in given.queries:
        for source in (flink.PARQUET, flink.CSV):
            folders = (data, warm) if source == flink.PARQUET else (as_csv(data), as_csv(warm))
            ran = flink.measure(query, *folders, flink.HEAP, source)
            print(f"{query} from {source}: {given.events / ran.seconds:,.0f} events/s", flush=True)


if __name__ == "__main__":
    main()
