"""Release: what large files take is given back beside other work.

To forget a file that is in memory takes the system a third of a second per GiB, which it does in the call that
gives the last hold on it away. After a fill that may be tens of GiB at once, when what was merged is swept.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

from headwater.lock import forget_in_child

_LARGE = 16 << 20
_MANY = 16
"""So many descriptors at most are kept for it."""


class Release:
    """Does by a thread what takes long and nobody waits for. Safe for threads, and to be called by finalizers.

    What a forked child gives back, it gives back at once.
    """

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Callable[..., object], tuple[object, ...]]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        forget_in_child(self)

    def after_fork(self) -> None:
        """The child does not have the thread."""
        self._waiting, self._thread, self._starting = SimpleQueue(), None, threading.Lock()

    def begin(self, size: int) -> None:
        """Be ready for a file of a size; a finalizer could not start a thread."""
        with self._starting:
            if size >= _LARGE and self._thread is None:
                self._thread = threading.Thread(target=self._run, name="headwater-release", daemon=True)
                self._thread.start()

    def soon(self, size: int, work: Callable[..., object], *given: object) -> None:
        """Do something about a file of a size: by the thread if it is large and was expected, else at once."""
        if size >= _LARGE and self._thread is not None:
            self._waiting.put((work, given))
        else:
            work(*given)

    def hold(self, path: str) -> int | None:
        """A descriptor of a file, if it is large: until it is let go, removing the file takes no time."""
        if self._waiting.qsize() >= _MANY:
            return None
        try:
            size = os.stat(path).st_size
            self.begin(size)
            return os.open(path, os.O_RDONLY) if size >= _LARGE else None
        except OSError:  # it is gone, or there are no descriptors left
            return None

    def let_go(self, handle: int | None) -> None:
        """Give such a descriptor back."""
        if handle is not None:
            self.soon(_LARGE, os.close, handle)

    def _run(self) -> None:
        waiting = self._waiting
        while True:
            work, given = waiting.get()
            work(*given)


release = Release()
