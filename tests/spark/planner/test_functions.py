"""The documented example of every built-in function of Spark's, planned and evaluated by us, against Spark."""

from __future__ import annotations

import re
from collections import Counter

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater.change import WEIGHT
from headwater.errors import HeadwaterError, ViewRefused
from headwater.oracle.difference import difference
from headwater.spark.evaluator.evaluate import SparkEvaluator
from headwater.spark.planner.analyse import Analyser
from headwater.spark.session.start import start
from headwater.spark.single_partition import SinglePartition
from headwater.state.arrangement import Arrangement
from headwater.state.files import LocalStateFiles
from headwater.tick.small import Small
from tests.seed import every

NOT_TO_BE_COMPARED = re.compile(
    r"aes_encrypt|current_|now\(|uuid|rand|shuffle|localtime|monotonically|input_file|version\(\)|collect_set"
    r"|\b(collect_list|array_agg|first|first_value|last|last_value|any_value)\("
)
"""Their answers differ from call to call, or their order is open."""
SUMS_OF_FLOATS = re.compile(r"\b(regr_\w+|kurtosis|skewness)\(")
"""Their last digits depend on the order of the rows; everything else is compared exactly."""


class NoState:
    """The state before the first tick."""

    files = LocalStateFiles("")

    def before(self, name: str, schema: pa.Schema) -> Arrangement:
        return Arrangement(self.files, schema, ())

    def add(self, name: str, change: pa.Table) -> None:
        pass


def examples(spark: SparkSession) -> list[str]:
    tools = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils  # type: ignore[union-attr]
    texts = [info.getExamples() or "" for info in tools.listBuiltinFunctionInfos()]
    return [example for text in texts for example in re.findall(r"> (SELECT.*?);\n", text, re.DOTALL)]


def by_spark(spark: SparkSession, sql: str) -> pa.Table | None:
    """Spark's own answer; None if it has none, or cannot give it as Arrow."""
    try:
        return named(spark.sql(sql).toArrow())
    except (PySparkException, pa.ArrowInvalid):
        return None


def named(table: pa.Table) -> pa.Table:
    return table.rename_columns([str(place) for place in range(table.num_columns)])


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def by_us(analyser: Analyser, evaluator: SparkEvaluator, sql: str) -> pa.Table:
    plan, _ = analyser.plan("example", sql, lambda name: None)
    small = Small("v1", NoState(), evaluator, {}, filling=True)  # type: ignore[arg-type]
    change = small.run(plan.root.physical())
    weights = change.column(WEIGHT).to_pylist()
    repeated = [row for row, weight in zip(range(change.num_rows), weights, strict=True) for _ in range(weight)]
    return named(change.drop_columns([WEIGHT]).take(repeated))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_documented_example_of_every_function_gives_what_spark_gives() -> None:
    """A third of them, another one every day; all if thorough."""
    session = start("functions", master="local[2]")  # of the Spark that runs, if one does
    analyser = Analyser(session)
    evaluator = SparkEvaluator(analyser.catalyst, SinglePartition(analyser.catalyst))
    seen: Counter[str] = Counter()
    wrong = []
    found = examples(session)
    chosen = [found[place] for place in every(3, len(found))]
    for sql in chosen:
        try:
            ours = by_us(analyser, evaluator, sql)
        except ViewRefused:
            seen["refused"] += 1
            continue
        except HeadwaterError as error:
            if by_spark(session, sql) is not None:
                wrong.append(f"{sql}\n  ours failed: {error}")
            continue
        theirs = by_spark(session, sql)
        if theirs is None or NOT_TO_BE_COMPARED.search(sql):
            seen["not compared"] += 1
        elif rows(ours) == rows(theirs) or (SUMS_OF_FLOATS.search(sql) and not difference(theirs, ours)):
            seen["equal"] += 1
        else:
            wrong.append(f"{sql}\n  ours  {rows(ours)[:3]}\n  Spark {rows(theirs)[:3]}")
    print(dict(seen))
    assert not wrong, "\n".join(wrong)
    assert seen["equal"] > 0.8 * len(chosen)
    assert seen["refused"] < 0.11 * len(chosen)
