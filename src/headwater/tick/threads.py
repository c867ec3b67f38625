"""Threads that views are computed by."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from headwater.spark.session.quiet import begin

Turn = Callable[[], bool]
"""What a thread does when it is its turn; it gives whether the thread is still needed."""


class Threads:
    """So many threads at work. One that never comes back is replaced by another, and does not keep the process."""

    def __init__(self, count: int) -> None:
        self._waiting: SimpleQueue[Turn | None] = SimpleQueue()
        self._count = count
        for _ in range(count):
            self.replace()

    def submit(self, turn: Turn) -> None:
        """Have one of the threads do it."""
        self._waiting.put(turn)

    def replace(self) -> None:
        """Have one more thread, since another is not coming back."""
        threading.Thread(target=self._run, name="tick", daemon=True).start()

    def _run(self) -> None:
        begin()
        while (turn := self._waiting.get()) is not None:
            if not turn():
                return

    def close(self) -> None:
        """Let the threads end."""
        for _ in range(self._count):
            self._waiting.put(None)
