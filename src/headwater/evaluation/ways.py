"""The ways of evaluating the same rows: the fast first, then slower ones, and the last of them names a row.

A fast way evaluates much at once, on executors or before it is needed; if it fails, it only says that some row of
many has no value. Then the same is done in a slower way, in this process, and there ever fewer rows are evaluated
until those are known because of which it fails. Nothing else than `EvaluationFailed` is tried again: what is no
row's fault would fail in any way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa

from headwater.evaluation.blame import (
    blamed,
    check_is_of_rows,
    explained,
    failing,
    narrowed_together,
    split_off,
)
from headwater.evaluation.errors import EvaluationFailed
from headwater.plan.operators import Field

Result = TypeVar("Result")


class SetAside(Protocol):
    """Where rows go that cannot be evaluated."""

    def left(self, rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
        """The rows without those that leave, and were set aside before."""
        ...

    def put(self, rows: pa.Table) -> None:
        """Set rows aside, with reasons and weights."""
        ...


def fast_then_slow(
    fast: Callable[[], Result], slow: Callable[[], Result], *, is_other: Callable[[], bool] = lambda: True
) -> Result:
    """What the fast way gives, or the slow one if a row failed in it, and if that `is_other` than the fast one."""
    try:
        return fast()
    except EvaluationFailed:
        if not is_other():
            raise
    return slow()


def naming_a_row(evaluate: Callable[[pa.Table], Result], rows: pa.Table, fields: Sequence[Field]) -> Result:
    """What rows are evaluated to; an error names one that has no value."""
    try:
        return evaluate(rows)
    except EvaluationFailed as error:
        check_is_of_rows(error)
        raise explained(error, blamed(error, rows, evaluate), fields) from error


def naming_one_of(
    evaluate: Callable[[Sequence[pa.Table]], Result], tables: Sequence[pa.Table], fields: Sequence[Sequence[Field]]
) -> Result:
    """The same for rows of several tables, with hashes, that are evaluated together."""
    try:
        return evaluate(tables)
    except EvaluationFailed as error:
        check_is_of_rows(error)
        found = narrowed_together(tables, failing(evaluate))
        place = next((place for place, rows in enumerate(found) if rows.num_rows), 0)
        raise explained(error, found[place], fields[place]) from error


def setting_aside(
    evaluate: Callable[[pa.Table], Result], rows: pa.Table, fields: Sequence[Field], aside: SetAside
) -> tuple[pa.Table, Result]:
    """The rows that have a value, and what they are evaluated to; the others are set aside."""
    try:
        return rows, evaluate(rows)
    except EvaluationFailed as error:
        check_is_of_rows(error)
    good, bad = split_off(rows, evaluate, fields)
    aside.put(bad)
    return good, naming_a_row(evaluate, good, fields)
