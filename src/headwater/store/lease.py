"""The lease: one process at a time drives a pipeline."""

from __future__ import annotations

import dataclasses
import os

from headwater.errors import LeaseHeld, Unavailable
from headwater.lock import Lock, forget_in_child, is_held
from headwater.process import ProcessIdentity
from headwater.store.records import LeaseRecord
from headwater.store.store import Store

_PATIENCE = 2.0


class Lease:
    """The right to commit ticks, as an epoch in the store plus a lock that dies with its holder.

    The store's row names the epoch and the holder; `lease.<epoch>` in the folder is locked by the holder while
    it lives. `acquire` takes over from a dead holder at once and refuses a living one; `take_over` replaces a
    living one too: the raised epoch makes every later commit of the old holder fail with `Fenced`.
    """

    def __init__(self, store: Store, folder: str) -> None:
        self.epoch = 0
        self._store = store
        self._folder = folder
        self._lock: Lock | None = None
        forget_in_child(self)

    def after_fork(self) -> None:
        """The lease stays with the parent."""
        self.epoch, self._lock = 0, None

    def _path(self, epoch: int) -> str:
        return os.path.join(self._folder, f"lease.{epoch}")

    def acquire(self) -> int:
        """Become the driver if nobody living is; `LeaseHeld` otherwise. Returns the epoch."""
        if self._lock is not None:
            return self.epoch
        record = self._store.lease()
        if record.holder and is_held(self._path(record.epoch)):
            raise self._held(record)
        return self._become(record)

    def take_over(self) -> int:
        """Become the driver whoever is. A holder that sits inside a write of the store is killed first."""
        self.release()
        record = self._store.lease()
        try:
            return self._become(record, timeout=_PATIENCE)
        except Unavailable:
            return self._become_by_force(record)

    def _become_by_force(self, record: LeaseRecord) -> int:
        """Kill the holder if it is what blocks the store, and only if it is still that very process."""
        holder, writer = _identity(record), self._store.writer()
        try:
            if holder is not None and holder.pid == writer and holder.kill():
                return self._become(record, timeout=_PATIENCE)
        except Unavailable:
            pass  # another process has the holder's number
        blocking = f"process {writer}"
        msg = f"{blocking} sits in a write of the store"
        raise LeaseHeld(msg, holder=blocking, where=self._folder, hint="continue or stop that process")

    def kill_if_holding(self, lock: Lock, record: LeaseRecord) -> bool:
        """Kill the replaced holder if it is the one that sits on this lock; False if it is someone else."""
        holder = _identity(record)
        return holder is not None and lock.holder() == holder.pid and holder.kill()

    def _become(self, record: LeaseRecord, *, timeout: float | None = None) -> int:
        """Lock the next epoch's file first, so that whoever reads the new row finds its holder alive."""
        epoch = record.epoch + 1
        lock = Lock(self._path(epoch))
        if not lock.acquire(timeout=0):
            raise self._held(record)
        try:
            identity = dataclasses.asdict(ProcessIdentity.own())
            self.epoch = self._store.raise_epoch(identity, seen=record.epoch, timeout=timeout)
        except BaseException:
            lock.release()
            lock.close()
            raise
        self._lock = lock
        for old in range(max(1, epoch - 3), epoch):
            if not is_held(self._path(old)):
                _remove(self._path(old))
        return self.epoch

    def _held(self, record: LeaseRecord) -> LeaseHeld:
        holder = str(_identity(record) or "another process")
        return LeaseHeld(
            f"{holder} drives this pipeline",
            holder=holder,
            where=self._folder,
            hint="stop it, or call take_over() if it is stuck",
        )

    def release(self) -> None:
        """Give the lease up, so that the next driver need not wait for this process to end."""
        if self._lock is not None:
            self._lock.release()
            self._lock.close()
            self._lock = None


def _identity(record: LeaseRecord) -> ProcessIdentity | None:
    return ProcessIdentity(**record.holder) if record.holder else None


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
