"""Expressions that need no Spark, against Spark's own answer for the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.evaluation.errors import EvaluationFailed
from headwater.expressions.evaluate import FUNCTIONS, Unsure, evaluate, panes_of
from headwater.expressions.expression import Expression, Filter, FunctionCall
from headwater.expressions.patterns import groups, is_plain
from headwater.operators.stateless import Fragment
from tests.inside import planning_of

pytestmark = pytest.mark.spark

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXTS = ["", "a", "B", "ab/c", "/", "//", "/x//", "abcabc", "Abc def", "10 %", "a\nb", "c" * 40]
TAME: dict[str, tuple[str, Callable[[Random], Any]]] = {
    "a": ("BIGINT", lambda r: r.choice([0, 1, -1, r.randint(-1000, 1000), r.randint(-(10**12), 10**12)])),
    "b": ("BIGINT", lambda r: r.randint(-5, 5)),
    "i": ("INT", lambda r: r.randint(-1000, 1000)),
    "s": ("SMALLINT", lambda r: r.randint(-100, 100)),
    "d": ("DECIMAL(12, 2)", lambda r: Decimal(r.randint(-(10**6), 10**6)).scaleb(-2)),
    "e": ("DECIMAL(12, 2)", lambda r: Decimal(r.randint(-3, 3)).scaleb(-2)),
    "x": ("DOUBLE", lambda r: r.choice([0.0, -0.0, 0.1, r.uniform(-10, 10), math.inf, 1e300])),
    "y": ("DOUBLE", lambda r: r.choice([0.0, -0.0, 0.1, -math.inf])),
    "t": ("STRING", lambda r: r.choice(_TEXTS)),
    "u": ("STRING", lambda r: r.choice(_TEXTS)),
    "m": ("TIMESTAMP", lambda r: _EPOCH + timedelta(microseconds=r.randint(-(10**14), 10**16))),
    "o": ("TIMESTAMP", lambda r: _EPOCH + timedelta(seconds=r.randint(-100, 100))),
    "n": ("DATE", lambda r: date(2026, 1, 1) + timedelta(days=r.randint(-9, 9))),
    "p": ("DATE", lambda r: date(2026, 1, 1) + timedelta(days=r.randint(-9, 9))),
    "f": ("BOOLEAN", lambda r: r.random() < 0.5),
    "g": ("BOOLEAN", lambda r: r.random() < 0.5),
}
WILD: dict[str, list[Any]] = {
    "a": [2**63 - 1, -(2**63), 2**62],
    "b": [2**63 - 1, -(2**63)],
    "i": [2**31 - 1, -(2**31)],
    "s": [2**15 - 1, -(2**15)],
    "d": [Decimal("9999999999.99"), Decimal("-9999999999.99")],
    "x": [math.nan, math.inf, -math.inf],
    "t": ["é", "ÀB/ß", "İ", "a\U0001f600/b", "ﬀ"],
    "m": [datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, 23, 59, 59, 999_999, tzinfo=UTC)],
    "n": [date(1, 1, 1), date(9999, 12, 31)],
}
CASES = [
    *(
        f"{one} {sign} {other}"
        for one, other in ("ab", "ii", "de", "tu", "mo", "np", "fg")
        for sign in ("=", "<=>")
    ),
    *(
        f"{one} {sign} {other}"
        for one, other in ("ab", "de", "xy", "tu", "mo", "np")
        for sign in ["<", "<=", ">", ">="]
    ),
    "a <> b OR f",
    "f AND g",
    "f OR g",
    "NOT f",
    "a = 5 AND (b < 3 OR f IS NULL)",
    "a IS NULL",
    "t IS NOT NULL AND f",
    "t IN ('a', 'B', '')",
    "b IN (1, 2, 3)",
    "NOT b IN (1, 2, 3)",
    "n IN (DATE'2026-01-01', DATE'2026-01-02')",
    "d IN (0.01, 0.02)",
    "i + 1",
    "a + b",
    "a - b",
    "a * b",
    "s + s",
    "s * s",
    "-a",
    "i - s",
    "a + i",
    "a % 7",
    "i % 10",
    "x + y",
    "x * 2",
    "x - y",
    "0.908 * a",
    "d * 2.5",
    "d + e",
    "d - e",
    "d * e",
    "d + 1",
    "CAST(i AS BIGINT)",
    "CAST(i AS DECIMAL(20, 2))",
    "CAST(d AS DECIMAL(20, 4))",
    "if(f, a, b)",
    "CASE WHEN a > 0 THEN 'more' WHEN a < 0 THEN 'less' END",
    "CASE WHEN f THEN t WHEN g THEN u ELSE 'no' END",
    "CASE b WHEN 1 THEN x WHEN 2 THEN y ELSE 0.5D END",
    "coalesce(t, u)",
    "coalesce(a, b, 0)",
    "ifnull(a > b, false)",
    "nullif(a, b)",
    "struct(a, t AS word)",
    "date_format(m, 'yyyy-MM-dd')",
    "date_format(m, 'HH:mm')",
    "date_format(m, 'dd/MM/yyyy HH:mm:ss')",
    "date_format(o, 'ss')",
    "hour(m)",
    "minute(m)",
    "second(o)",
    "date_trunc('hour', m)",
    "date_trunc('DAY', m)",
    "date_trunc('minute', o)",
    "m + INTERVAL '10' SECOND",
    "o - INTERVAL '1 02:03:04.5' DAY TO SECOND",
    "m + make_interval(0, 0, 0, 2, 0, 0, 0.000001)",
    "length(t)",
    "lower(t)",
    "upper(t)",
    "substring(t, 2)",
    "substring(t, 1, 3)",
    "length(t) - length(replace(t, 'c', ''))",
    "replace(t, 'ab', 'xyz')",
    "t LIKE '%b%'",
    "t LIKE 'a%'",
    "t LIKE '%c'",
    "contains(t, '/')",
    "concat(t, '-', u)",
    "t || u",
    "t RLIKE '^(a|B)'",
    "t RLIKE 'c+a|[^a-z]/'",
    "regexp_extract(t, '(b)([^/]*)', 2)",
    "regexp_extract(t, '^[A-Z]?b', 0)",
    "get(split(t, '/'), 0)",
    "get(split(t, '/'), 2)",
]
QUERIES = [
    "SELECT a, count(*) FROM rows GROUP BY a, window(m, '10 seconds')",
    "SELECT a, count(*) FROM rows GROUP BY a, window(m, '10 seconds', '3 seconds', '1 second')",
    "SELECT count(DISTINCT a), count(DISTINCT t) FILTER (WHERE b > 0), count(*) FROM rows GROUP BY f",
    "SELECT a, count(*) FROM rows GROUP BY a, session_window(m, '10 seconds')",
    "SELECT a + b AS c FROM rows WHERE a > 0 AND t <> 'a'",
    "SELECT c + 1 AS c FROM (SELECT a * 2 AS c, f FROM rows) WHERE c > 5 OR f",
]
SLICED = [
    "SELECT a, count(*) FROM rows GROUP BY a, window(m, '10 seconds', '2 seconds')",
    "SELECT a, count(*) FROM rows GROUP BY a, window(o, '10 seconds', '5 seconds', '3 seconds')",
    "SELECT count(a) FROM rows GROUP BY window(o, '1 minute', '20 seconds')",
]
NOT_SLICED = [
    "SELECT a, count(*) FROM rows GROUP BY a, window(m, '10 seconds')",
    "SELECT a, count(*) FROM rows GROUP BY a, window(m, '10 seconds', '3 seconds')",
    "SELECT m, count(*) FROM rows GROUP BY m, window(m, '10 seconds', '2 seconds')",
    "SELECT count(*) FROM rows WHERE m > TIMESTAMP'2026-01-01' GROUP BY window(m, '10 seconds', '2 seconds')",
    "SELECT max(m) FROM rows GROUP BY window(m, '10 seconds', '2 seconds')",
    "SELECT a, b, f, count(*) FROM rows GROUP BY CUBE(a, b, f)",
]
LEFT_TO_SPARK = [
    "a / b",
    "a % b",
    "a % -3",
    "CAST(a AS INT)",
    "CAST(x AS BIGINT)",
    "CAST(t AS BIGINT)",
    "date_format(m, 'EEEE')",
    "date_format(m, 'yyyy-D')",
    "date_format(m, 'dd MMMM yyyy')",
    "date_format(m, 'mmm')",
    "CASE WHEN a > 0 THEN 0.0D WHEN a < 0 THEN -0.0D ELSE 1D END",
    "m < TIMESTAMP'10000-01-01 00:00:00'",
    "n IN (DATE'0000-01-01', DATE'2026-01-01')",
    "m + INTERVAL '1' MONTH",
    "m + make_interval(0, 1)",
    "m + make_dt_interval(i)",
    "CAST(m - o AS INTERVAL DAY)",
    "-(m - o)",
    "d * d * d * d",
    "struct(a, b) = struct(b, a)",
    "t LIKE 'a_c'",
    "t RLIKE 'a.c'",
    "t RLIKE '(ab)+'",
    "t RLIKE u",
    "regexp_extract(t, '(a)*b', 1)",
    "regexp_extract(t, '(a', 1)",
    "regexp_extract(t, '(a)', 2)",
    "split(t, '.')",
    "t COLLATE UTF8_LCASE = 'a'",
    "substring(t, -2)",
    "round(x)",
]


def leads(fragment: Fragment) -> set[str]:
    """The functions of an expression."""

    def functions(expression: Expression) -> Iterator[str]:
        if isinstance(expression, FunctionCall):
            yield expression.function
            for each in expression.arguments:
                yield from functions(each)

    assert fragment.direct is not None
    found: set[str] = set()
    for step in fragment.direct.steps:
        if isinstance(step, Filter):
            found |= set(functions(step.condition))
        else:
            found |= {each for several in step.several for _, one in several for each in functions(one)}
    return found


@pytest.fixture(scope="module")
def parts(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with hw.Pipeline("direct", tmp_path_factory.mktemp("direct")) as pipeline:
        pipeline.stream("rows", ", ".join(f"{name} {kind}" for name, (kind, _) in TAME.items()))
        yield planning_of(pipeline)


def fragments(parts: Any, sql: str) -> list[Fragment]:
    """What a query computes from the stream itself."""
    plan, _ = parts.planning.plan("v", sql, parts.catalog())
    computing = [node for node in plan.walk() if isinstance(node, Fragment) and node.computing is not None]
    return [node for node in computing if all(field.shown in TAME for field in node.computing.inputs)]


def rows(fragment: Fragment, seed: int, count: int, *, wild: bool) -> pa.Table:
    """Rows for the inputs of a fragment, by what they are shown as."""
    random = Random(seed)
    columns = []
    for field in fragment.computing.inputs:
        make = TAME[field.shown][1]
        odd = WILD.get(field.shown, []) if wild else []
        values = [random.choice(odd) if odd and random.random() < 0.3 else make(random) for _ in range(count)]
        values = [None if random.random() < 0.15 else value for value in values]
        columns.append(pa.array(values, field.type))
    numbers = pa.array(range(count), pa.int64())
    table = pa.table([*columns, numbers], names=[*(each.name for each in fragment.computing.inputs), "_row"])
    return pa.concat_tables([table.slice(0, count // 3), table.slice(count // 3)])


def same(one: pa.Table, other: pa.Table) -> None:
    def told(table: pa.Table) -> list[str]:
        return sorted(repr(tuple(row.values())) for row in table.to_pylist())

    assert one.schema.types == other.schema.types
    assert one.column_names == other.column_names
    assert told(one) == told(other)


@pytest.mark.parametrize("query", SLICED)
def test_what_stands_for_a_moment_gives_what_the_moment_does(parts: Any, query: str) -> None:
    (fragment,) = fragments(parts, query)
    direct = fragment.direct
    assert direct is not None
    assert direct.panes is not None, query
    place = direct.inputs.index(direct.panes.column)
    for seed in range(5):
        given = rows(fragment, seed, 200, wild=bool(seed % 2))
        assert panes_of(direct.panes, given.column(place)) is None  # there are nulls
        given = given.filter(given.column(place).is_valid())
        values = panes_of(direct.panes, given.column(place))
        assert values is not None
        alike = given.set_column(place, given.field(place).with_type(values.type), values)
        same(evaluate(direct.panes.rest, alike), evaluate(direct, given))


@pytest.mark.parametrize("query", NOT_SLICED)
def test_what_matters_otherwise_or_makes_no_rows_is_not_sliced(parts: Any, query: str) -> None:
    for fragment in fragments(parts, query):
        direct = fragment.direct
        if direct is not None and direct.panes is not None:
            name = fragment.inputs[direct.inputs.index(direct.panes.column)]
            assert name in [old for _, old in fragment.passed], "what is passed on as it is is left alone"


@pytest.mark.parametrize("query", [*(f"SELECT {case} AS r FROM rows" for case in CASES), *QUERIES])
def test_values_are_those_of_spark(parts: Any, query: str) -> None:
    found = fragments(parts, query)
    assert found
    for number, fragment in enumerate(found):
        assert fragment.direct is not None, query
        for count in (0, 1, 300):
            given = rows(fragment, number + count, count, wild=False)
            same(evaluate(fragment.direct, given), parts.engine.evaluate(fragment.computing, given))


@pytest.mark.parametrize("query", [*(f"SELECT {case} AS r FROM rows" for case in CASES), *QUERIES])
def test_where_values_might_differ_spark_is_asked(parts: Any, query: str) -> None:
    sure = 0
    for fragment in fragments(parts, query):
        assert fragment.direct is not None
        for seed in range(12):
            given = rows(fragment, seed, 3, wild=True)
            try:
                made = evaluate(fragment.direct, given)
            except Unsure:
                continue
            sure += 1
            try:
                same(made, parts.engine.evaluate(fragment.computing, given))
            except EvaluationFailed as error:
                pytest.fail(f"Spark has no value: {error}, seed {seed}")
    assert sure, "never sure"


@pytest.mark.parametrize("case", LEFT_TO_SPARK)
def test_what_has_more_than_one_meaning_is_left_to_spark(parts: Any, case: str) -> None:
    assert all(each.direct is None for each in fragments(parts, f"SELECT {case} AS r FROM rows"))


def pattern(random: Random, depth: int = 2) -> str:
    """A regular expression at random, plain or nearly so."""
    kinds = ["a", "b", "/", "^", "[ab]", "[^a]", "[^a-z]", r"\d", r"\.", "1"]
    parts = []
    for _ in range(random.randint(1, 4)):
        if depth and random.random() < 0.3:
            parts.append(f"({pattern(random, depth - 1)})")
        else:
            one = random.choice(kinds)
            parts.append(one + (random.choice(["", "", "*", "+", "?"]) if one != "^" else ""))
        if random.random() < 0.2:
            parts.append("|")
    return "".join(parts)


def test_plain_patterns_at_random_find_what_java_finds(parts: Any) -> None:
    random = Random(20261118)
    patterns = [pattern(random) for _ in range(60)]
    assert all(map(is_plain, patterns))
    columns = []
    for number, each in enumerate(patterns):
        text = each.replace("\\", "\\\\")
        group = random.randint(0, groups(each))
        columns.append(f"t RLIKE '{text}' AS r{number}, regexp_extract(t, '{text}', {group}) AS e{number}")
    (fragment,) = fragments(parts, f"SELECT {', '.join(columns)} FROM rows")
    assert fragment.direct is not None
    texts = ["".join(random.choice("aab/1.\n") for _ in range(random.randint(0, 7))) for _ in range(300)]
    table = pa.table(
        [pa.array([*texts, None]), pa.array(range(301))], names=[fragment.computing.inputs[0].name, "_row"]
    )
    same(evaluate(fragment.direct, table), parts.engine.evaluate(fragment.computing, table))


def test_every_function_is_compared(parts: Any) -> None:
    queries = [*(f"SELECT {case} AS r FROM rows" for case in CASES), *QUERIES]
    found = set().union(*(leads(each) for query in queries for each in fragments(parts, query) if each.direct))
    assert found == set(FUNCTIONS)
