"""The protocol of whoever plans views and evaluates what their plans say: Spark, behind a door."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from headwater.errors import Unavailable
from headwater.plan.fingerprint import Fingerprint
from headwater.plan.function import Udf
from headwater.plan.operators import Plan
from headwater.plan.sharing import Split
from headwater.schema import Schema


class Stages(Protocol):
    """Whoever runs functions on executors. Safe for threads."""

    @property
    def workers(self) -> int:
        """How many tasks run at once."""
        ...

    @property
    def jobs(self) -> int:
        """How many were begun so far."""
        ...

    def each(self, function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        """The function's result for every item."""
        ...

    def compute(
        self,
        computing: Any,
        inputs: Callable[[Any], Iterator[pa.RecordBatch]],
        results: Callable[[Any], Any],
        items: list[Any],
    ) -> list[Any]:
        """Evaluate a fragment between loading rows and taking results."""
        ...

    def recompute(
        self,
        computing: Any,
        inputs: Callable[[Any, int], pa.Table],
        results: Callable[[Any, pa.Table], Any],
        items: list[Any],
    ) -> list[Any]:
        """Evaluate an operator for every item: `inputs` loads the rows of each of its inputs, told by place."""
        ...


class Engine(Protocol):
    """Plans views and evaluates their expressions, here or on executors. Safe for threads."""

    @property
    def meaning(self) -> Mapping[str, str]:
        """What the values of the same SQL depend on beside its inputs."""
        ...

    @property
    def planned_by(self) -> Mapping[str, str]:
        """What the plan of the same SQL depends on beside its inputs."""
        ...

    @property
    def functions(self) -> Mapping[str, Udf]:
        """The user's functions as they are now."""
        ...

    @property
    def queries(self) -> int:
        """How many fragments were evaluated so far."""
        ...

    @property
    def stages(self) -> Stages:
        """Runs functions on executors."""
        ...

    # -- planning

    def plan(self, name: str, sql: str, relation: Callable[[str], Any]) -> tuple[Plan, Schema]:
        """The plan of a view and its columns; `ViewRefused` if it cannot be maintained.

        `relation` finds what a name stands for.
        """
        ...

    def check(self, name: str, plan: Plan) -> None:
        """`ViewRefused` for what is found only when a plan is to be run."""
        ...

    def knows(self, names: Iterable[str], relation: Callable[[str], Any]) -> bool:
        """Whether relations are still what they were when something that reads them was planned."""
        ...

    def forget(self, name: str) -> None:
        """Forget a relation that was dropped."""
        ...

    def same(self, one: Any, other: Any) -> bool:
        """Whether two plans' expressions give the same for the same rows, as far as that can be told."""
        ...

    def fingerprints(self, split: Split) -> tuple[Fingerprint, dict[str, Fingerprint]]:
        """Of a view's own plan, and of what it shares."""
        ...

    def kept_plan(self, path: str) -> Any:
        """The file of a plan."""
        ...

    # -- evaluating

    def evaluate(self, computing: object, table: pa.Table) -> pa.Table:
        """The computed columns and `_row`, for a table of the inputs and `_row`."""
        ...

    def recompute(self, computing: object, tables: Sequence[pa.Table]) -> pa.Table:
        """What an operator gives for the rows of its inputs: its columns and `_hash`."""
        ...

    def stop(self, attempt: str) -> None:
        """Stop what is evaluated for an attempt, as far as that is possible."""
        ...

    def is_waiting(self, attempt: str) -> bool:
        """Whether an attempt only waits until others leave it a place."""
        ...

    def is_lost(self) -> bool:
        """Whether nothing can be evaluated any more."""
        ...

    def cancel(self) -> None:
        """End what is done for others than this thread."""
        ...

    # -- its end

    @property
    def has_ended(self) -> bool:
        """Whether it is known to have ended: then another engine is to be made."""
        ...

    def ended(self, error: BaseException | None) -> Unavailable | None:
        """What to raise in place of an error that comes from its end; None if it does not."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...
