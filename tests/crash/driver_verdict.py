"""What goes on beside drivers that are killed, and the verdict on what they leave."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.log import Cut
from headwater.testing import assert_same_as_batch
from tests.crash import expected, shop
from tests.inside import log_of, store_of
from tests.read.hand import rows_of, summed

_ROOT = Path(__file__).resolve().parents[2]
_PAUSE = 0.03
_TICKED_WITHIN = 180.0


class Broken(Exception):
    """A promise was broken."""


class TrafficAndTicks:
    """A thread that appends at random and watches the ticks: each is committed once, and none is left out."""

    def __init__(self, pipeline: hw.Pipeline, seed: int) -> None:
        self._pipeline = pipeline
        self._traffic = shop.Traffic(pipeline, seed)
        self._seen: dict[int, int] = {}
        self._may_append = threading.Event()
        self._is_idle = threading.Event()
        self._ended = threading.Event()
        self._failure = ""
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> TrafficAndTicks:
        self._may_append.set()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ended.wait(_PAUSE):
                if self._may_append.is_set():
                    self._is_idle.clear()
                    self._traffic.step()
                else:
                    self._is_idle.set()
                self.look()
        except BaseException:
            self._failure = traceback.format_exc()
            self._is_idle.set()

    def look(self) -> None:
        """Note the ticks that are kept now."""
        for number, at in store_of(self._pipeline).ticks():
            if self._seen.setdefault(number, at) != at:
                raise Broken(f"tick {number} was committed twice")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Without anything new being appended."""
        self._may_append.clear()
        self._is_idle.clear()
        self._is_idle.wait(60)
        try:
            yield
        finally:
            self._may_append.set()

    def check(self) -> None:
        if self._failure:
            raise Broken(f"appending or watching failed:\n{self._failure}")

    def check_no_gaps(self, last: int) -> None:
        """Ticks are kept for a while and looked at often, so each was seen."""
        missing = set(range(1, last + 1)) - set(self._seen)
        if missing:
            raise Broken(f"there is a tick {last}, but none of the numbers {sorted(missing)}")

    def numbers(self) -> dict[str, int]:
        return {"appends": self._traffic.operations}


class Following:
    """A reader process that follows and asks until its input ends."""

    def __init__(self, path: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.follower", path],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def check(self) -> None:
        """That it goes on."""
        if self._process.poll() is not None:
            raise Broken(f"the reader ended with {self._process.returncode}:\n{self._process.communicate()[1]}")

    def end(self) -> dict[str, int]:
        """Let it come to the end; what it counted."""
        try:
            said, trouble = self._process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise Broken("the reader did not come to an end") from None
        if self._process.returncode != 0:
            raise Broken(f"the reader ended with {self._process.returncode}:\n{trouble}")
        counted: dict[str, int] = json.loads(said)
        return counted


def verdict(pipeline: hw.Pipeline, traffic: TrafficAndTicks, *, with_spark: bool) -> int:
    """Wait until everything is ticked, then compare it with what was appended; the number of the last tick."""
    wait_until_ticked(pipeline)
    traffic.check()
    last = expected.check(pipeline)
    if with_spark:
        assert_same_as_batch(pipeline)
    for name in (*shop.VIEWS, *shop.TOPICS):
        changes, found = list(pipeline.changes(name)), rows_of(pipeline.read(name))
        assert summed(changes) == found, f"the changes of {name} do not add up to its rows"
    traffic.look()
    traffic.check_no_gaps(last)
    return last


def wait_until_ticked(pipeline: hw.Pipeline) -> None:
    """Wait until a tick has everything; somebody must be driving."""
    deadline = time.monotonic() + _TICKED_WITHIN
    while (left := _left(pipeline)) != 0:
        if time.monotonic() > deadline:
            raise Broken(f"{left} records are not in any tick after {_TICKED_WITHIN} s")
        time.sleep(0.05)


def _left(pipeline: hw.Pipeline) -> Any:
    last = store_of(pipeline).last_tick()
    return log_of(pipeline).cut(shop.TOPICS, after=Cut.from_dict(last.cut)).rows if last is not None else None
