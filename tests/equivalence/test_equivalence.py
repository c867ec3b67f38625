"""Incremental equals recomputed: 200 random views on both paths.

A case is one view, checked over the random traffic of its pipeline at random ticks and at the end; several views
share a pipeline. `python -m tests.equivalence.run` runs more, and any seed again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.equivalence.campaign import PATHS, run_case
from tests.equivalence.cases import make_case
from tests.equivalence.kept import KEPT

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_FIRST_SEED = 1000
_PIPELINES = 36


def _seeds() -> list[tuple[int, str]]:
    fixed = [(_FIRST_SEED + number, PATHS[number % 2]) for number in range(_PIPELINES)]
    return [*KEPT, *fixed]


def test_there_are_two_hundred_cases() -> None:
    views = {path: sum(len(make_case(seed).views) for seed, each in _seeds() if each == path) for path in PATHS}
    assert sum(views.values()) >= 210  # a few may be refused
    assert min(views.values()) >= 90


@pytest.mark.parametrize(("seed", "path"), _seeds())
def test_views_equal_batch(seed: int, path: str, tmp_path: Path) -> None:
    outcome = run_case(make_case(seed), path, tmp_path)
    print(f"seed {seed}, {path} path: {len(outcome.checked)} views, {outcome.ticks} ticks")
    for name, refusal in outcome.refused.items():
        print(f"refused: {name}: {refusal}")
    assert len(outcome.refused) <= 1
