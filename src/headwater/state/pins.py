"""Pins: readers telling whoever removes old versions which ones they are reading."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from types import TracebackType

from headwater.files import disk_errors_told
from headwater.lock import Lock

_DIGITS = 20
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}
"""Where nothing can be written, for lack of space or of permission."""


class Pin:
    """One reader's hold on one tick at a time. It ends with `close`, or with the process.

    Without a lock it holds nothing, since it could not be written. For one thread at a time. A forked child has no
    part in its parent's pins.
    """

    def __init__(self, lock: Lock | None) -> None:
        self._lock = lock
        self._process = os.getpid()
        self._closed = lock is None

    def move(self, tick: int) -> None:
        """Hold another tick instead."""
        if self._lock is None or self._closed or self._process != os.getpid():
            return
        try:
            _write(self._lock.path, tick)
        except OSError as error:  # the tick that it holds is older, and keeps all that came after
            if error.errno not in _NO_ROOM:
                raise

    def close(self) -> None:
        """Hold nothing any more; done again, it does nothing."""
        if self._lock is None or self._closed or self._process != os.getpid():
            return
        self._closed = True
        with suppress(FileNotFoundError):
            os.unlink(self._lock.path)
        self._lock.close()

    def __enter__(self) -> Pin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Pins:
    """The pins of all processes, in `<folder>/pins`: one locked file each, which says the tick. Safe for threads.

    Who wants to read a tick holds it first and then makes sure that the store still has it. Who forgets ticks keeps
    those that are held, and asks again, once the store has forgotten the others, before it removes their files. So
    whichever comes first, a version that was found is there to be read.

    Where nothing can be written, reading goes on without: files never change, so what was read is right, and a
    reader that finds one gone asks whether its version is still kept.
    """

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, "pins")

    @disk_errors_told()
    def hold(self, tick: int) -> Pin:
        """Keep the files of this tick from being removed, until the pin is closed or its process is gone."""
        while True:
            lock = Lock(os.path.join(self._folder, secrets.token_hex(8)))
            try:
                os.makedirs(self._folder, exist_ok=True)
                lock.acquire()
                if not lock.is_removed():  # as one that nobody holds, between being made and being locked
                    _write(lock.path, tick)
                    return Pin(lock)
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                with suppress(OSError):
                    os.unlink(lock.path)
                lock.close()
                return Pin(None)
            lock.close()

    @disk_errors_told()
    def held(self) -> set[int]:
        """The ticks that the living hold; files of the dead are removed."""
        ticks = set()
        for name in os.listdir(self._folder) if os.path.isdir(self._folder) else []:
            path = os.path.join(self._folder, name)
            lock = Lock(path)
            try:
                if lock.acquire(timeout=0):
                    os.unlink(path)  # while it is locked: who is just about to hold it must notice
                else:
                    ticks |= _read(path)
            except FileNotFoundError:
                pass  # closed meanwhile
            finally:
                lock.close()
        return ticks


def _write(path: str, tick: int) -> None:
    """Twice, so that a reader can tell a half-written number."""
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(handle, f"{tick:0{_DIGITS}d}".encode() * 2, 0)
    finally:
        os.close(handle)


def _read(path: str) -> set[int]:
    """The tick; nothing if it is not there yet."""
    while True:
        with open(path, "rb") as file:
            text = file.read()
        if len(text) < 2 * _DIGITS:
            return set()
        if text[:_DIGITS] == text[_DIGITS:]:
            return {int(text[:_DIGITS])}
