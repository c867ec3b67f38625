"""The short form of the campaign in `bad_views`: sixteen ways in which a view fails, beside five good ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tick.bad_views import HANGS, Way, check, of_ours, of_rows

pytestmark = pytest.mark.spark

SMALL = [
    of_rows("JSON", "projection"),
    of_rows("XML", "projection", sets_aside=True),
    of_rows("path in XML", "filter", sets_aside=True),
    of_rows("stack", "projection"),
    of_rows("sequence", "projection"),
    of_rows("function that leaves", "projection"),
    of_rows("function that raises what is no text", "projection"),
    of_rows("function of pandas of another length", "projection"),
    of_rows(HANGS, "filter"),
    of_ours("ArrowInvalid", "aggregate", late=True),
]
LARGE = [
    of_rows("sequence", "aggregate"),
    of_rows("JSON", "filter", sets_aside=True),
    of_rows("function that kills", "projection"),
    of_rows("function that raises", "window"),
    of_rows("twice a key", "group"),
    of_ours("KeyError", "join", late=True),
]


@pytest.mark.parametrize(("ways", "small_rows"), [(SMALL, 20_000), (LARGE, 0)], ids=["small", "large"])
def test_bad_views_are_named_and_good_ones_tick_every_time(
    tmp_path: Path, ways: list[Way], small_rows: int
) -> None:
    check(tmp_path / "bad", ways, small_rows=small_rows, seconds=10 if small_rows else 600, dropped=True)
