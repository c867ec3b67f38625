"""The table in docs/sql.md, line by line, against what the planner does with its examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.plan.describe import describe
from tests.inside import plan_of

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parent.parent.parent / "docs" / "sql.md"
LINES = re.findall(r"^\| (.+?) \| `(.+)` \| (\w+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def pipeline(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[hw.Pipeline]:
    with hw.Pipeline("page", tmp_path_factory.mktemp("page") / "p") as made:
        columns = "id BIGINT, k STRING, x DOUBLE, at TIMESTAMP"
        made.table("a", columns, key="id")
        made.table("b", columns, key="id")
        made.stream("s", columns)
        made.udf("twice", lambda x: 2 * x, "DOUBLE")
        made.udf("spread", lambda v: float(v.max() - v.min()), "DOUBLE", kind="aggregate")
        yield made


@pytest.mark.parametrize(("construct", "sql", "kind", "cost"), LINES, ids=[line[0] for line in LINES])
def test_the_page_says_what_the_planner_does(
    pipeline: hw.Pipeline, construct: str, sql: str, kind: str, cost: str
) -> None:
    plan = plan_of(pipeline, "v", sql)
    lines = describe(plan)
    stateful = [line for line in lines if line["state"]]
    assert (stateful[0]["kind"] if stateful else "linear") == kind
    looks_at_all = any("everything" in line["work"] or "every row" in line["work"] for line in stateful)
    assert looks_at_all == ("everything" in cost or "all rows" in cost), lines


def test_every_kind_and_many_constructs_are_on_the_page() -> None:
    assert {line[2] for line in LINES} == {"linear", "bilinear", "accumulating", "tree", "recompute"}
    assert len(LINES) > 30
