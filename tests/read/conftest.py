from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from tests.read.hand import Hand


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[hw.Pipeline]:
    with hw.Pipeline("shop", tmp_path / "shop", timezone="Europe/Oslo") as opened:
        yield opened


@pytest.fixture
def hand(pipeline: hw.Pipeline) -> Hand:
    return Hand(pipeline)
