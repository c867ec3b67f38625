"""Watch: wait until one of some files changes, without looking again and again."""

from __future__ import annotations

import ctypes
import os
import select
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

_IN_MODIFY = 0x2
_IN_NONBLOCK = 0o4000
_IN_CLOEXEC = 0o2000000
_POLL = 0.05
_LONGEST = 2**31 - 1

_libc = ctypes.CDLL(None) if hasattr(ctypes.CDLL(None), "inotify_init1") and hasattr(os, "eventfd") else None


def _changed(path: str) -> int:
    """When a file was changed; 0 if it is not there, or not any more."""
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


class News(Protocol):
    """News of something, from the moment it was made. Used by one thread, but for `wake`."""

    def wait(self, timeout: float) -> bool:
        """True as soon as there may be something new since the last call, False when the time has passed."""
        ...

    def wake(self) -> None:
        """End the wait of another thread, and all later ones. Safe from any thread."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


class Watch:
    """News of files, from inotify where there is one, else by looking 20 times a second.

    What changed between two calls of `wait` is reported by the second. Used by one thread, but for `wake`. Nobody
    who changes a file waits for those who watch it, nor need they be there; one who dies leaves nothing behind.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = list(paths)
        self._seen = self._changes()
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._handle = -1
        self._wake = -1  # from here on it can be closed, whatever interrupts what follows
        if _libc:
            self._handle = _libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
        if self._handle >= 0:
            self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        for path in self._paths if self._handle >= 0 else ():
            if _libc and _libc.inotify_add_watch(self._handle, os.fsencode(path), _IN_MODIFY) < 0:
                self.close()
                break

    def wait(self, timeout: float) -> bool:
        """True as soon as a file changed, or if it was woken; False when `timeout` seconds have passed."""
        if self._handle < 0:
            return self._look(timeout)
        poll = select.poll()  # unlike select it takes any descriptor, also one above 1024
        poll.register(self._handle, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        ready = poll.poll(min(max(timeout, 0) * 1000, _LONGEST))
        with suppress(BlockingIOError):
            os.read(self._handle, 65536)
        return bool(ready)

    def _changes(self) -> list[int]:
        return list(map(_changed, self._paths))

    def _look(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while (now := self._changes()) == self._seen:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if self._woken.wait(min(_POLL, left)):
                return True
        self._seen = now
        return True

    def wake(self) -> None:
        """See `News.wake`."""
        self._woken.set()
        with self._lock:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Stop watching."""
        with self._lock:
            for handle in (self._handle, self._wake):
                if handle >= 0:
                    os.close(handle)
            self._handle = self._wake = -1

    def __del__(self) -> None:
        if hasattr(self, "_wake"):
            self.close()
