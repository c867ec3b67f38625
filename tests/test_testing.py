from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from headwater.clock import as_datetime
from headwater.testing import ManualClock, crash_at


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
    clock.advance(1, by=timedelta(seconds=2))
    assert clock.now() == start + 3_000_000


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


@pytest.mark.parametrize("nth", [0, -1])
def test_a_crash_that_would_never_come_is_refused(nth: int) -> None:
    with pytest.raises(ValueError, match="the first time is 1"), crash_at("tick.computed", nth=nth):
        pytest.fail("it is armed")
    environment = {**os.environ, "HEADWATER_CRASH_AT": f"tick.computed:{nth}"}
    done = subprocess.run(
        [sys.executable, "-c", "import headwater.crashpoint"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "there is no such crash point" in done.stderr


def test_a_clock_and_the_comparison_need_no_pytest(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['pytest'] = sys.modules['_pytest'] = None\n"
        "import headwater as hw\n"
        "from headwater.testing import CRASH_POINTS, ManualClock, assert_same_as_batch, crash_at\n"
        f"with hw.Pipeline('p', {str(tmp_path)!r}, clock=ManualClock()) as p:\n"
        "    try:\n"
        "        assert_same_as_batch(p)\n"
        "    except hw.HeadwaterError as error:\n"
        "        print(error.what)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", "there is nothing to compare before the first tick\n")
