"""Stages: functions run by Spark's executors, with or without expressions in between."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headwater.change import HASH
from headwater.change.gather import batches_of
from headwater.change.shape import shaped
from headwater.evaluation import PLACE, ROW
from headwater.spark.catalyst import Catalyst, Java, number
from headwater.spark.evaluator.computing import Computing, Leaf, Recomputing, filled
from headwater.spark.evaluator.failure import SPARKS, evaluation_failed, interruptible
from headwater.spark.evaluator.tasks import TaskFailures
from headwater.spark.session.quiet import quiet
from headwater.spark.single_partition import SinglePartition

Batches = Iterable[pa.RecordBatch]
_RESULT = "result STRING"
_BATCH_ROWS = 65_536


class SparkStages:
    """Runs stages in one session. Safe for threads."""

    def __init__(self, catalyst: Catalyst, single: SinglePartition) -> None:
        self._catalyst = catalyst
        self._single = single
        self._spark = catalyst.spark
        self._failures = TaskFailures(f"{secrets.token_hex(8)} ")
        self.jobs = 0

    @property
    def workers(self) -> int:
        """How many tasks run at once."""
        return self._spark.sparkContext.defaultParallelism

    def each(self, function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        """The function's result for every item, each in a task of its own; items and results are plain data."""
        tasks, failures = self._spark.sparkContext.parallelize(range(len(items)), len(items)), self._failures

        def result(number: int) -> str:
            with failures.told():
                return json.dumps(function(items[number]))

        results = tasks.map(result)
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
        failures = self._failures
        schema = StructType.fromJson(json.loads(computing.types))
        given = schema.names

        def load(batches: Batches) -> Iterator[pa.RecordBatch]:
            with failures.told():
                for item in _numbers(failures.of_spark(batches)):
                    for batch in inputs(items[item]):
                        yield pa.RecordBatch.from_arrays(batch.columns, given)

        names = [*(field.name for field in computing.outputs), ROW]

        def take(batches: Batches) -> Iterator[pa.RecordBatch]:
            with failures.told():
                made = failures.of_spark(batches)
                yield _report(results(pa.RecordBatch.from_arrays(batch.columns, names) for batch in made))

        loaded = self._tasks(len(items)).mapInArrow(load, schema)
        frame = DataFrame(self._catalyst.frame(self._applied(computing, loaded)), self._spark)
        return self._collected(frame.toDF(*_positions(len(names))).mapInArrow(take, _RESULT))

    def _applied(self, computing: Computing, loaded: DataFrame) -> Java:
        """The steps of a fragment over rows that tasks load."""
        plan = self._catalyst.renamed(loaded._jdf.queryExecution().analyzed(), computing.attributes)
        for step in computing.steps:
            plan = self._catalyst.with_child(step, plan)
        return plan

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
        catalyst, failures = self._catalyst, self._failures
        catalyst.activate()
        leaves = {
            number(leaf.place): self._leaf(leaf, place, inputs, items)
            for place, leaf in enumerate(computing.leaves)
        }
        wanted = pa.schema([*(each.arrow for each in computing.outputs), pa.field(HASH, pa.int64())])
        names = wanted.names

        def take(batches: Batches) -> Iterator[pa.RecordBatch]:
            with failures.told():
                made = [pa.RecordBatch.from_arrays(batch.columns, names) for batch in failures.of_spark(batches)]
                context = TaskContext.get()
                assert context is not None
                yield _report(results(items[context.partitionId()], _table(made, wanted)))

        return self._executed(self._taken(computing, filled(catalyst, computing.operator, leaves), take))

    def _taken(
        self, computing: Recomputing, operator: Java, take: Callable[[Batches], Iterator[pa.RecordBatch]]
    ) -> Java:
        """A function over what an operator gives, whose leaves tasks load."""
        catalyst = self._catalyst
        output = catalyst.items(computing.operator.output())
        above = DataFrame(catalyst.frame(catalyst.local(catalyst.sequence(output))), self._spark)
        taken = above.toDF(*_positions(len(output))).mapInArrow(take, _RESULT)
        return filled(catalyst, taken._jdf.queryExecution().analyzed(), {number(output[-1]): operator})

    def _executed(self, plan: Java) -> list[Any]:
        """What the tasks report of a plan each of whose operators has its rows together already."""
        self.jobs += 1
        interruptible(self._spark)
        try:
            with quiet():
                self._single.activate()
                physical = self._single.scattered(self._single.executable(plan))
                return [json.loads(row.getUTF8String(0).toString()) for row in physical.executeCollect()]
        except SPARKS as error:
            raise evaluation_failed(error, self._failures) from error

    def _leaf(self, leaf: Leaf, place: int, inputs: Callable[[Any, int], pa.Table], items: list[Any]) -> Java:
        """The rows of an input, loaded by tasks."""
        schema, failures = StructType.fromJson(json.loads(leaf.types)), self._failures
        given, columns = schema.names, [*(each.name for each in leaf.columns), HASH, PLACE]

        def load(batches: Batches) -> Iterator[pa.RecordBatch]:
            with failures.told():
                for item in _numbers(failures.of_spark(batches)):
                    for batch in batches_of(inputs(items[item], place).select(columns), _BATCH_ROWS):
                        yield pa.RecordBatch.from_arrays(batch.columns, given)

        loaded = self._tasks(len(items)).mapInArrow(load, schema)
        renamed = self._catalyst.renamed(loaded._jdf.queryExecution().analyzed(), leaf.attributes)
        return self._single.gathered(renamed)

    def _tasks(self, count: int) -> DataFrame:
        return self._spark.range(0, count, 1, count)

    def _collected(self, frame: DataFrame) -> list[Any]:
        return [json.loads(row.result) for row in self._run(frame.collect)]

    def _run(self, job: Callable[[], list[Any]]) -> list[Any]:
        self.jobs += 1
        interruptible(self._spark)
        try:
            with quiet():
                return job()
        except SPARKS as error:
            raise evaluation_failed(error, self._failures) from error


def _positions(count: int) -> list[str]:
    return [f"_{place}" for place in range(count)]


def _table(batches: list[pa.RecordBatch], wanted: pa.Schema) -> pa.Table:
    return shaped(pa.Table.from_batches(batches), wanted) if batches else wanted.empty_table()


def _numbers(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _report(result: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(result)], pa.string())], ["result"])
