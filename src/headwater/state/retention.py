"""Which versions stay readable."""

from __future__ import annotations

from collections.abc import Sequence

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND


def retained(ticks: Sequence[tuple[int, int]], now: int, retain_ticks: int, retain_for_seconds: float) -> set[int]:
    """The numbers of the ticks to keep, of ticks as (number, time) in ascending order; times in microseconds.

    These are the last `retain_ticks`, and the newest in any case; of those not older than `retain_for_seconds`, the
    last of every minute; and the one that was the newest when that time began.
    """
    if not ticks:
        return set()
    begin = now - int(retain_for_seconds * _SECOND)
    last_of_minute = {at // _MINUTE: number for number, at in ticks if at >= begin}
    before = [number for number, at in ticks if at < begin][-1:] if retain_for_seconds > 0 else []
    last = [number for number, _ in ticks[-max(retain_ticks, 1) :]]
    return {*last, *last_of_minute.values(), *before}
