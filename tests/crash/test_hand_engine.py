"""The driver without Spark that other tests kill: that it computes the right thing, on both paths."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.log import Cut
from tests.crash import expected, shop
from tests.crash.hand_engine import drive
from tests.inside import store_of
from tests.read.hand import rows_of, summed


@pytest.mark.parametrize("path", ["small", *(pytest.param(p, marks=pytest.mark.slow) for p in ("large", "both"))])
def test_every_tick_holds_what_the_log_adds_up_to(tmp_path: Path, path: str) -> None:
    with shop.opened(str(tmp_path), views=False, retain_ticks=100) as pipeline:
        driver = drive(pipeline, large=path == "large")
        shop.declare_views(pipeline)
        traffic = shop.Traffic(pipeline, path)
        paths: set[str] = set()
        for number in range(1, 25):
            for _ in range(4):
                traffic.step()
            if path == "both":
                driver.small_rows = 20_000 * (number % 2)
            tick = pipeline.tick()
            assert tick is not None
            paths |= set(tick.paths.values())
            assert expected.check(pipeline) == number
        assert paths == ({"small"} if path == "small" else {"small", "large"})  # filling with nothing is small
        assert pipeline.tick() is None
        check_changes(pipeline)


def check_changes(pipeline: hw.Pipeline) -> None:
    """At every kept tick, what changed up to it adds up to what is read, and to what the log says."""
    for name in (*shop.VIEWS, *shop.TOPICS):
        changes = list(pipeline.changes(name))
        for number, _ in store_of(pipeline).ticks():
            assert summed(changes, number) == rows_of(pipeline.read(name, as_of=number)), (name, number)
    for number, _ in store_of(pipeline).ticks():
        record = store_of(pipeline).tick(number)
        assert record is not None
        wanted = expected.contents(pipeline, Cut.from_dict(record.cut))
        assert {**expected.read(pipeline, number), **wanted} == expected.read(pipeline, number)
