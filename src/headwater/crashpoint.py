"""Named moments at which a test can make the process die as if by SIGKILL.

`reach(point)` does nothing unless that point was armed, by `HEADWATER_CRASH_AT=point` (or `point:n` for the
n-th time it is reached) or by `arm`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

CRASH_POINTS: tuple[str, ...] = (
    "append.locked",
    "append.half_written",
    "append.written",
    "append.published",
    "append.before_sync",
    "append.synced",
    "roll.sealed",
    "roll.created",
    "roll.renamed",
    "transaction.spilled",
    "transaction.written",
    "transaction.synced",
    "transaction.decided",
    "recover.before_truncate",
    "recover.truncated",
    "trim.recorded",
    "declare.stored",
    "alter.stored",
    "tick.tables",
    "tick.computed",
    "tick.written",
    "tick.synced",
    "tick.stored",
    "tick.committed",
    "tick.expired",
)
"""Every point, in the order of a record's path."""


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class _Armed:
    def __init__(self) -> None:
        self.point: str | None = None
        self.left = 0
        self.action: Callable[[], None] = _die


_armed = _Armed()


def arm(point: str | None, *, nth: int = 1, action: Callable[[], None] = _die) -> None:
    """Arm one point (None: disarm). `action` replaces dying, for tests in the same process."""
    if point is not None and point not in CRASH_POINTS:
        msg = f"no crash point is called {point!r}"
        raise ValueError(msg)
    if nth < 1:
        msg = f"nth is {nth}: the first time is 1"
        raise ValueError(msg)
    _armed.point, _armed.left, _armed.action = point, nth, action


def reach(point: str) -> None:
    """Say that this moment has come."""
    if _armed.point != point:
        return
    _armed.left -= 1
    if _armed.left == 0:
        _armed.action()


def is_armed(point: str) -> bool:
    """Whether that moment, reached now, would act: for points that need something prepared."""
    return _armed.point == point and _armed.left == 1


def _arm_from_environment() -> None:
    wanted = os.environ.get("HEADWATER_CRASH_AT")
    if wanted:
        point, _, nth = wanted.partition(":")
        if point not in CRASH_POINTS or not (nth or "1").isdecimal() or int(nth or 1) < 1:
            msg = f"HEADWATER_CRASH_AT={wanted}: there is no such crash point"
            raise ValueError(msg)
        arm(point, nth=int(nth or 1))


_arm_from_environment()
