"""The seed of the day: random cases differ from day to day, and any day can be repeated with SEED=20261119.

It is put into the environment, so that all processes of a run have the same one, also around midnight.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

SEED = int(os.environ.get("SEED") or datetime.now(UTC).strftime("%Y%m%d"))
os.environ["SEED"] = str(SEED)
THOROUGH = int(os.environ.get("HEADWATER_THOROUGH", "1"))
"""How many times as much to try: 1 for every day, 10 and another SEED for a long night."""


def every(step: int, stop: int, start: int = 0) -> range:
    """One number of so many: which ones depends on the day, so that all have their turn; all if thorough."""
    return range(start + SEED % step, stop, step) if THOROUGH == 1 else range(start, stop)
