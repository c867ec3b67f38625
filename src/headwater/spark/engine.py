"""Engine: one pipeline's Spark, started when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark import SparkContext

from headwater.errors import HeadwaterError, ViewRefused
from headwater.schema import Schema
from headwater.spark.analyse import Analyser
from headwater.spark.build import Relation
from headwater.spark.evaluate import Evaluator
from headwater.spark.functions import register
from headwater.spark.session import start
from headwater.spark.stages import Stages
from headwater.views.function import Udf
from headwater.views.numbering import numbered
from headwater.views.plan import Plan, Recompute

_PLANS = "3"
"""Another number whenever the same SQL becomes other operators than before: their state is not the same."""


class Engine:
    """Plans views and evaluates their expressions. Safe for threads.

    `meaning` is what the same SQL depends on beside its inputs.
    """

    def __init__(
        self,
        name: str,
        relation: Callable[[str], Relation | None],
        udfs: Mapping[str, Udf],
        *,
        master: str | None = None,
        timezone: str = "UTC",
    ) -> None:
        self._own = SparkContext._active_spark_context is None
        self.spark = start(name, master=master or "local[*]", timezone=timezone)
        ansi = str(self.spark.conf.get("spark.sql.ansi.enabled"))
        self.meaning = {"Spark": self.spark.version, "time zone": timezone, "ANSI": ansi, "plans": _PLANS}
        self._analyser = Analyser(self.spark, relation)
        self.catalyst = self._analyser.catalyst
        self._evaluator = Evaluator(self.catalyst)
        self.stages = Stages(self.catalyst)
        self._udfs = udfs
        self._known: dict[str, Udf] = {}
        self._planning = threading.Lock()

    @property
    def functions(self) -> dict[str, Udf]:
        """The user's functions as they are now."""
        return dict(self._udfs)

    @property
    def queries(self) -> int:
        """How many fragments were evaluated so far."""
        return self._evaluator.queries

    def plan(self, name: str, sql: str) -> tuple[Plan, Schema]:
        """The plan of a view and its columns; `ViewRefused` if it cannot be maintained."""
        with self._planning:
            for udf in self._udfs.values():
                if self._known.get(udf.name) is not udf:
                    register(self.spark, udf)
                    self._known[udf.name] = udf
            plan, schema = self._analyser.plan(name, sql)
        return numbered(plan), schema

    def knows(self, names: Iterable[str]) -> bool:
        """Whether relations are still what they were when something that reads them was planned."""
        with self._planning:
            return self._analyser.knows(names)

    def check(self, name: str, plan: Plan) -> None:
        """`ViewRefused` for what passes all checks of Spark's but the last, when it is to run it."""
        for node in plan.walk():
            if isinstance(node, Recompute):
                try:
                    self._evaluator.check(node.computing)
                except HeadwaterError as error:
                    hint = "Spark does not accept this query"
                    raise ViewRefused(error.what, where=name, hint=hint) from error

    def same(self, one: Any, other: Any) -> bool:
        """Whether two plans' expressions give the same for the same rows, as far as Spark can tell.

        Those with Python functions do not: state may be of a function that was declared anew since.
        """
        if one is None or other is None or type(one) is not type(other):
            return one is other
        mine, theirs = self._evaluator.query(one), self._evaluator.query(other)
        return bool(mine.sameResult(theirs)) and not any("Python" in kind for kind in self.catalyst.kinds(mine))

    def forget(self, name: str) -> None:
        """Forget a relation that was dropped."""
        self._analyser.forget(name)

    def evaluate(self, computing: Any, table: pa.Table) -> pa.Table:
        """See `Evaluator.evaluate`."""
        return self._evaluator.evaluate(computing, table)

    def recompute(self, computing: Any, tables: Sequence[pa.Table]) -> pa.Table:
        """See `Evaluator.recompute`."""
        return self._evaluator.recompute(computing, tables)

    def close(self) -> None:
        """Stop Spark, if it was started here."""
        self._evaluator.close()
        if self._own:
            self.spark.stop()
