"""A tick that touches one key reads that key only, whatever the operator: counted, not timed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.tick.locality import PER_KEY, VIEWS, measure

KEYS = 30_000


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
def test_one_key_of_many(spark: SparkSession, tmp_path: Path, name: str) -> None:
    found = measure(KEYS, tmp_path, {name: VIEWS[name]})
    assert 0 < found[name] <= 10 * PER_KEY


@pytest.mark.spark
@pytest.mark.slow
def test_what_looks_at_everything_is_seen_to(spark: SparkSession, tmp_path: Path) -> None:
    found = measure(3000, tmp_path, {"all": "SELECT id, rank() OVER (ORDER BY x) AS r FROM a"})
    assert found["all"] > 3000
