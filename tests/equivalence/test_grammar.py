"""The grammar: whatever it makes, Spark takes it and no row of the traffic makes it fail."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.testing import ManualClock
from tests.equivalence.applied import apply, declare
from tests.equivalence.cases import Case
from tests.equivalence.stand_in import StandIn
from tests.equivalence.wide import wide_case
from tests.seed import SEED

_SEEDS = range(SEED, SEED + 5)
_FEATURES = {
    "WHERE": r" WHERE ",
    "LATERAL VIEW": r"LATERAL VIEW ",
    "LATERAL VIEW OUTER": r"LATERAL VIEW OUTER",
    "explode": r"\bexplode\(",
    "posexplode": r"\bposexplode(_outer)?\(",
    "inline": r"\binline\(",
    "UNION ALL": r" UNION ALL ",
    "CTE": r"^WITH ",
    "JOIN ON": r" JOIN \S+ \S+ ON ",
    "JOIN USING": r" USING \(",
    "comma join": r"FROM \w+ \w+, ",
    "self-join": r"(\w+) t\d+ (?:INNER )?JOIN \1 t\d+",
    "null-safe join": r" ON [^=]*<=>",
    "three inputs": r" JOIN .* JOIN ",
    "GROUP BY": r" GROUP BY ",
    "GROUP BY ALL": r" GROUP BY ALL",
    "HAVING": r" HAVING ",
    "FILTER": r" FILTER \(WHERE",
    "DISTINCT": r"SELECT DISTINCT",
    "count(*)": r"count\(\*\)",
    "sum": r"\bsum\(",
    "avg": r"\bavg\(",
    "variance": r"\b(var_pop|var_samp|variance|stddev\w*)\(",
    "min or max": r"\b(min|max)\(",
    "a topic's log": r"__log",
    "a view over a view": r"\bv\d ",
    "a nested query": r"FROM \(SELECT",
}


@cache
def many() -> list[Case]:
    return [wide_case(seed, "small") for seed in range(150)]


def answers(case: Case, folder: Path) -> dict[str, pa.Table]:
    """Spark's answers after all of the traffic."""
    with hw.Pipeline("grammar", folder, timezone=case.timezone, clock=ManualClock()) as pipeline:
        for topic in case.topics:
            declare(pipeline, topic)
        for steps in case.ticks:
            for step in steps:
                apply(pipeline, step)
        return StandIn(pipeline, {view.name: view.query.sql() for view in case.views}).answers()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", _SEEDS)
def test_spark_runs_every_view(seed: int, tmp_path: Path) -> None:
    case = wide_case(seed, "small")
    found = answers(case, tmp_path)
    assert found.keys() == {view.name for view in case.views}
    assert max(table.num_rows for table in found.values()) < 20_000


def test_the_same_seed_makes_the_same_case() -> None:
    assert repr(wide_case(5, "small")) == repr(wide_case(5, "small"))
    assert repr(wide_case(5, "small")) != repr(wide_case(6, "small"))


def test_one_view_can_be_run_alone() -> None:
    case = next(case for case in many() if any("v" in "".join(v.reads) for v in case.views))
    view = next(view for view in case.views if any(name.startswith("v") for name in view.reads))
    alone = case.only(view.name)
    assert alone.views[-1] == view
    assert {name for name in view.reads if name.startswith("v")} <= {each.name for each in alone.views}
    assert alone.ticks == case.ticks


@pytest.mark.parametrize("feature", _FEATURES)
def test_every_feature_is_common_enough(feature: str) -> None:
    pattern = re.compile(_FEATURES[feature])
    views = [view.query.sql() for case in many() for view in case.views]
    share = sum(bool(pattern.search(sql)) for sql in views) / len(views)
    assert share > 0.01, f"{feature} is in {share:.2%} of the views"
