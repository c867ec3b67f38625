"""Engine: one pipeline's Spark, started when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.errors import HeadwaterError, Unavailable, ViewRefused
from headwater.plan.fingerprint import Fingerprint, Words, fingerprints
from headwater.plan.function import Udf
from headwater.plan.numbering import numbered
from headwater.plan.operators import Plan
from headwater.plan.sharing import Split
from headwater.schema import Schema
from headwater.spark.evaluator.computing import Recomputing
from headwater.spark.evaluator.evaluate import SparkEvaluator
from headwater.spark.evaluator.failure import is_waiting, stop
from headwater.spark.planner.analyse import Analyser, Resolve
from headwater.spark.planner.fingerprint_text import words_of
from headwater.spark.planner.kept_plan import KeptPlan
from headwater.spark.session.functions import register
from headwater.spark.session.running import Running
from headwater.spark.session.settings import ANSI, meant
from headwater.spark.session.start import start, undisturbed
from headwater.spark.single_partition import SinglePartition
from headwater.spark.workers.stages import SparkStages

_PLANS = "5"
"""Another number whenever the same SQL may become other operators than before: no plan that was kept is used then.

Views whose plan has become another, as its fingerprint says, are made anew; the others go on.
"""


class SparkEngine:
    """Plans views and evaluates their expressions. Safe for threads.

    `meaning` is what the values of the same SQL depend on beside its inputs, `planned_by` what its plan does.
    """

    def __init__(
        self,
        name: str,
        udfs: Mapping[str, Udf],
        *,
        master: str | None = None,
        timezone: str = "UTC",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._running = Running(
            lambda: start(name, master=master or "local[*]", timezone=timezone, settings=settings)
        )
        self.spark = self._running.session
        ansi = str(self.spark.conf.get(ANSI))
        self.meaning = {"Spark": self.spark.version, "time zone": timezone, "ANSI": ansi}
        self.meaning |= {key: value for key, value in meant(settings or {}).items() if key != ANSI}
        self.planned_by = {**self.meaning, "plans": _PLANS}
        self._analyser = Analyser(self.spark)
        self.catalyst = self._analyser.catalyst
        self.single = SinglePartition(self.catalyst)
        self._evaluator = SparkEvaluator(self.catalyst, self.single)
        self.stages = SparkStages(self.catalyst, self.single)
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

    @property
    def has_ended(self) -> bool:
        """Whether Spark is known to have ended: then another engine is to be made."""
        return self._running.has_ended

    def ended(self, error: BaseException | None) -> Unavailable | None:
        """What to raise in place of an error that comes from the end of Spark; None if it does not."""
        return self._running.ended(error)

    def cancel(self) -> None:
        """End what Spark is doing for others than this thread."""
        self._running.cancel()

    def plan(self, name: str, sql: str, relation: Resolve) -> tuple[Plan, Schema]:
        """The plan of a view and its columns; `ViewRefused` if it cannot be maintained.

        `relation` finds what a name stands for.
        """
        with self._running.telling(), self._planning, undisturbed(self.spark.sparkContext, self.spark):
            for udf in self.functions.values():
                if self._known.get(udf.name) is not udf:
                    register(self.spark, udf)
                    self._known[udf.name] = udf
            plan, schema = self._analyser.plan(name, sql, relation)
        return numbered(plan), schema

    def knows(self, names: Iterable[str], relation: Resolve) -> bool:
        """Whether relations are still what they were when something that reads them was planned."""
        with self._planning:
            return self._analyser.knows(names, relation)

    def check(self, name: str, plan: Plan) -> None:
        """`ViewRefused` for what passes all checks of Spark's but the last, when it is to run it."""
        with self._running.telling(), undisturbed(self.spark.sparkContext, self.spark):
            for node in plan.walk():
                if isinstance(node.computed, Recomputing):
                    self._check(name, node.computed)

    def _check(self, name: str, computing: Recomputing) -> None:
        try:
            self._evaluator.check(computing)
        except Unavailable:
            raise
        except HeadwaterError as error:
            if (ended := self.ended(error)) is not None:
                raise ended from None
            hint = "Spark does not accept this query"
            raise ViewRefused(error.what, where=name, hint=hint) from error

    def same(self, one: Any, other: Any) -> bool:
        """Whether two plans' expressions give the same for the same rows, as far as Spark can tell.

        Those with Python functions do not: state may be of a function that was declared anew since. Nor do those
        that are written otherwise: what is shared has one fingerprint.
        """
        if one is None or other is None or type(one) is not type(other):
            return one is other
        with self._running.telling(), undisturbed(self.spark.sparkContext, self.spark):
            self.catalyst.activate()
            mine, theirs = self._evaluator.query(one), self._evaluator.query(other)
            same = bool(mine.sameResult(theirs)) and words_of(mine) == words_of(theirs)
            return same and not any("Python" in kind for kind in self.catalyst.kinds(mine))

    def stop(self, attempt: str) -> None:
        """Stop what is evaluated for an attempt, as far as that is possible."""
        stop(self.spark, attempt)

    def is_waiting(self, attempt: str) -> bool:
        """Whether an attempt does nothing but wait until tasks of others leave it a place."""
        return is_waiting(self.spark, attempt)

    def is_lost(self) -> bool:
        """Whether Java has ended, or Spark was stopped."""
        return self.ended(None) is not None

    def kept_plan(self, path: str) -> KeptPlan:
        """The file of a plan."""
        return KeptPlan(self.catalyst, path)

    def fingerprints(self, split: Split) -> tuple[Fingerprint, dict[str, Fingerprint]]:
        """Of a view's own plan, and of what it shares."""
        # Constants are told in the session's time zone.
        with self._running.telling(), undisturbed(self.spark.sparkContext, self.spark):
            return fingerprints(split, self._words, self._fingerprint)

    def _fingerprint(self, function: str) -> str:
        """Of a function by its name, as Spark has it."""
        return self._known[function].fingerprint if function in self._known else "unknown"

    def _words(self, computing: Any) -> Words:
        return Words("") if computing is None else words_of(self._evaluator.query(computing))

    def forget(self, name: str) -> None:
        """Forget a relation that was dropped."""
        with self._running.telling():
            self._analyser.forget(name)

    def evaluate(self, computing: Any, table: pa.Table) -> pa.Table:
        """See `SparkEvaluator.evaluate`."""
        with self._running.telling():
            return self._evaluator.evaluate(computing, table)

    def recompute(self, computing: Any, tables: Sequence[pa.Table]) -> pa.Table:
        """See `SparkEvaluator.recompute`."""
        with self._running.telling():
            return self._evaluator.recompute(computing, tables)

    def close(self) -> None:
        """Stop Spark, if Headwater started it and nobody else uses it."""
        self._evaluator.close()
        self._running.leave()
