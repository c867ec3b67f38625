"""Appends to a topic with 10,000 sealed segments behind it, against appends to one with none.

The long topic is filled by a process whose HEADWATER_SEGMENT_BYTES makes every append seal a segment. Then one
process with the ordinary size has the topics open and appends to them in turn, in short slices and in an order
that rotates, so that whatever else the machine does falls on all. Without fsync, where a cost per append would
show the most. A third topic, as empty as the second, is the control: as far as its ratio to the second is from 1,
so far can the result be off by chance. If that is more than the 5 % the bar leaves, the bar is not judged.
"""

import multiprocessing
import os
import time
from pathlib import Path

from bench import rows
from bench.headwater_producers import append_until, open_pipeline
from bench.progress import say
from bench.table import Line
from bench.workspace import scratch

BAR = 0.95
SEGMENTS = 10_000
_SLICE_SECONDS = 0.25
_SLICES_PER_ROUND = 9


def compare(rounds: int, segments: int = SEGMENTS) -> list[Line]:
    """Fill, then measure both topics in turn."""
    with scratch("segments") as path:
        say(f"filling a topic with {segments:,} segments")
        context = multiprocessing.get_context("spawn")
        filler = context.Process(target=_fill, args=(path, segments))
        filler.start()
        filler.join()
        if filler.exitcode != 0:
            message = f"the process that fills the topic ended with {filler.exitcode}"
            raise RuntimeError(message)
        files = sum(len(names) for _, _, names in os.walk(path))
        say("appending to it and to an empty topic in turn")
        rates = _measure(path, rounds * _SLICES_PER_ROUND)
    what = f"append, none, {segments:,} segments behind against none"
    control = Line("control: none against none", rates["control"], rates["short"])
    line = Line(what, rates["long"], rates["short"], BAR, note=f"{files:,} files", detail={"files": files})
    if control.ratio is None or abs(control.ratio - 1) > 1 - BAR:
        line.bar = None
        line.note += (
            f"; NOT JUDGED against {BAR:g}x: the control is off by more than that, run on a quieter machine"
        )
    return [line, control]


def _fill(path: Path, segments: int) -> None:
    os.environ["HEADWATER_SEGMENT_BYTES"] = "1"
    batch = rows.record_batch(0).slice(0, 1)
    with open_pipeline(path) as pipeline:
        stream = pipeline.stream("long", rows.SCHEMA, durability="none")
        for _ in range(segments + 1):
            stream.append(batch)


def _measure(path: Path, slices: int) -> dict[str, list[float]]:
    batches = [rows.record_batch(number * rows.ROWS_PER_BATCH) for number in range(64)]
    names = ["long", "short", "control"]
    rates: dict[str, list[float]] = {name: [] for name in names}
    with open_pipeline(path) as pipeline:
        streams = {name: pipeline.stream(name, rows.SCHEMA, durability="none") for name in names}
        for number in range(slices + 3):
            names.append(names.pop(0))
            for name in names:
                started = time.monotonic()
                appended = append_until(streams[name], batches, started + _SLICE_SECONDS)
                if number >= 3:  # The first slices open files and fill caches.
                    rates[name].append(appended / (time.monotonic() - started))
    return rates
