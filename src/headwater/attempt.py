"""An attempt at computing something: whoever computes for it asks now and then whether to go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event

from headwater.errors import HeadwaterError


class Stopped(HeadwaterError):
    """The attempt was given up; nobody waits for what it gives."""


@dataclass(frozen=True)
class Attempt:
    """What one view, or something shared, is computed by in one tick. Its `name` is no other's.

    It is `alone` if others that take much memory wait for it. `stopped` says that nobody waits for it any more,
    `ended` that nothing computes for it.
    """

    name: str
    alone: Event = field(default_factory=Event)
    stopped: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)


_current: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


@contextmanager
def attempting(attempt: Attempt) -> Iterator[None]:
    """What this thread does in the block, it does for an attempt."""
    token = _current.set(attempt)
    try:
        yield
    finally:
        _current.reset(token)
        attempt.ended.set()


def current() -> Attempt | None:
    """What this thread computes for."""
    return _current.get()


def go_on() -> None:
    """`Stopped` if the attempt that this thread computes for was given up."""
    attempt = _current.get()
    if attempt is not None and attempt.stopped.is_set():
        msg = "it was given up"
        raise Stopped(msg)


def is_alone() -> bool:
    """Whether nothing else that takes much memory is computed beside this."""
    attempt = _current.get()
    return attempt is None or attempt.alone.is_set()
