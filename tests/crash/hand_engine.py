"""An engine without Spark: the shop's views planned by hand, and their expressions as Python functions.

Everything else of a driver is the real thing: cuts, operators, state, commits, sweeps, both paths. So a tick takes
milliseconds, and thousands of them can be killed, stopped, or replayed after a power cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, cast

import pyarrow as pa
import pyarrow.compute as pc

import headwater as hw
from headwater.files import Files
from headwater.pipeline.driving import Driving
from headwater.schema import Schema, parse
from headwater.spark.engine import Engine
from headwater.tick.driver import Driver
from headwater.tick.small import ROW
from headwater.views.plan import Aggregate, Call, Field, Fragment, Join, Node, Plan, Source

LONG, TEXT = pa.int64(), pa.string()


def source(relation: str, **columns: tuple[str, pa.DataType]) -> Source:
    """A relation; each column as its name within the plan, its own name and type."""
    output = tuple(Field(name, kind) for name, (_, kind) in columns.items())
    return Source(output, relation, tuple(name for name, _ in columns.values()))


def _aggregate(child: Node, keys: tuple[str, ...], *calls: Call) -> Aggregate:
    output = (*(each for each in child.output if each.name in keys), *(call.result for call in calls))
    return Aggregate(output, child=child, keys=keys, calls=calls, name="n1")


def _sum(column: str, result: str) -> Call:
    return Call("Sum", (column,), Field(result, LONG))


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
    return _aggregate(pairs, ("c4",), _sum("c2", "c5"), Call("Count", (), Field("c6", LONG)))


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
    return _aggregate(clicks, ("c1",), Call("Count", (), Field("c3", LONG)), _sum("c2", "c4"))


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


class HandEngine:
    """Plans the shop's views and nothing else."""

    functions: ClassVar[dict[str, object]] = {}

    def __init__(self) -> None:
        self.queries = 0
        self.meaning: dict[str, str] = {}
        self.stages = HandStages(self)

    def knows(self, names: Iterable[str]) -> bool:
        """Relations are what they were."""
        return True

    def plan(self, name: str, _sql: str) -> tuple[Plan, Schema]:
        root, ddl = PLANS[name]
        schema = parse(ddl)
        return Plan(root(), tuple(schema.names), appends_only=False), schema

    def evaluate(self, computing: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
        self.queries += 1
        return computing(table)

    def same(self, one: object, other: object) -> bool:
        return one == other

    def check(self, name: str, plan: Plan) -> None:
        """Nothing here is evaluated by Spark."""

    def forget(self, name: str) -> None:
        """Nothing is remembered."""

    def close(self) -> None:
        """Nothing was started."""


def drive(pipeline: hw.Pipeline, *, files: Files | None = None, large: bool = False) -> Driver:
    """Have a pipeline driven without Spark; its driver makes its files through `files`."""
    driving = Driving(pipeline, cast("Engine", HandEngine()), files)
    if large:
        driving.driver.small_rows = 0
    pipeline._driving = driving
    return driving.driver
