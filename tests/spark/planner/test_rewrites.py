"""What each rewrite makes of a query: SQL in, plan out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.plan.describe import describe
from tests.inside import plan_of

pytestmark = pytest.mark.spark

REWRITES: list[tuple[str, str, list[str]]] = [
    (
        "scalar",
        "SELECT id FROM a WHERE x > (SELECT max(x) FROM b)",
        [
            "bilinear: join on max(x) <= x",
            "  source: a (id, x)",
            "  tree: aggregate everything: max(x)",
            "    source: b (x)",
        ],
    ),
    (
        "scalar",
        "SELECT id FROM a WHERE x = (SELECT max(x) FROM s)",
        [
            "bilinear: join on x = max(x)",
            "  source: a (id, x)",
            "  accumulating: aggregate everything: max(x)",
            "    source: s (x)",
        ],
    ),
    (
        "scalar",
        "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b)",
        [
            "bilinear: join of all pairs",
            "  source: a (id)",
            "  accumulating: aggregate everything: count(1)",
            "    source: b ()",
        ],
    ),
    (
        "scalar",
        "SELECT id, (SELECT x FROM b WHERE id = 1) AS y FROM a",
        [
            "bilinear: join of all pairs",
            "  source: a (id)",
            "  recompute: aggregate everything",
            "    source: b (id, x)",
        ],
    ),
    (
        "scalar",
        "SELECT k, sum(x) + (SELECT count(*) FROM b) AS n FROM a GROUP BY k",
        [
            "bilinear: join of all pairs",
            "  accumulating: group by k: sum(x)",
            "    source: a (k, x)",
            "  accumulating: aggregate everything: count(1)",
            "    source: b ()",
        ],
    ),
    (
        "scalar",
        "SELECT sum(x * (SELECT count(*) FROM b)) AS n FROM a",
        [
            "accumulating: aggregate everything: sum((x * count(1)))",
            "  bilinear: join of all pairs",
            "    source: a (x)",
            "    accumulating: aggregate everything: count(1)",
            "      source: b ()",
        ],
    ),
    (
        "scalar",
        "SELECT a.id FROM a LEFT JOIN b ON a.k = b.k AND a.x < (SELECT min(x) FROM s)",
        [
            "bilinear: left outer join",
            "  bilinear: join on k = k, with the rows of the left side",
            "    bilinear: join of all pairs",
            "      source: a (id, k, x)",
            "      accumulating: aggregate everything: min(x)",
            "        source: s (x)",
            "    source: b (k)",
        ],
    ),
    (
        "not in",
        "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b)",
        [
            "bilinear: join of all pairs",
            "  bilinear: left anti join on k = k",
            "    source: a (id, k)",
            "    source: b (k)",
            "  accumulating: aggregate everything: count(1), count(b)",
            "    source: b (k)",
        ],
    ),
    (
        "not in",
        "SELECT id FROM a WHERE (k, x) NOT IN (SELECT k, x FROM b)",
        [
            "recompute: left anti join",
            "  source: a (id, k, x)",
            "  source: b (k, x)",
        ],
    ),
    (
        "not in",
        "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE b.x = a.x)",
        [
            "bilinear: left anti join",
            "  bilinear: join on x = x, with the rows of the left side",
            "    source: a (id, k, x)",
            "    source: b (k, x)",
        ],
    ),
    (
        "window order",
        "SELECT id, (SELECT x FROM b WHERE b.k = a.k ORDER BY b.id DESC LIMIT 1) AS y FROM a",
        [
            "bilinear: left outer join on k = k",
            "  source: a (id, k)",
            "  tree: first 1 rows by b.k",
            "    source: b (id, k, x)",
        ],
    ),
    (
        "window order",
        "SELECT id, row_number() OVER (PARTITION BY k ORDER BY x) AS n FROM (SELECT * FROM a ORDER BY id DESC)",
        [
            "recompute: window functions by __auto_generated_subquery_name.k",
            "  source: a (id, k, x)",
        ],
    ),
    (
        "nearest",
        "SELECT a.id, b.id AS near FROM a JOIN b APPROX NEAREST 1 BY DISTANCE abs(a.x - b.x)",
        [
            "recompute: group by id, x, place",
            "  bilinear: join of all pairs",
            "    recompute: window functions by id, x",
            "      source: a (id, x)",
            "    source: b (id, k, x)",
        ],
    ),
    (
        "none",
        "SELECT DISTINCT k FROM a WHERE k IN (SELECT k FROM b)",
        [
            "accumulating: distinct k",
            "  bilinear: left semi join on k = k",
            "    source: a (k)",
            "    source: b (k)",
        ],
    ),
]


@pytest.fixture(scope="module")
def pipeline(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[hw.Pipeline]:
    with hw.Pipeline("rewrites", tmp_path_factory.mktemp("rewrites") / "p") as made:
        for name in "ab":
            made.table(name, "id BIGINT, k INT, x BIGINT", key="id")
        made.stream("s", "k INT, x BIGINT")
        yield made


def outline(pipeline: hw.Pipeline, sql: str) -> list[str]:
    """The operators of a query, without those that only filter and compute."""
    plan = plan_of(pipeline, "v", sql)
    above: list[bool] = []
    lines = []
    for line in describe(plan):
        del above[line["depth"] :]
        if line["kind"] != "linear":
            text = re.sub(r"#\d+L?", "", line["text"])
            lines.append(f"{'  ' * sum(above)}{line['kind']}: {text}")
        above.append(line["kind"] != "linear")
    return lines


@pytest.mark.parametrize(("rewrite", "sql", "wanted"), REWRITES, ids=[sql for _, sql, _ in REWRITES])
def test_a_query_becomes_this_plan(pipeline: hw.Pipeline, rewrite: str, sql: str, wanted: list[str]) -> None:
    assert outline(pipeline, sql) == wanted


CORRELATED = {
    "an aggregate": "SELECT o.id, (SELECT {call} FROM b WHERE b.k = o.k AND b.x < o.x) AS v FROM a o",
    "in a condition": "SELECT o.id FROM a o WHERE o.x > (SELECT {call} FROM b WHERE b.k = o.k AND b.x < o.x)",
    "in an aggregate": "SELECT sum((SELECT {call} FROM b WHERE b.k = o.k AND b.x < o.x)) AS v FROM a o",
    "lateral": "SELECT o.id, v FROM a o JOIN LATERAL (SELECT {call} AS v FROM b WHERE b.k = o.k AND b.x < o.x)",
    "lateral, left": "SELECT o.id, v FROM a o LEFT JOIN LATERAL "
    "(SELECT {call} AS v FROM b WHERE b.k = o.k AND b.x BETWEEN o.x - 3 AND o.x) ON TRUE",
    "the first": "SELECT o.id, v FROM a o JOIN LATERAL "
    "(SELECT b.x AS v FROM b WHERE b.k = o.k AND b.x < o.x ORDER BY b.x LIMIT 1)",
}


@pytest.mark.parametrize("call", ["count(*)", "sum(b.x)"])
@pytest.mark.parametrize("sql", CORRELATED.values(), ids=CORRELATED)
def test_equalities_with_the_outer_row_are_keys_beside_other_conditions(
    pipeline: hw.Pipeline, sql: str, call: str
) -> None:
    lines = outline(pipeline, sql.format(call=call))
    assert not [line for line in lines if "all pairs" in line], lines
    assert [line for line in lines if "bilinear: join on k = k, " in line], lines


RANGES = {
    "a.x < b.x": "join on x <= x",
    "a.k = b.k AND a.x >= b.x": "join on k = k, x <= x",
    "b.x BETWEEN a.x AND a.x + 5": "join on x <= x",
    "a.x > b.x AND a.x <= b.x + 1.5D": "join on CAST(a.x AS DOUBLE) <= (CAST(b.x AS DOUBLE) + 1.5D), x <= x",
    "CAST(CAST(a.x AS STRING) AS INT) < b.x": "join of all pairs",
    "a.x < b.x AND b.id < a.id": "join on x <= x, id <= id",
    "a.x < b.id AND a.id > b.id AND a.x > b.x": "join on x <= id, id <= id",
    "a.x + b.x < 7": "join of all pairs",
    "a.x < b.x OR a.k = 1": "join of all pairs",
    "a.id = b.id AND a.x < b.x": "join on id = id",
    "a.k = b.id AND a.x < b.x": "join on key = id",
    "CAST(a.x AS DECIMAL(38, 0)) < b.x": "join of all pairs",
}


@pytest.mark.parametrize("condition", RANGES)
def test_the_range_in_a_condition_is_found(pipeline: hw.Pipeline, condition: str) -> None:
    first = outline(pipeline, f"SELECT a.id AS i, b.id AS j FROM a JOIN b ON {condition}")[0]
    assert first == f"bilinear: {RANGES[condition]}"


def test_a_range_is_not_searched_where_a_key_has_one_row(pipeline: hw.Pipeline) -> None:
    grouped = "(SELECT k, max(x) AS most FROM b GROUP BY k HAVING most > 3)"
    lines = outline(pipeline, f"SELECT a.id FROM a JOIN {grouped} g ON a.k = g.k AND a.x < g.most")
    assert lines[0] == "bilinear: join on k = k"
    lines = outline(
        pipeline, "SELECT a.id FROM a JOIN (SELECT id AS n, x FROM b WHERE x > 3) c ON a.id = c.n AND a.x < c.x"
    )
    assert lines[0] == "bilinear: join on id = n"


def test_two_streams_that_meet_by_a_key_are_looked_up_by_it(pipeline: hw.Pipeline) -> None:
    streams = "SELECT l.x FROM s l JOIN s r ON {} l.x < r.x"
    assert outline(pipeline, streams.format("l.k = r.k AND"))[0] == "bilinear: join on k = k"
    assert outline(pipeline, streams.format(""))[0] == "bilinear: join on x <= x"
    assert (
        outline(pipeline, "SELECT s.x FROM s JOIN a ON s.k = a.k AND s.x < a.x")[0]
        == "bilinear: join on k = k, x <= x"
    )
