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


class Database:
    """A SQLite file in WAL mode with full synchronisation. Safe for threads and processes.

    Writers queue on a lock file of ours (`<path>.lock`) before they ask SQLite for its own, so that a waiting
    one is woken at once and the holder can be named. `committed` is called after each write that returned.
    """

    def __init__(self, path: str, *, committed: Callable[[str], None] | None = None) -> None:
        self.path = path
        self._lock = Lock(path + ".lock")
        self._threads = threading.RLock()
        self._committed = committed
        self._closed = False
        self._pid = -1
        self._connection: sqlite3.Connection
        forget_in_child(self)
        _databases.add(self)

    def become_wal(self) -> None:
        """Only one may change a new file to WAL: of two at once, SQLite fails both."""
        with self._threads, self._lock:
            try:
                self._open().execute("PRAGMA journal_mode = WAL")
            except sqlite3.Error as error:
                raise self._unavailable(error) from error

    def writer(self) -> int | None:
        """The id of the process that is inside a write at this moment, where that can be told."""
        return self._lock.holder()

    def before_fork(self) -> None:
        """A connection does not survive a fork: in a child that inherits it, locks seem held that are not."""
        self._threads.acquire()
        if self._pid == os.getpid() and not self._connection.in_transaction:
            self._connection.close()
            self._pid = -1

    def after_fork_in_parent(self) -> None:
        """Go on; the connection is opened again when it is needed."""
        self._threads.release()

    def after_fork(self) -> None:
        """Begin anew in the child."""
        self._threads = threading.RLock()
        self._pid = -1

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise HeadwaterError("the pipeline is closed", where=self.path, hint="open it again")
        if self._pid != os.getpid():
            try:
                connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30.0)
                connection.execute("PRAGMA synchronous = FULL")
            except sqlite3.Error as error:
                raise self._unavailable(error) from error
            self._connection, self._pid = connection, os.getpid()
        return self._connection

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
                connection = self._open()
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
        with self._threads:
            try:
                return self._open().execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise self._unavailable(error) from error

    def one(self, sql: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        """The first row that a statement gives, if any."""
        rows = self.all(sql, values)
        return rows[0] if rows else None

    def close(self) -> None:
        """Give back what it holds; it may not be used afterwards."""
        with self._threads:
            if self._pid == os.getpid():
                self._connection.close()
            self._pid = -1
            self._closed = True
            self._lock.close()


def _before_fork() -> None:
    for database in list(_databases):
        database.before_fork()


def _after_fork_in_parent() -> None:
    for database in list(_databases):
        database.after_fork_in_parent()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent)
