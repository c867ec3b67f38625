"""Which versions stay readable: the last so many ticks, and one per minute for a while."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.state import retained

SECOND = 1_000_000
MINUTE = 60 * SECOND


def test_the_newest_is_always_kept() -> None:
    assert retained([], 0, 100, 3600) == set()
    assert retained([(7, 0)], 10**12, 0, 0) == {7}
    assert retained([(6, 0), (7, 0)], 10**15, 0, 0) == {7}


def test_the_last_ticks_are_kept_however_old() -> None:
    ticks = [(n, n) for n in range(1, 301)]
    assert retained(ticks, 10**15, 100, 0) == set(range(201, 301))


def test_for_an_hour_the_last_of_every_minute_is_kept() -> None:
    ticks = [(n, n * 20 * SECOND) for n in range(600)]  # three per minute, for 200 minutes
    kept = retained(ticks, 200 * MINUTE, 1, 3600)
    assert kept == {419, *range(422, 600, 3)}
    assert 419 * 20 * SECOND < 140 * MINUTE <= 420 * 20 * SECOND


def test_what_was_the_newest_when_the_time_began_is_kept() -> None:
    """It was the current version until the next one came, which may be a moment ago."""
    ticks = [(1, 0), (2, MINUTE), (3, 100 * MINUTE)]
    assert retained(ticks, 101 * MINUTE, 1, 3600) == {2, 3}


@pytest.mark.parametrize("seed", range(10))
def test_at_any_minute_of_the_time_the_version_that_ended_it_can_be_read(seed: int) -> None:
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, 120 * MINUTE, 500)).tolist()
    ticks = list(enumerate(times, start=1))
    now = 120 * MINUTE
    kept = retained(ticks, now, 10, 3600)
    for minute in range(60, 120):
        current = [number for number, at in ticks if at < (minute + 1) * MINUTE][-1]
        assert current in kept
    assert kept >= set(range(491, 501))
    assert len(kept) <= 60 + 10 + 2
