"""Operators whose rows are in one partition already, run without Spark's planning of where rows go."""

from __future__ import annotations

from functools import cached_property

from headwater.spark.catalyst import Catalyst, Java, module

_NOTHING_MOVES = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "1",
}


class SinglePartition:
    """Physical plans in a session in which nothing is exchanged or broadcast. Safe for threads.

    A relation below such an operator is `gathered`. Rows of several partitions that have nothing to do with each
    other may be run by one plan as well: for these, `scattered` takes the gathering out of it again.
    """

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._repartition = catalyst.jvm.org.apache.spark.sql.catalyst.plans.logical.Repartition
        self._execution = module(catalyst.jvm.org.apache.spark.sql.execution, "QueryExecution")

    @cached_property
    def session(self) -> Java:
        """The session, which is not made before an operator needs it."""
        made = self._catalyst.session.cloneSession()
        for key, value in _NOTHING_MOVES.items():
            made.conf().set(key, value)
        return made

    def activate(self) -> None:
        """Make its settings those of the calling thread and of the tasks that it starts."""
        self._catalyst.activate(self.session)

    def gathered(self, plan: Java) -> Java:
        """The plan's rows in one partition, in their order."""
        return self._repartition(1, False, plan)

    def executable(self, plan: Java) -> Java:
        """Spark's physical plan of what was optimised before: it is not analysed and optimised again."""
        return self._execution.prepareExecutedPlan(self.session, plan)

    def scattered(self, physical: Java) -> Java:
        """A physical plan of gathered rows, for as many partitions as the rows are in."""
        if physical.nodeName() == "Coalesce":
            return physical.child()
        return self._catalyst.map_children(physical, self.scattered)
