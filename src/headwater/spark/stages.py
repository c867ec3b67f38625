"""Stages: functions run by Spark's executors, with or without expressions in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headwater.change import HASH
from headwater.operators.recompute import PLACE
from headwater.spark.catalyst import Catalyst, Java, number
from headwater.spark.evaluate import evaluation_failed
from headwater.spark.fragment import ROW, Computing
from headwater.spark.quiet import quiet
from headwater.spark.recomputing import Leaf, Recomputing, filled
from headwater.state.shape import shaped

Batches = Iterable[pa.RecordBatch]
_RESULT = "result STRING"
_BATCH_ROWS = 65_536


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
        tasks = self._spark.sparkContext.parallelize(range(len(items)), len(items))
        results = tasks.map(lambda number: json.dumps(function(items[number])))
        return [json.loads(result) for result in self._run(results.collect)]

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
            for item in _numbers(batches):
                for batch in inputs(items[item]):
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

    def recompute(
        self,
        computing: Recomputing,
        inputs: Callable[[Any, int], pa.Table],
        results: Callable[[Any, pa.Table], Any],
        items: list[Any],
    ) -> list[Any]:
        """Evaluate an operator on the rows of each item, in a task of its own.

        `inputs` loads the rows of one of its inputs, with `_hash` and `_place`; `results` takes its columns and
        `_hash`. Rows of different items have nothing to do with each other, so Spark's plan for all rows together
        is run on those of each item alone.
        """
        catalyst = self._catalyst
        catalyst.activate()
        leaves = {
            number(leaf.place): self._leaf(leaf, place, inputs, items)
            for place, leaf in enumerate(computing.leaves)
        }
        wanted = pa.schema([*(each.arrow for each in computing.outputs), pa.field(HASH, pa.int64())])
        names = wanted.names

        def take(batches: Batches) -> Iterator[pa.RecordBatch]:
            made = [pa.RecordBatch.from_arrays(batch.columns, names) for batch in batches]
            context = TaskContext.get()
            assert context is not None
            yield _report(results(items[context.partitionId()], _table(made, wanted)))

        output = catalyst.sequence(catalyst.items(computing.operator.output()))
        above = DataFrame(catalyst.frame(catalyst.local(output)), self._spark)
        taken = above.toDF(*_positions(len(names))).mapInArrow(take, _RESULT)
        operator = filled(catalyst, computing.operator, leaves)
        top = number(catalyst.items(computing.operator.output())[-1])
        plan = filled(catalyst, taken._jdf.queryExecution().analyzed(), {top: operator})
        self.jobs += 1
        try:
            with quiet():
                catalyst.activate(catalyst.apart)
                physical = catalyst.everywhere(catalyst.executable(plan, catalyst.apart))
                return [json.loads(row.getUTF8String(0).toString()) for row in physical.executeCollect()]
        except (Py4JJavaError, PySparkException) as error:
            raise evaluation_failed(error) from error

    def _leaf(self, leaf: Leaf, place: int, inputs: Callable[[Any, int], pa.Table], items: list[Any]) -> Java:
        """The rows of an input, loaded by tasks."""
        schema = StructType.fromJson(json.loads(leaf.types))
        given, columns = schema.names, [*(each.name for each in leaf.columns), HASH, PLACE]

        def load(batches: Batches) -> Iterator[pa.RecordBatch]:
            for item in _numbers(batches):
                rows = inputs(items[item], place).select(columns).combine_chunks()
                for batch in rows.to_batches(max_chunksize=_BATCH_ROWS):
                    yield pa.RecordBatch.from_arrays(batch.columns, given)

        loaded = self._tasks(len(items)).mapInArrow(load, schema)
        renamed = self._catalyst.renamed(loaded._jdf.queryExecution().analyzed(), leaf.attributes)
        return self._catalyst.together(renamed)

    def _tasks(self, count: int) -> DataFrame:
        return self._spark.range(0, count, 1, count)

    def _collected(self, frame: DataFrame) -> list[Any]:
        return [json.loads(row.result) for row in self._run(frame.collect)]

    def _run(self, job: Callable[[], list[Any]]) -> list[Any]:
        self.jobs += 1
        try:
            with quiet():
                return job()
        except (Py4JJavaError, PySparkException) as error:
            raise evaluation_failed(error) from error


def _positions(count: int) -> list[str]:
    return [f"_{place}" for place in range(count)]


def _table(batches: list[pa.RecordBatch], wanted: pa.Schema) -> pa.Table:
    return shaped(pa.Table.from_batches(batches), wanted) if batches else wanted.empty_table()


def _numbers(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _report(result: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(result)], pa.string())], ["result"])
