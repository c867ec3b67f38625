"""Expression ids: the numbers that Spark gives to columns, made to come in the same order in every plan.

Spark counts them up for the whole Java process, and some of its rules go through hash tables of expressions, whose
order depends on these numbers: which of several DISTINCT aggregates comes first, for one. A view is planned again
in other processes, after other plans, and its state is kept by its plan.

So the counter moves on before every plan, to a place from which on the *hashes* of ids are 0, 1, 2 and so on: the
hash of an id is its upper half XOR its lower half, and both begin with the number of the plan.

    plan 5, id 0:  upper half 0x00050000, lower half 0x00050000, hash 0
    plan 5, id 7:  upper half 0x00050000, lower half 0x00050007, hash 7

The counter never goes back, so ids stay unique. There is room for 32,767 plans in a process; after those, or where
Spark hides its counter, plans may come out in another order, which is then told by their fingerprints.
"""

from __future__ import annotations

from functools import cached_property

from py4j.protocol import Py4JError, Py4JJavaError

from headwater.spark.catalyst import Catalyst, Java, module

_IDS = 16
_PLANS = 15
_HALF = 32


class ExpressionIds:
    """Spark's counter of expression ids."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def begin(self) -> None:
        """Begin a plan: the ids from here on have the hashes 0, 1, 2 and so on, in every process."""
        if self._add is None:
            return
        now = self._moved(0)
        plan = (now >> (_HALF + _IDS)) + 1
        if plan < 1 << _PLANS:
            self._moved((plan << (_HALF + _IDS) | plan << _IDS) - now)

    def _moved(self, by: int) -> int:
        assert self._add is not None
        return int(self._add.invokeWithArguments(self._catalyst.java_list([by])))

    @cached_property
    def _add(self) -> Java | None:
        """What moves the counter on, and says where it is; None if it cannot be reached.

        The gateway takes a counter for a number, so it is never held here.
        """
        java = self._catalyst.jvm.java.lang
        try:
            owner = module(self._catalyst.jvm.org.apache.spark.sql.catalyst.expressions, "NamedExpression")
            counter = owner.getClass().getDeclaredField("curId")
            counter.setAccessible(True)
            look, long = java.invoke.MethodHandles.publicLookup(), java.Long.TYPE
            kind = java.invoke.MethodType.methodType(long, long)
            add = look.findVirtual(counter.getType(), "addAndGet", kind)
            return java.invoke.MethodHandles.collectArguments(add, 0, look.unreflectGetter(counter))
        except (Py4JError, Py4JJavaError):
            return None
