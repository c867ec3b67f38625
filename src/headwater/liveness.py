"""Liveness: which names somebody living holds. `tests/contracts/liveness.py` is its specification."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Protocol

from headwater.lock import Lock, is_held


class Hold(Protocol):
    """A name that this process holds, until it gives it back or ends. A forked child does not hold it."""

    def release(self) -> None:
        """Give the name back, so that nobody need wait for this process to end; done again, it does nothing."""
        ...


class Liveness(Protocol):
    """Names that are held by the living alone: whoever dies, however, holds nothing any more. Safe for threads.

    It decides nothing: that is the store's. It says whether it is worth waiting for whom the store names.
    """

    def hold(self, name: str) -> Hold | None:
        """Hold a name from now on; None if somebody living holds it."""
        ...

    def is_alive(self, name: str) -> bool:
        """Whether somebody living holds a name."""
        ...

    def who(self, name: str) -> int | None:
        """The id of the process that holds a name, if it is on this machine and the system tells."""
        ...

    def forget(self, name: str) -> None:
        """Remove what is left of a name that nobody will hold again; nothing if somebody holds it."""
        ...


class LockedFiles:
    """See `Liveness`. For processes of one machine: a file for each name, which is locked while it is held."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def hold(self, name: str) -> Hold | None:
        """See `Liveness.hold`."""
        lock = Lock(self._path(name))
        if lock.acquire(timeout=0):
            return _LockedFile(lock)
        lock.close()
        return None

    def is_alive(self, name: str) -> bool:
        """See `Liveness.is_alive`."""
        return is_held(self._path(name))

    def who(self, name: str) -> int | None:
        """See `Liveness.who`."""
        return Lock(self._path(name)).holder() or None  # 0 for processes that this container does not see

    def forget(self, name: str) -> None:
        """See `Liveness.forget`."""
        if not self.is_alive(name):
            with suppress(FileNotFoundError):
                os.unlink(self._path(name))


class _LockedFile:
    """See `Hold`."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    def release(self) -> None:
        """See `Hold.release`."""
        self._lock.release()
        self._lock.close()
