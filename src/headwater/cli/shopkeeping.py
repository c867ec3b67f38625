"""The two who keep the demo's shop busy: its visitors, and the one who keeps its views fresh."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections import deque

import headwater as hw
from headwater.examples.shop import VIEWS
from headwater.pipeline.opened import get_ready

_IDLE = 0.05
_REMEMBERED = 100


class Visitors:
    """The shop's traffic, in a process of its own: it ends with ours, however that ends."""

    def __init__(self, path: str) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "headwater.examples.shop.visit", path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,  # Ctrl-C is ours to act upon
        )

    @property
    def gone(self) -> bool:
        """Whether they left of their own accord, which they do only if something failed."""
        return self._process.poll() is not None

    def finish(self) -> None:
        """Let the last of them go; raise what went wrong."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        code = self._process.wait()
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip().splitlines()
        self._said.close()
        if code:
            what = said[-1] if said else f"it ended with code {code}"
            raise hw.HeadwaterError(what, where="the shop's traffic")


class Ticker:
    """Starts Spark, declares the views and ticks, in a thread, so that the screen lives meanwhile.

    The first view gets a tick of its own, to be seen early. `complete` is set when all of them are filled. What
    goes wrong sets `over`, and is raised by `finish`.
    """

    def __init__(self, pipeline: hw.Pipeline, over: threading.Event) -> None:
        self._pipeline = pipeline
        self._over = over
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)
        self.status = "starting Spark, which takes some seconds …"
        self.recent: deque[hw.Tick] = deque(maxlen=_REMEMBERED)
        self.ticks = 0
        self.complete = threading.Event()
        self._thread.start()

    def finish(self) -> None:
        """End, after what the traffic left was taken in."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        while self.complete.is_set() and self._tick():
            pass

    def _run(self) -> None:
        try:
            self._keep_fresh()
        except BaseException as error:
            self._error = error
            self._over.set()

    def _keep_fresh(self) -> None:
        get_ready(self._pipeline)
        self.status = "declaring the views …"
        for view in VIEWS:
            if self._over.is_set():
                return
            view.declare(self._pipeline)
            if view is VIEWS[0] and not self._over.is_set():
                self._tick()
        self.status = ""
        while not self._over.is_set():
            if self._tick():
                self.complete.set()
            else:
                self._over.wait(_IDLE)

    def _tick(self) -> bool:
        tick = self._pipeline.tick()
        if tick is not None:
            self.ticks += 1
            self.recent.append(tick)
        return tick is not None
