"""`headwater demo`: a small shop is open, and its topics are seen to grow."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from random import Random

import headwater as hw
from headwater.cli.live import Screen, Sight, Watch, choose_screen
from headwater.cli.options import add_json, whole
from headwater.cli.text import count, size
from headwater.clock import SystemClock
from headwater.examples.shop import Shop, declare, traffic

_PAUSE = 0.01


def arguments(parser: argparse.ArgumentParser) -> None:
    """For how long, and where."""
    parser.add_argument("--seconds", type=whole(1), metavar="N", help="end after so many seconds (default: Ctrl-C)")
    parser.add_argument(
        "--pipeline", metavar="PATH", help="a folder to use and keep (default: a temporary one, removed at the end)"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Open the shop, show it until the time is up or someone has had enough, and sum up."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with _folder(arguments.pipeline) as path, hw.Pipeline("demo", path) as pipeline:
        shop = declare(pipeline)
        if not arguments.json:
            _welcome(path)
        watches = [Watch(topic) for topic in shop]
        began = time.monotonic()
        with _Traffic(shop) as visitors, contextlib.suppress(KeyboardInterrupt):
            _watch(watches, choose_screen(as_json=arguments.json), visitors, arguments.seconds)
        _sum_up(shop, [watch.look() for watch in watches], time.monotonic() - began, as_json=arguments.json)
    return 0


@contextlib.contextmanager
def _folder(given: str | None) -> Iterator[str]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        yield folder


def _welcome(path: str) -> None:
    print("A shop's traffic, appended to a durable log: each row is on disk before it counts.")
    print(f"See it from another shell:  headwater tail orders -f --pipeline {path}\n", flush=True)


class _Traffic:
    """Lets the shop's traffic happen in a thread of its own; what goes wrong there is raised on leaving."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._error: BaseException | None = None
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._happen, name="shop", daemon=True)

    def __enter__(self) -> _Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _happen(self) -> None:
        try:
            for batch in traffic(Random(1), SystemClock()):  # noqa: S311 - a game
                self._shop.apply(batch)
                if self.over.wait(_PAUSE):
                    break
        except BaseException as error:
            self._error = error
            self.over.set()


def _watch(watches: list[Watch], screen: Screen, visitors: _Traffic, seconds: int | None) -> None:
    began = time.monotonic()
    while True:
        passed = time.monotonic() - began
        screen.show(passed, [watch.look() for watch in watches])
        left = screen.interval if seconds is None else min(screen.interval, seconds - passed)
        if left <= 0 or visitors.over.wait(left):
            return


def _sum_up(shop: Shop, sights: list[Sight], seconds: float, *, as_json: bool) -> None:
    records = sum(sight.records for sight in sights)
    taken = sum(topic.size().bytes for topic in shop)
    if as_json:
        print(json.dumps({"summary": {"seconds": round(seconds, 3), "records": records, "bytes": taken}}))
        return
    each = ", ".join(f"{sight.name} {sight.records:,}" for sight in sights)
    print(f"\nIn {seconds:.1f} s {count(records, 'record')} came in, {size(taken)}: {each}.")
