"""A lock between processes (and threads) that the operating system gives back when its holder dies."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
import weakref
from types import TracebackType
from typing import Protocol

from headwater.errors import Unavailable

_POLL = 0.005
_forgetful: weakref.WeakSet[Forgetful] = weakref.WeakSet()


class Forgetful(Protocol):
    """Something that must not go on in a forked child as if nothing had happened."""

    def after_fork(self) -> None:
        """Forget what belongs to the parent; called in the child, before anything else runs there."""
        ...


def forget_in_child(thing: Forgetful) -> None:
    """Have `after_fork` called in every forked child while the thing lives."""
    _forgetful.add(thing)


class Lock:
    """An exclusive lock on a file of its own, by flock.

    Blocks other threads of this process and other processes alike. A killed holder's lock is free at once. A
    forked child starts without its parent's locks. Not reentrant.

    An interrupt (Ctrl-C) may come between any two steps. Only one that comes as `__exit__` begins, before its first
    step, leaves the lock held: `close` gives it back, and until then its thread gets an error instead of waiting
    for itself.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._threads = threading.RLock()  # it knows its owner, also when an interrupt hides that it was taken
        self._thread: int | None = None
        self._handle = -1
        forget_in_child(self)

    def acquire(self, *, timeout: float | None = None) -> bool:
        """Take the lock; False if `timeout` seconds (0: at once) passed without getting it."""
        if self._thread == threading.get_ident():
            msg = "this thread holds the lock already; it may have been interrupted while giving it back"
            raise Unavailable(msg, where=self.path, hint="close the pipeline and open it again")
        try:
            got = self._threads.acquire(timeout=-1 if timeout is None else timeout)
            if got:
                self._thread = threading.get_ident()  # first: a signal's handler may come by while we wait
                got = self._flock(timeout)
            if not got:
                self.release()
            return got
        except BaseException:
            self.release()
            raise

    def _flock(self, timeout: float | None) -> bool:
        if self._handle < 0:
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if timeout is None:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
            return True
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
                    raise
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_POLL)
            else:
                return True

    def release(self) -> None:
        """Give it back. Only the thread that holds it can; for others, or done again, it does nothing."""
        if not self._threads.acquire(blocking=False):
            return  # another thread's
        try:
            self._thread = None
            if self._handle >= 0:
                fcntl.flock(self._handle, fcntl.LOCK_UN)
        finally:
            try:
                while True:
                    self._threads.release()
            except RuntimeError:
                pass  # all that this thread had of it is given back

    def close(self, *, wait: float = 0.0) -> None:
        """Close the file, after whoever in this process holds it, for which it waits so many seconds."""
        try:
            self._threads.acquire(timeout=wait)
            handle, self._handle = self._handle, -1
            if handle >= 0:
                os.close(handle)
        finally:
            self.release()

    def is_removed(self) -> bool:
        """Whether the file was deleted while this lock was held or waited for; only for the holder."""
        return os.fstat(self._handle).st_nlink == 0

    def holder(self) -> int | None:
        """The id of the process that holds the lock now, where the system tells (Linux), else None."""
        try:
            inode = os.stat(self.path).st_ino
            with open("/proc/locks", encoding="ascii") as locks:
                lines = [line.split() for line in locks]
        except OSError:
            return None
        for fields in lines:
            if "FLOCK" in fields and "->" not in fields and fields[5].endswith(f":{inode}"):
                return int(fields[4])
        return None

    def after_fork(self) -> None:
        """A child starts without its parent's locks."""
        self._threads = threading.RLock()
        self.close()

    def __enter__(self) -> bool:
        """As that of `threading.Lock`: a step behind `acquire` would be one to be interrupted at."""
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.release()
        except BaseException:  # an interrupt: no step of a release minds being done twice
            self.release()
            raise

    def __del__(self) -> None:
        if hasattr(self, "_handle"):  # else an interrupt came while it was made
            self.close()


def is_held(path: str) -> bool:
    """Whether someone living holds the lock at a path; False if there is no such file."""
    if not os.path.exists(path):
        return False
    lock = Lock(path)
    try:
        if not lock.acquire(timeout=0):
            return True
        lock.release()
        return False
    finally:
        lock.close()


def _forget_in_child() -> None:
    for thing in list(_forgetful):
        thing.after_fork()


os.register_at_fork(after_in_child=_forget_in_child)
