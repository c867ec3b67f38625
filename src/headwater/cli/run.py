"""`headwater run`: drives the pipeline of a program, a tick whenever data arrives."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.cli.options import add_json, whole
from headwater.cli.program import Program
from headwater.cli.text import count
from headwater.cli.waiting import saying
from headwater.pipeline.opened import declared_views, filling, get_ready, suspended

if TYPE_CHECKING:
    from headwater import Pipeline, Tick

_STEP = 0.5
_TELL = 2.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to run, and for how long."""
    parser.add_argument(
        "program", metavar="FILE[:NAME]", help="a Python file that makes a pipeline, such as shop.py"
    )
    parser.add_argument("--seconds", type=whole(1), metavar="N", help="end after so many seconds (default: Ctrl-C)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Load the program and tick until the time is up or someone presses Ctrl-C. A line for every tick."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        program = Program(arguments.program)
        with saying(f"loading {program.path}: a view that is new needs Spark, which takes some seconds to start"):
            pipeline = program.pipeline()
        with pipeline:
            with saying("starting Spark"):
                get_ready(pipeline)
            _drive(pipeline, arguments.seconds, as_json=arguments.json)
    except KeyboardInterrupt:
        _say("ended; nothing of a tick under way was kept")
    return 0


def _drive(pipeline: Pipeline, seconds: int | None, *, as_json: bool) -> None:
    ending = _Ending()
    ticks = 0

    standing = _Standing(pipeline)

    def show(tick: Tick) -> bool:
        nonlocal ticks
        ticks += 1
        _print(tick, as_json=as_json)
        standing.tell()
        return ending.asked

    _say(f"{pipeline.name} runs in {pipeline.path}; Ctrl-C ends it")
    deadline = None if seconds is None else time.monotonic() + seconds
    left: float = _STEP
    with _progress(pipeline):
        while left > 0 and not ending.asked:
            pipeline.run(seconds=left, until=show)
            left = _STEP if deadline is None else min(_STEP, deadline - time.monotonic())
    _say(f"ended after {count(ticks, 'tick')}")


class _Standing:
    """Says which views stand still, when that changes."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._told: dict[str, str] = {}
        self.tell()

    def tell(self) -> None:
        """Say what is new."""
        now = suspended(self._pipeline)
        for name, reason in now.items():
            if self._told.get(name) != reason:
                _say(f"view {name} is suspended, the others go on: {reason}")
        gone = self._told.keys() - now.keys()
        for name in gone & declared_views(self._pipeline) if gone else ():
            _say(f"view {name} is no longer suspended")
        self._told = now


@contextlib.contextmanager
def _progress(pipeline: Pipeline) -> Iterator[None]:
    """Say every two seconds what is being filled."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(_TELL):
            if doing := ", ".join(f"{name} from {rows:,} rows" for name, rows in filling(pipeline).items()):
                _say(f"filling {doing} …")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class _Ending:
    """Ctrl-C and SIGTERM: the first lets the tick under way end, the second does not.

    To be made after Spark has started, which takes the signal for itself.
    """

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def _print(tick: Tick, *, as_json: bool) -> None:
    """For people beside whatever their program prints; JSON, which programs read, on standard output."""
    if as_json:
        print(json.dumps(dataclasses.asdict(tick), default=str), flush=True)
        return
    views = ", ".join(
        f"{name} {rows:,} ({tick.paths.get(name, 'no work')})" for name, rows in sorted(tick.rows_out.items())
    )
    _say(f"tick {tick.number}: {count(tick.rows_in, 'row')} in, {tick.seconds:.3f} s{'; ' if views else ''}{views}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
