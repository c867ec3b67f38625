"""`headwater demo`: a small shop is open, and its views are seen to follow what happens."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence

import headwater as hw
from headwater.cli.live import Scene, TopicWatch, ViewWatch, tick_sight
from headwater.cli.options import add_json, whole
from headwater.cli.screens import Screen, choose_screen, view_lines
from headwater.cli.shopkeeping import Ticker, Visitors
from headwater.cli.text import count, size
from headwater.cli.waiting import saying
from headwater.examples.shop import VIEWS, Shop, declare

_ROWS = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    """For how long, where, and whether to check the result."""
    parser.add_argument(
        "--seconds",
        type=whole(1),
        metavar="N",
        help="end after so many seconds, but not before all views are there (default: Ctrl-C)",
    )
    parser.add_argument("--verify", action="store_true", help="at the end, compare every view with a batch query")
    parser.add_argument(
        "--pipeline", metavar="PATH", help="a folder to use and keep (default: a temporary one, removed at the end)"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Open the shop, show it until the time is up or someone has had enough, sum up, and compare."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with _folder(arguments.pipeline) as path, hw.Pipeline("demo", path) as pipeline:
        stage = _Stage(pipeline, choose_screen(as_json=arguments.json))
        if not arguments.json:
            _welcome(path)
        with contextlib.closing(stage), contextlib.suppress(KeyboardInterrupt):
            stage.play(arguments.seconds)
        difference = _compare(pipeline) if arguments.verify and stage.ticker.complete.is_set() else None
        _sum_up(stage, difference, as_json=arguments.json)
    return 1 if difference else 0


@contextlib.contextmanager
def _folder(given: str | None) -> Iterator[str]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        yield folder


def _welcome(path: str) -> None:
    print("A shop's traffic lands on a durable log while Spark starts; then five SQL views follow every change.")
    print(f"From another shell:  headwater query 'FROM revenue' --pipeline {path}\n", flush=True)


class _Stage:
    """The shop, those who work in it, and the screen that shows it."""

    def __init__(self, pipeline: hw.Pipeline, screen: Screen) -> None:
        self.shop: Shop = declare(pipeline)
        self._screen = screen
        self._over = threading.Event()
        self.ticker = Ticker(pipeline, self._over)
        self._visitors = Visitors(pipeline.path)
        self._topics = [TopicWatch(topic) for topic in self.shop]
        self._views = ViewWatch(pipeline, [view.name for view in VIEWS])
        self._began = time.monotonic()
        self.seconds = 0.0

    def play(self, seconds: int | None) -> None:
        """Show how things stand until the time is up or something fails."""
        while True:
            scene = self.scene()
            self._screen.show(scene)
            left = self._screen.interval
            if seconds is not None and self.ticker.complete.is_set():
                left = min(left, seconds - scene.seconds)
            if left <= 0 or self._over.wait(left) or self._visitors.gone:
                return

    def close(self) -> None:
        """End the traffic, let the views take in the last of it."""
        self.seconds = time.monotonic() - self._began
        self._over.set()
        with saying("finishing"):
            try:
                self._visitors.finish()
            finally:
                self.ticker.finish()

    def scene(self) -> Scene:
        """How things stand."""
        ticks: Sequence[hw.Tick] = list(self.ticker.recent)
        return Scene(
            time.monotonic() - self._began,
            [watch.look() for watch in self._topics],
            self.ticker.status,
            tick_sight(ticks),
            self._views.look(ticks[-1] if ticks else None),
        )


def _compare(pipeline: hw.Pipeline) -> str:
    """How the views differ from what Spark answers over everything that was recorded; empty if they do not."""
    same_as_batch = importlib.import_module("headwater.oracle.oracle").same_as_batch  # it brings Spark with it
    with saying("comparing every view with a batch query"):
        try:
            same_as_batch(pipeline)
        except AssertionError as error:
            return str(error)
    return ""


def _sum_up(stage: _Stage, difference: str | None, *, as_json: bool) -> None:
    """`difference` is None if nothing was compared."""
    scene = stage.scene()
    records = sum(sight.records for sight in scene.topics)
    taken = sum(topic.size().bytes for topic in stage.shop)
    median = scene.tick.median if scene.tick else None
    if as_json:
        summary = {
            "seconds": round(stage.seconds, 3),
            "records": records,
            "bytes": taken,
            "ticks": stage.ticker.ticks,
        }
        said = {**summary, "median": median, "same_as_batch": None if difference is None else not difference}
        print(json.dumps({"summary": said}))
    else:
        print()
        for view in scene.views:
            print(*view_lines(view, _ROWS), sep="\n")
        each = ", ".join(f"{sight.name} {sight.records:,}" for sight in scene.topics)
        print(f"\nIn {stage.seconds:.1f} s {count(records, 'record')} came in, {size(taken)}: {each}.")
        if median is not None:
            views = count(len(scene.views), "view")
            print(f"{count(stage.ticker.ticks, 'tick')} kept {views} fresh, {median:.3f} s each.")
        if difference == "":
            print(f"Every view equals a batch query over the same {count(records, 'record')}.")
    if difference:
        print(f"error: a view differs from batch\n{difference}", file=sys.stderr)
