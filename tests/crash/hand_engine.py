"""An engine without Spark: the shop's views planned by hand, and their expressions as Python functions.

Everything else of a driver is the real thing: cuts, operators, state, commits, sweeps, both paths. So a tick takes
milliseconds, and thousands of them can be killed, stopped, or replayed after a power cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, cast

import pyarrow as pa
import pyarrow.compute as pc

import headwater as hw
from headwater.evaluation import ROW
from headwater.files import Files
from headwater.operators.accumulate import Aggregate
from headwater.operators.aggregate_call import AggregateCall
from headwater.operators.join import Join
from headwater.operators.stateless import Fragment
from headwater.pipeline.spark_parts import SparkParts
from headwater.plan.engine import Engine
from headwater.plan.fingerprint import Fingerprint
from headwater.plan.operators import Field, Node, Plan, Source
from headwater.plan.sharing import Split
from headwater.schema import Schema, parse
from headwater.state.files import LocalStateFiles
from headwater.tick.driver import Driver

LONG, TEXT = pa.int64(), pa.string()


def source(relation: str, **columns: tuple[str, pa.DataType]) -> Source:
    """A relation; each column as its name within the plan, its own name and type."""
    output = tuple(Field(name, kind) for name, (_, kind) in columns.items())
    return Source(output, relation, tuple(name for name, _ in columns.values()))


def _aggregate(child: Node, keys: tuple[str, ...], *calls: AggregateCall) -> Aggregate:
    output = (*(each for each in child.output if each.name in keys), *(call.result for call in calls))
    return Aggregate(output, child=child, keys=keys, calls=calls, name="n1")


def _sum(column: str, result: str) -> AggregateCall:
    return AggregateCall("Sum", (column,), Field(result, LONG))


def _revenue() -> Node:
    orders = source("orders", c1=("customer", LONG), c2=("cents", LONG))
    customers = source("customers", c3=("id", LONG), c4=("country", TEXT))
    pairs = Join(
        (Field("c2", LONG), Field("c4", TEXT)),
        left=orders,
        right=customers,
        left_keys=("c1",),
        right_keys=("c3",),
        name="n0",
    )
    return _aggregate(pairs, ("c4",), _sum("c2", "c5"), AggregateCall("Count", (), Field("c6", LONG)))


def _total() -> Node:
    revenue = source("revenue", c1=("cents", LONG), c2=("sales", LONG))
    return _aggregate(revenue, (), _sum("c1", "c3"), _sum("c2", "c4"))


def dear_of(table: pa.Table) -> pa.Table:
    """The expressions of `dear`: a filter and a column."""
    dear = table.filter(pc.greater(table.column("c2"), 500))
    return pa.table({"c3": pc.multiply(dear.column("c2"), 2), ROW: dear.column(ROW)})


def _dear() -> Node:
    output = (Field("c1", LONG), Field("c2", LONG), Field("c3", LONG))
    orders = source("orders", c1=("id", LONG), c2=("cents", LONG))
    return Fragment(
        output, child=orders, inputs=("c2",), computing=dear_of, passed=(("c1", "c1"), ("c2", "c2")), text="dear"
    )


def _words() -> Node:
    return _aggregate(source("bag", c1=("word", TEXT)), ("c1",))


def _clicked() -> Node:
    clicks = source("clicks", c1=("who", LONG), c2=("n", LONG))
    return _aggregate(clicks, ("c1",), AggregateCall("Count", (), Field("c3", LONG)), _sum("c2", "c4"))


PLANS: dict[str, tuple[Callable[[], Node], str]] = {
    "revenue": (_revenue, "country STRING, cents BIGINT, sales BIGINT"),
    "total": (_total, "cents BIGINT, sales BIGINT"),
    "dear": (_dear, "id BIGINT, cents BIGINT, twice BIGINT"),
    "words": (_words, "word STRING"),
    "clicked": (_clicked, "who BIGINT, times BIGINT, n BIGINT"),
}


class HandStages:
    """Runs what executors would run, here, one after the other."""

    workers = 2

    def __init__(self, engine: HandEngine) -> None:
        self._engine = engine
        self.jobs = 0

    def each(self, function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        self.jobs += 1
        return [json.loads(json.dumps(function(item))) for item in items]

    def compute(
        self,
        computing: Any,
        inputs: Callable[[Any], Iterator[pa.RecordBatch]],
        results: Callable[[Iterable[pa.RecordBatch]], Any],
        items: list[Any],
    ) -> list[Any]:
        def made(item: Any) -> Iterator[pa.RecordBatch]:
            for batch in inputs(item):
                yield from self._engine.evaluate(computing, pa.Table.from_batches([batch])).to_batches()

        return self.each(lambda item: results(made(item)), items)

    def recompute(
        self,
        computing: Any,
        inputs: Callable[[Any, int], pa.Table],
        results: Callable[[Any, pa.Table], Any],
        items: list[Any],
    ) -> list[Any]:
        def made(item: Any) -> pa.Table:
            return self._engine.recompute(
                computing, [inputs(item, place) for place in range(len(computing.leaves))]
            )

        return self.each(lambda item: results(item, made(item)), items)


class HandEngine:
    """Plans the shop's views and nothing else."""

    functions: ClassVar[dict[str, object]] = {}

    def __init__(self) -> None:
        self.queries = 0
        self.meaning: dict[str, str] = {}
        self.planned_by: dict[str, str] = {}
        self.stages = HandStages(self)

    def knows(self, names: Iterable[str], relation: object) -> bool:
        """Relations are what they were."""
        return True

    def plan(self, name: str, _sql: str, _relation: object) -> tuple[Plan, Schema]:
        root, ddl = PLANS[name]
        schema = parse(ddl)
        return Plan(root(), tuple(schema.names), appends_only=False), schema

    def evaluate(self, computing: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
        self.queries += 1
        return computing(table)

    def recompute(
        self, computing: Callable[[Sequence[pa.Table]], pa.Table], tables: Sequence[pa.Table]
    ) -> pa.Table:
        self.queries += 1
        return computing(tables)

    def same(self, one: object, other: object) -> bool:
        return one == other

    def kept_plan(self, path: str) -> HandEngine:
        return self

    def marks(self, key: str) -> None:
        """Nothing is kept."""

    def read(self, key: str) -> None:
        """Nothing is kept."""

    def write(self, key: str, made: Plan, marks: list[str]) -> None:
        """Nothing is kept."""

    def fingerprints(self, split: Split) -> tuple[Fingerprint, dict[str, Fingerprint]]:
        return Fingerprint("by hand"), dict.fromkeys(split.shared, Fingerprint("by hand"))

    def check(self, name: str, plan: Plan) -> None:
        """Nothing here is evaluated by Spark."""

    def stop(self, attempt: str) -> None:
        """Nothing here takes long."""

    def is_waiting(self, attempt: str) -> bool:
        """There are no tasks."""
        return False

    def is_lost(self) -> bool:
        """It is part of this process."""
        return False

    def forget(self, name: str) -> None:
        """Nothing is remembered."""

    has_ended = False

    def ended(self, error: BaseException) -> None:
        """There is nothing that could end."""

    def cancel(self) -> None:
        """There is nothing that another thread does."""

    def close(self) -> None:
        """Nothing was started."""


def drive(pipeline: hw.Pipeline, *, files: Files | None = None, large: bool = False) -> Driver:
    """Have a pipeline driven without Spark; its driver makes its files through `files`."""
    state = None if files is None else LocalStateFiles(f"{pipeline.path}/state", files)
    parts = SparkParts(pipeline, cast("Engine", HandEngine()), state)
    if large:
        parts.driver.small_rows = 0
    pipeline._parts = parts
    return parts.driver
