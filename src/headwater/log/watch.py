"""Watch: wait until one of some files changes, without looking again and again."""

from __future__ import annotations

import ctypes
import os
import select
import time
from collections.abc import Sequence

_IN_MODIFY = 0x2
_IN_NONBLOCK = 0o4000
_IN_CLOEXEC = 0o2000000
_POLL = 0.05
_LONGEST = 2**31 - 1

_libc = ctypes.CDLL(None) if hasattr(ctypes.CDLL(None), "inotify_init1") else None


class Watch:
    """News of files, from inotify where there is one, else by looking 20 times a second.

    What changed between two calls of `wait` is reported by the second. Used by one thread.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = list(paths)
        self._seen = self._changes()
        self._handle = _libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC) if _libc else -1
        for path in self._paths if self._handle >= 0 else ():
            if _libc and _libc.inotify_add_watch(self._handle, os.fsencode(path), _IN_MODIFY) < 0:
                self.close()
                break

    def wait(self, timeout: float) -> bool:
        """True as soon as a file changed, False when `timeout` seconds have passed."""
        if self._handle < 0:
            return self._look(timeout)
        poll = select.poll()  # unlike select it takes any descriptor, also one above 1024
        poll.register(self._handle, select.POLLIN)
        ready = poll.poll(min(max(timeout, 0) * 1000, _LONGEST))
        if ready:
            try:
                os.read(self._handle, 65536)
            except BlockingIOError:
                pass
        return bool(ready)

    def _changes(self) -> list[int]:
        return [os.stat(path).st_mtime_ns if os.path.exists(path) else 0 for path in self._paths]

    def _look(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while (now := self._changes()) == self._seen:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL)
        self._seen = now
        return True

    def close(self) -> None:
        """Stop watching."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
