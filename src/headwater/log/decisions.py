"""Decisions: which transactions are committed, which are taken back, and which are still open."""

from __future__ import annotations

import os
import secrets
import shutil
import threading

from headwater.clock import Clock
from headwater.files import Files
from headwater.lock import Lock, forget_in_child, is_held
from headwater.store.store import Store

_CACHED = 100_000


class Owner:
    """A process that may have transactions open: eight random bytes, and a lock file that is held while it lives.

    A transaction's id is its owner's eight bytes and a number, so whoever meets an undecided one can tell whether
    its owner still lives.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._threads = threading.Lock()
        self._pid = -1
        self._lock: Lock | None = None
        self._id = b""
        self._count = 0
        forget_in_child(self)

    def after_fork(self) -> None:
        """The parent's transactions stay the parent's."""
        self._threads = threading.Lock()
        self._lock = None

    def new_transaction(self) -> bytes:
        """An id that nobody has used or will use."""
        with self._threads:
            if self._lock is None or self._pid != os.getpid():
                self._begin()
            self._count += 1
            return self._id + self._count.to_bytes(8, "big")

    def _begin(self) -> None:
        """Take a new id; one whose file was swept away before it was locked is not used."""
        while True:
            self._pid, self._id = os.getpid(), secrets.token_bytes(8)
            self._lock = Lock(_path(self._folder, self._id))
            self._lock.acquire()
            if not self._lock.is_removed():
                return

    def give_up(self) -> None:
        """Stop vouching for what is undecided: anyone may take it back from now on."""
        with self._threads:
            if self._lock is not None and self._pid == os.getpid():
                self._lock.release()
                self._lock.close()
                _remove(self._lock.path)
            self._lock = None


def sweep(folder: str, spill: str) -> None:
    """Remove what dead owners left: their files, and the records of transactions that they never committed."""
    for name in os.listdir(folder):
        lock = Lock(os.path.join(folder, name))
        if lock.acquire(timeout=0):
            _remove(lock.path)
            lock.release()
        lock.close()
    for name in os.listdir(spill) if os.path.isdir(spill) else ():
        if not _is_alive(folder, bytes.fromhex(name)):
            shutil.rmtree(os.path.join(spill, name), ignore_errors=True)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _path(folder: str, owner: bytes) -> str:
    return os.path.join(folder, owner[:8].hex())


def _is_alive(folder: str, transaction: bytes) -> bool:
    return is_held(_path(folder, transaction))


class Decisions:
    """Looks decisions up in the store, remembers them, and takes back what a dead owner left. Safe for threads."""

    def __init__(self, files: Files, store: Store, clock: Clock, folder: str) -> None:
        files.make_folder(folder)
        self._store = store
        self._clock = clock
        self._folder = folder
        self._known: dict[bytes, bool] = {}

    def get(self, transaction: bytes) -> bool | None:
        """True: committed. False: taken back. None: still open, by an owner that lives."""
        known = self._known.get(transaction)
        if known is None:
            known = self._store.decision(transaction)
            if known is None and not _is_alive(self._folder, transaction):
                known = self._store.decide(transaction, committed=False, at=self._clock.now())
            if known is not None:
                self.note(transaction, committed=known)
        return known

    def note(self, transaction: bytes, *, committed: bool) -> None:
        """Remember a decision that was made here."""
        if len(self._known) >= _CACHED:
            self._known.clear()
        self._known[transaction] = committed
