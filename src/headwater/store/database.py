"""One SQLite file that many processes write, one at a time."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headwater.errors import HeadwaterError, Unavailable
from headwater.lock import Lock, forget_in_child

_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_of_the_parent: list[object] = []
"""What a forked child must not even close: kept, so that it is not."""
_READING = 4
"""So many threads read at the same time; another one waits for one of them."""


class Database:
    """A SQLite file in WAL mode with full synchronisation. Safe for threads and processes.

    Writers queue on a lock file of ours (`<path>.lock`) before they ask SQLite for its own, so that a waiting
    one is woken at once and the holder can be named. `committed` is called after each write that returned.

    Reads have connections of their own, so none waits for a write, which may take as long as the disk does; they
    see what was committed when they began.
    """

    def __init__(self, path: str, *, committed: Callable[[str], None] | None = None) -> None:
        self.path = path
        self._lock = Lock(path + ".lock")
        self._threads = threading.RLock()
        self._committed = committed
        self._closed = False
        self._writing = _Connection(path)
        self._reading = [_Connection(path) for _ in range(_READING)]
        forget_in_child(self)
        _databases.add(self)

    def become_wal(self) -> None:
        """Only one may change a new file to WAL: of two at once, SQLite fails both."""
        with self._threads, self._lock:
            try:
                self._check_open()
                self._writing.open().execute("PRAGMA journal_mode = WAL")
            except sqlite3.Error as error:
                raise self._unavailable(error) from error

    def writer(self) -> int | None:
        """The id of the process that is inside a write at this moment, where that can be told."""
        return self._lock.holder()

    def before_fork(self) -> None:
        """A connection does not survive a fork: in a child that inherits it, locks seem held that are not."""
        self._threads.acquire()
        for each in (self._writing, *self._reading):
            each.threads.acquire()
            each.close()

    def after_fork_in_parent(self) -> None:
        """Go on; the connections are opened again when they are needed."""
        for each in (self._writing, *self._reading):
            each.threads.release()
        self._threads.release()

    def after_fork(self) -> None:
        """Begin anew in the child."""
        _of_the_parent.append((self._writing, self._reading))
        self._threads = threading.RLock()
        self._writing = _Connection(self.path)
        self._reading = [_Connection(self.path) for _ in range(_READING)]

    def _check_open(self) -> None:
        if self._closed:
            raise HeadwaterError("the pipeline is closed", where=self.path, hint="open it again")

    def _unavailable(self, error: sqlite3.Error) -> Unavailable:
        return Unavailable(
            f"the metadata store cannot be used: {error}",
            where=self.path,
            hint="check the disk's free space and the file's permissions",
            retry=isinstance(error, sqlite3.OperationalError),
        )

    @contextmanager
    def write(self, *, durable: bool = True, timeout: float | None = None) -> Iterator[sqlite3.Connection]:
        """A transaction, committed at the end of the block; with `durable=False` a power cut may take it back."""
        with self._threads:
            if not self._lock.acquire(timeout=timeout):
                msg = f"the metadata store is being written by process {self._lock.holder()}"
                raise Unavailable(msg, where=self.path, retry=True)
            try:
                self._check_open()
                connection = self._writing.open()
                if not durable:
                    connection.execute("PRAGMA synchronous = NORMAL")
                try:
                    if connection.in_transaction:  # left by an interrupt
                        connection.execute("ROLLBACK")
                    connection.execute("BEGIN IMMEDIATE")
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                finally:
                    if not durable:
                        connection.execute("PRAGMA synchronous = FULL")
            except sqlite3.Error as error:
                raise self._unavailable(error) from error
            finally:
                self._lock.release()
            if self._committed is not None:
                self._committed(self.path)

    def all(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows that a statement gives."""
        with self._free() as connection:
            try:
                return connection.open().execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise self._unavailable(error) from error

    @contextmanager
    def _free(self) -> Iterator[_Connection]:
        """A connection to read by that no other thread uses."""
        for each in self._reading:
            if each.threads.acquire(blocking=False):
                break
        else:
            each = self._reading[threading.get_ident() % _READING]
            each.threads.acquire()
        try:
            self._check_open()
            yield each
        finally:
            each.threads.release()

    def one(self, sql: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        """The first row that a statement gives, if any."""
        rows = self.all(sql, values)
        return rows[0] if rows else None

    def close(self) -> None:
        """Give back what it holds; it may not be used afterwards."""
        with self._threads:
            self._closed = True
            for each in (self._writing, *self._reading):
                with each.threads:
                    each.close()
            self._lock.close()


class _Connection:
    """A connection to the file, opened when it is first needed; for who holds `threads`."""

    def __init__(self, path: str) -> None:
        self.threads = threading.RLock()
        self._path = path
        self._opened: sqlite3.Connection | None = None

    def open(self) -> sqlite3.Connection:
        if self._opened is None:
            opened = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=30.0)
            try:
                opened.execute("PRAGMA synchronous = FULL")
            except sqlite3.Error:
                opened.close()
                raise
            self._opened = opened
        return self._opened

    def close(self) -> None:
        """Close it; not inside a write, which the thread that forks is in itself."""
        if self._opened is not None and not self._opened.in_transaction:
            self._opened.close()
            self._opened = None


def _before_fork() -> None:
    for database in list(_databases):
        database.before_fork()


def _after_fork_in_parent() -> None:
    for database in list(_databases):
        database.after_fork_in_parent()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent)
