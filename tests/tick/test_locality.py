"""A tick that touches one key reads that key only, whatever the operator: counted, not timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tick.locality import MOST, VIEWS, measure

KEYS = 30_000


pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def rows_read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    return measure(KEYS, tmp_path_factory.mktemp("locality"))


@pytest.mark.parametrize("name", VIEWS)
def test_one_key_of_many(rows_read: dict[str, int], name: str) -> None:
    assert 0 < rows_read[name] <= MOST[name]


def test_what_looks_at_everything_is_seen_to(tmp_path: Path) -> None:
    found = measure(3000, tmp_path, {"all": "SELECT id, rank() OVER (ORDER BY x) AS r FROM a"})
    assert found["all"] > 3000
