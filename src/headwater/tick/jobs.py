"""Jobs: views that are being computed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field

from headwater.attempt import Attempt, Stopped
from headwater.tick.outcome import ViewOutcome

LOOK = 1.0
"""Whoever waits for jobs looks after so many seconds whether they are still worth it."""


@dataclass
class Job:
    """A view that is being computed: what it came to, and since when, if it has begun; and when it failed."""

    attempt: Attempt
    came_to: Future[ViewOutcome] = field(default_factory=Future)
    began: float | None = None
    failed: float | None = None
    deciding: threading.Lock = field(default_factory=threading.Lock)

    def give_up(self, instead: ViewOutcome | Stopped) -> bool:
        """Have it come to this, unless it has come to something; whether so."""
        with self.deciding:
            if self.came_to.done():
                return False
            self.attempt.stopped.set()
            if isinstance(instead, Stopped):
                self.came_to.set_exception(instead)
            else:
                self.came_to.set_result(instead)
            return True

    def ended(self, found: ViewOutcome | BaseException) -> bool:
        """Have it come to what was computed, unless it was given up; whether so."""
        with self.deciding:
            if self.attempt.stopped.is_set():
                return False
            if isinstance(found, BaseException) or found.suspension is not None:
                self.failed = time.monotonic()
            if isinstance(found, BaseException):
                self.came_to.set_exception(found)
            else:
                self.came_to.set_result(found)
            return True


class Gate:
    """Lets one job at a time through; one that was given up does not keep the others waiting."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: Job | None = None

    @contextmanager
    def only(self, job: Job) -> Iterator[None]:
        """Within the block no other job is in it, but those that were given up."""
        with self._changed:
            while self._inside is not None and not self._inside.attempt.stopped.is_set():
                self._changed.wait(LOOK)
            self._inside = job
        try:
            yield
        finally:
            with self._changed:
                if self._inside is job:
                    self._inside = None
                self._changed.notify_all()
