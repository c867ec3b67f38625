"""The lease: one process at a time drives a pipeline."""

from __future__ import annotations

import dataclasses

from headwater.errors import LeaseHeld, Unavailable
from headwater.liveness import Hold, Liveness
from headwater.lock import Lock, forget_in_child
from headwater.process import ProcessIdentity
from headwater.store.records import LeaseRecord
from headwater.store.store import Store

_PATIENCE = 2.0


class Lease:
    """The right to commit ticks, as an epoch in the store plus a name that is held while its holder lives.

    The store's row names the epoch and the holder, who holds `lease.<epoch>`; `where` is for people. `acquire`
    takes over from a dead holder at once and refuses a living one; `take_over` replaces a living one too: the
    raised epoch makes every later commit of the old holder fail with `Fenced`.
    """

    def __init__(self, store: Store, liveness: Liveness, where: str) -> None:
        self.epoch = 0
        self.where = where
        self._store = store
        self._liveness = liveness
        self._held: Hold | None = None
        forget_in_child(self)

    def after_fork(self) -> None:
        """The lease stays with the parent."""
        self.epoch, self._held = 0, None

    @property
    def holds(self) -> bool:
        """Whether this process drives, as far as it knows."""
        return self._held is not None

    def acquire(self) -> int:
        """Become the driver if nobody living is; `LeaseHeld` otherwise. Returns the epoch."""
        if self._held is not None:
            return self.epoch
        record = self._store.lease()
        if record.holder and self._liveness.is_alive(_name(record.epoch)):
            raise self._is_held(record, record.epoch)
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
        raise LeaseHeld(msg, holder=blocking, where=self.where, hint="continue or stop that process")

    def kill_if_holding(self, lock: Lock, record: LeaseRecord) -> bool:
        """Kill the replaced holder if it is the one that sits on this lock; False if it is someone else."""
        holder = _identity(record)
        return holder is not None and lock.holder() == holder.pid and holder.kill()

    def _become(self, record: LeaseRecord, *, timeout: float | None = None) -> int:
        """Hold the next epoch's name first, so that whoever reads the new row finds its holder alive."""
        epoch = record.epoch + 1
        held = self._liveness.hold(_name(epoch))
        if held is None:
            raise self._is_held(record, epoch)
        try:
            identity = dataclasses.asdict(ProcessIdentity.own())
            self.epoch = self._store.raise_epoch(identity, seen=record.epoch, timeout=timeout)
        except BaseException:
            held.release()
            raise
        self._held = held
        for old in range(max(1, epoch - 3), epoch):
            self._liveness.forget(_name(old))
        return self.epoch

    def _is_held(self, record: LeaseRecord, epoch: int) -> LeaseHeld:
        """The error for an epoch that somebody holds: whom the store names, unless another has just come."""
        known, pid = _identity(record), self._liveness.who(_name(epoch))
        told = known if known is not None and pid in {None, known.pid} else None
        holder = str(told or (f"process {pid}" if pid else "another process"))
        hint = "stop it, or call take_over() if it is stuck"
        return LeaseHeld(f"{holder} drives this pipeline", holder=holder, where=self.where, hint=hint)

    def release(self) -> None:
        """Give the lease up, so that the next driver need not wait for this process to end."""
        held, self._held = self._held, None
        if held is not None:
            held.release()


def _identity(record: LeaseRecord) -> ProcessIdentity | None:
    return ProcessIdentity(**record.holder) if record.holder else None


def _name(epoch: int) -> str:
    return f"lease.{epoch}"


def driving(store: Store, liveness: Liveness) -> LeaseRecord | None:
    """Who drives at this moment; None if nobody living does."""
    record = store.lease()
    return record if record.holder and liveness.is_alive(_name(record.epoch)) else None
