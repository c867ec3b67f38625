"""For tests, ours and yours: a still clock, crashes at named points, Spark as the judge of views, a pytest fixture.

Installing Headwater registers this module as a pytest plugin, so a test that asks for `pipeline` gets one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headwater import crashpoint
from headwater.crashpoint import CRASH_POINTS
from headwater.pipeline import Pipeline

try:
    import pytest
except ImportError:  # all but the fixture does without
    pytest = None  # type: ignore[assignment]

__all__ = ["CRASH_POINTS", "ManualClock", "assert_same_as_batch", "crash_at", "pipeline"]


class ManualClock:
    """A clock that moves only when it is told to. A start without a time zone is in UTC."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        start = start if start.tzinfo is not None else start.replace(tzinfo=UTC)
        self._now = round(start.timestamp() * 1_000_000)

    def now(self) -> int:
        """Microseconds since 1970, UTC."""
        return self._now

    def advance(self, seconds: float = 0, *, by: timedelta | None = None) -> None:
        """Move on by so many seconds, and by a timedelta."""
        self._now += round((seconds + (by.total_seconds() if by else 0)) * 1_000_000)


@contextmanager
def crash_at(point: str, *, nth: int = 1) -> Iterator[None]:
    """Kill this process, as by SIGKILL, when it reaches the point for the n-th time within the block.

    For child processes set `HEADWATER_CRASH_AT=point` (or `point:n`) in their environment instead.
    """
    crashpoint.arm(point, nth=nth)
    try:
        yield
    finally:
        crashpoint.arm(None)


def assert_same_as_batch(pipeline: Pipeline, views: Collection[str] | None = None) -> None:
    """That views, all unless some are named, hold what Spark returns for their SQL over everything that was ticked.

    Replays the log from its beginning, so it takes as long as that takes. AssertionError with the rows that differ;
    columns of floats are compared within 1e-9, since sums of them depend on the order.
    """
    from headwater.oracle.oracle import same_as_batch  # noqa: PLC0415  brings in pyspark

    same_as_batch(pipeline, views)


def _pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    """A new pipeline in a temporary folder."""
    with Pipeline("test", tmp_path / "pipeline") as made:
        yield made


pipeline = None if pytest is None else pytest.fixture(_pipeline, name="pipeline")
