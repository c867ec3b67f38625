from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from headwater.clock import as_datetime
from headwater.testing import ManualClock


def test_a_manual_clock_stands_still_until_it_is_advanced() -> None:
    clock = ManualClock()
    start = clock.now()
    assert clock.now() == start
    clock.advance(1.5)
    assert clock.now() == start + 1_500_000
    clock.advance(by=timedelta(minutes=1))
    assert clock.now() == start + 61_500_000
    clock.advance(-61.5)
    assert clock.now() == start


@pytest.fixture
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_utc")
def test_a_manual_clocks_start_without_a_time_zone_is_in_utc() -> None:
    noon = datetime(2026, 3, 1, 12)  # noqa: DTZ001  that is what it is about
    assert as_datetime(ManualClock(noon).now()) == noon.replace(tzinfo=UTC)
    east = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert as_datetime(ManualClock(east).now()) == datetime(2026, 3, 1, 10, tzinfo=UTC)
