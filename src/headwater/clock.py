"""Where all of our code takes the time from."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time in whole microseconds since 1970, UTC. May stand still or go backwards."""

    def now(self) -> int:
        """The time now."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        """The time now."""
        return time.time_ns() // 1000


def as_datetime(microseconds: int) -> datetime:
    """The same instant as an aware datetime."""
    return datetime.fromtimestamp(microseconds / 1_000_000, tz=UTC)
