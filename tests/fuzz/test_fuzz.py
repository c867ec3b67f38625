"""Incremental equals recomputed for all of deterministic Spark SQL: 100 random queries, and cases that once failed.

`python -m tests.fuzz.run` runs more, and any seed again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.equivalence.campaign import PATHS
from tests.fuzz.campaign import run_case
from tests.fuzz.cases import make_case
from tests.fuzz.kept import KEPT
from tests.fuzz.plain import Plain, tables_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_FIRST_SEED = 7000
_PIPELINES = 10


@pytest.fixture(scope="module", autouse=True)
def _running(spark: SparkSession) -> None:
    """Pipelines find Spark running."""


@pytest.mark.parametrize("number", range(_PIPELINES))
def test_views_equal_batch(number: int, tmp_path: Path) -> None:
    outcome = run_case(make_case(_FIRST_SEED + number, PATHS[number % 2], ticks=3), tmp_path)
    print(f"{len(outcome.checked)} views, {outcome.ticks} ticks")
    for name, refusal in outcome.refused.items():
        print(f"refused: {name}: {refusal}")


def test_what_once_failed(tmp_path: Path) -> None:
    for place, (seed, number, path) in enumerate(KEPT):
        run_case(make_case(seed, path).only(number), tmp_path / str(place))


@pytest.mark.parametrize("seed", [_FIRST_SEED, _FIRST_SEED + 1])
def test_spark_runs_the_queries_and_has_one_answer(seed: int, tmp_path: Path) -> None:
    case = make_case(seed, "small")
    plain = Plain()
    *_, tables = tables_of(case, tmp_path)
    plain.hold(tables)
    problems = {view.name: plain.problem(view.query.sql()) for view in case.views}
    assert sum(map(bool, problems.values())) <= 1, problems
