"""Spark without Headwater: whether a query runs, and gives one answer however its inputs lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater import Pipeline
from headwater.oracle.difference import difference
from headwater.oracle.naive import content
from headwater.oracle.oracle import _frame
from headwater.schema import parse
from headwater.spark.session.start import start
from headwater.testing import ManualClock
from tests.equivalence.applied import apply, declare
from tests.equivalence.cases import Case
from tests.equivalence.traffic import Topic
from tests.inside import log_of, topic_of

_INTERPRETED = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sort.enableRadixSort": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For few rows: compiling a query takes longer than interpreting it. Sorts as those of the oracle."""


class Plain:
    """Two sessions: one reads the rows in order, the other backwards and spread over partitions."""

    def __init__(self) -> None:
        self._forwards = start("plain", settings={**_INTERPRETED, "spark.sql.shuffle.partitions": "1"})
        self._backwards = start("plain", settings={**_INTERPRETED, "spark.sql.shuffle.partitions": "2"})

    def hold(self, tables: Mapping[str, pa.Table]) -> None:
        """Let queries see these tables from now on."""
        for name, table in tables.items():
            _frame(self._forwards, table).createOrReplaceTempView(name)
            turned = table.take(pa.array(range(table.num_rows - 1, -1, -1), pa.int64()))
            _frame(self._backwards, turned).repartition(2).createOrReplaceTempView(name)

    def problem(self, sql: str) -> str:
        """Why the query is no good as a view: it fails, has two answers, or names that a view may not have."""
        try:
            one, other = _answer(self._forwards, sql), _answer(self._backwards, sql)
        except Exception as error:
            return f"fails: {_root(str(error))}"
        names = one.column_names
        if len({*map(str.lower, names)}) < len(names) or any(name.startswith("_") for name in names):
            return f"columns: {names}"
        found = difference(one, other)
        return f"two answers:\n{found}" if found else ""


class Analysis:
    """Whether Spark understands a query; quick, for what is tried only to see."""

    def __init__(self) -> None:
        self._session = start("analysis")
        self._topics: tuple[Topic, ...] = ()

    def takes(self, case: Case) -> bool:
        """Whether the only query of a case can be run over its tables."""
        if case.topics != self._topics:
            self._topics = case.topics
            for topic in case.topics:
                empty = parse(topic.schema).arrow.empty_table()
                _frame(self._session, empty).createOrReplaceTempView(topic.name)
        try:
            self._session.sql(case.query.sql())
        except Exception:
            return False
        return True


def _root(words: str) -> str:
    """The line that says most: the last cause of a Java error, else the first line."""
    lines = words.strip().splitlines()
    return next((line for line in reversed(lines) if line.startswith("Caused by")), lines[0])[:300]


def _answer(session: SparkSession, sql: str) -> pa.Table:
    return session.sql(sql).toArrow()


def tables_of(case: Case, folder: Path) -> Iterator[dict[str, pa.Table]]:
    """What the tables hold at each tick."""
    with Pipeline("plain", folder, clock=ManualClock()) as pipeline:
        for topic in case.topics:
            declare(pipeline, topic)
        for steps in case.ticks:
            for step in steps:
                apply(pipeline, step)
            cut = log_of(pipeline).cut([topic.name for topic in case.topics])
            yield {topic.name: content(topic_of(pipeline, topic.name), cut) for topic in case.topics}


def problem_of(case: Case, plain: Plain, folder: Path) -> str:
    """What is wrong with the only query of a case as such, at any tick; empty if nothing."""
    for tables in tables_of(case, folder):
        plain.hold(tables)
        found = plain.problem(case.query.sql())
        if found:
            return found
    return ""
