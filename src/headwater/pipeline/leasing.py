"""The lease of a pipeline: held by who drives it, and taken from who is stuck."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from headwater.errors import LeaseHeld, LogDamaged
from headwater.lock import Lock
from headwater.log import TopicDropped

if TYPE_CHECKING:
    from headwater.pipeline.pipeline import Pipeline

_PATIENCE = 2.0


@contextmanager
def to_drive(pipeline: Pipeline) -> Iterator[None]:
    """With the lease, which is taken before Spark is started: who may not drive learns it at once.

    It is given back where Spark could not be started. What comes from the end of Java is raised as such.
    """
    starting = pipeline._parts is None
    held = pipeline._lease.holds
    pipeline._lease.acquire()
    try:
        yield
    except BaseException as error:
        if starting and pipeline._parts is None and not held:  # others may be able to start it
            pipeline._lease.release()
        if isinstance(error, KeyboardInterrupt):  # py4j would tell of every call that it broke off
            raise KeyboardInterrupt from None
        ended = pipeline._parts.engine.ended(error) if pipeline._parts is not None else None
        if ended is None:
            raise
        raise ended from None


def take_over(pipeline: Pipeline) -> None:
    """Take the lease, and then every lock that a tick needs: who sits on one is killed if it held the lease.

    `LeaseHeld` if something else sits on one.
    """
    replaced = pipeline._store.lease()
    pipeline._lease.take_over()
    for name in pipeline._relations.topics():
        with suppress(LogDamaged, TopicDropped):  # which have no lock that anyone needs
            pipeline._topic(name)  # so that the log knows its locks
    for what, lock in pipeline._log.locks():
        if not _passes(lock) and not (pipeline._lease.kill_if_holding(lock, replaced) and _passes(lock)):
            holder = f"process {lock.holder()}"
            msg = f"{holder} sits on the lock of {what}"
            raise LeaseHeld(msg, holder=holder, where=pipeline.path, hint="continue or stop that process")


def _passes(lock: Lock) -> bool:
    """Whether nobody sits on a lock for long."""
    if lock.acquire(timeout=_PATIENCE):
        lock.release()
        return True
    return False
