"""The seed of the day: random cases differ from day to day, and any day can be repeated with SEED=20261119.

It is put into the environment, so that all processes of a run have the same one, also around midnight.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

Value = TypeVar("Value")
SEED = int(os.environ.get("SEED") or datetime.now(UTC).strftime("%Y%m%d"))
os.environ["SEED"] = str(SEED)
THOROUGH = int(os.environ.get("HEADWATER_THOROUGH", "1"))
"""How many times as much to try: 1 for every day, 10 and another SEED for a long night."""


def every(step: int, stop: int, start: int = 0) -> range:
    """One number of so many: which ones depends on the day, so that all have their turn; all if thorough."""
    return range(start + SEED % step, stop, step) if THOROUGH == 1 else range(start, stop)


def by_turns(values: Sequence[Value], place: int = 0) -> list[Value]:
    """One of these a day, by turns, those of another place another; all if thorough."""
    return [values[(SEED + place) % len(values)]] if THOROUGH == 1 else list(values)
