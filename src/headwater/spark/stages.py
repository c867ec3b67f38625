"""Stages: functions run by Spark's executors, with or without expressions in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headwater.spark.catalyst import Catalyst
from headwater.spark.evaluate import evaluation_failed
from headwater.spark.fragment import ROW, Computing
from headwater.spark.quiet import quiet

Batches = Iterable[pa.RecordBatch]
_RESULT = "result STRING"


class Stages:
    """Runs stages in one session. Safe for threads."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._spark = catalyst.spark
        self.jobs = 0

    @property
    def workers(self) -> int:
        """How many tasks run at once."""
        return self._spark.sparkContext.defaultParallelism

    def each(self, function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        """The function's result for every item, each in a task of its own; items and results are plain data."""

        def work(batches: Batches) -> Iterator[pa.RecordBatch]:
            for number in _numbers(batches):
                yield _report(function(items[number]))

        return self._collected(self._tasks(len(items)).mapInArrow(work, _RESULT))

    def compute(
        self,
        computing: Computing,
        inputs: Callable[[Any], Iterator[pa.RecordBatch]],
        results: Callable[[Batches], Any],
        items: list[Any],
    ) -> list[Any]:
        """Evaluate a fragment: `inputs` loads each item's rows, `results` takes what the expressions gave."""
        self._catalyst.activate()

        schema = StructType.fromJson(json.loads(computing.types))
        given = schema.names

        def load(batches: Batches) -> Iterator[pa.RecordBatch]:
            for number in _numbers(batches):
                for batch in inputs(items[number]):
                    yield pa.RecordBatch.from_arrays(batch.columns, given)

        names = [*(field.name for field in computing.outputs), ROW]

        def take(batches: Batches) -> Iterator[pa.RecordBatch]:
            yield _report(results(pa.RecordBatch.from_arrays(batch.columns, names) for batch in batches))

        loaded = self._tasks(len(items)).mapInArrow(load, schema)
        plan = self._catalyst.renamed(loaded._jdf.queryExecution().analyzed(), computing.attributes)
        for step in computing.steps:
            plan = self._catalyst.with_child(step, plan)
        frame = DataFrame(self._catalyst.frame(plan), self._spark)
        return self._collected(frame.toDF(*_positions(len(names))).mapInArrow(take, _RESULT))

    def _tasks(self, count: int) -> DataFrame:
        return self._spark.range(0, count, 1, count)

    def _collected(self, frame: DataFrame) -> list[Any]:
        self.jobs += 1
        try:
            with quiet():
                return [json.loads(row.result) for row in frame.collect()]
        except (Py4JJavaError, PySparkException) as error:
            raise evaluation_failed(error) from error


def _positions(count: int) -> list[str]:
    return [f"_{place}" for place in range(count)]


def _numbers(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _report(result: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(result)], pa.string())], ["result"])
