"""The loop: a tick whenever data arrives."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from headwater.log import Log
from headwater.tick.report import Tick

_SHORTEST = 0.05
_LONGEST = 0.5


class Ticking(Protocol):
    """Whoever ticks."""

    def tick(self) -> Tick | None:
        """One tick; None if there was nothing to do."""
        ...


def run(
    driver: Ticking,
    log: Log,
    topics: Sequence[str],
    *,
    seconds: float | None = None,
    until: Callable[[Tick], bool] | None = None,
) -> None:
    """Tick whenever one of the topics has news, at most 20 times a second when little comes.

    Ends after so many seconds, or when `until` says True of a tick. Views that another process declares are found
    within half a second.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    news = log.watch(topics)
    try:
        while deadline is None or time.monotonic() < deadline:
            started = time.monotonic()
            tick = driver.tick()
            if tick is not None and until is not None and until(tick):
                return
            left = _LONGEST if deadline is None else min(_LONGEST, max(0.0, deadline - time.monotonic()))
            if tick is None:
                news.wait(left)
            time.sleep(max(0.0, min(_SHORTEST - (time.monotonic() - started), left)))
    finally:
        news.close()
