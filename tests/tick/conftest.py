from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.tick.driver import Driver
from tests.crash import expected, shop
from tests.crash.hand_engine import drive
from tests.tick.moving import move


@pytest.fixture(params=[20_000, 0], ids=["small", "large"])
def driven(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[hw.Pipeline, Driver]]:
    """The shop after one tick, on either path."""
    with shop.opened(str(tmp_path), views=False, retain_ticks=100) as pipeline:
        driver = drive(pipeline, large=request.param == 0)
        shop.declare_views(pipeline)
        move(pipeline, 1)
        pipeline.tick()
        assert expected.check(pipeline) == 1
        yield pipeline, driver
