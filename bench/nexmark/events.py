"""The events of a run as Parquet files, made once: ours, Flink and Spark all read the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from bench.nexmark.generator import Generator
from bench.nexmark.streams import STREAMS
from bench.progress import say
from bench.workspace import CACHE

SEED = 20261116
PART = 500_000


def made(events: int, seed: int = SEED) -> Path:
    """The folder with `<stream>/<part>.parquet`, in the order of the events; the last file says it is complete."""
    folder = CACHE / f"nexmark-{events}-{seed}"
    if not (folder / "complete").exists():
        for stream in STREAMS:
            (folder / stream).mkdir(parents=True, exist_ok=True)
        generator = Generator(seed)
        for part, first in enumerate(range(0, events, PART)):
            say(f"Nexmark: making events {first:,} to {min(first + PART, events):,} of {events:,}")
            for name, table in generator.take(min(PART, events - first)).tables().items():
                pq.write_table(table, folder / name / f"{part:04}.parquet")
        (folder / "complete").touch()
    return folder


def files(folder: Path, stream: str) -> list[Path]:
    """The files of a stream, in order."""
    return sorted((folder / stream).glob("*.parquet"))
