"""Rows for which an expression has no value: found by evaluating ever smaller parts of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from headwater.attempt import go_on, is_alone
from headwater.change import HASH, WEIGHT
from headwater.evaluation import LEFT_MARK, RIGHT_MARK
from headwater.evaluation.errors import EvaluationFailed, OutOfMemory, TooMuchOfOne
from headwater.plan.operators import Field
from headwater.schema.json import to_json

_LONGEST = 1000
_MOST = 100
Rows = TypeVar("Rows")
Fails = Callable[[Sequence[pa.Table]], bool]


def explained(error: EvaluationFailed, rows: pa.Table, fields: Sequence[Field]) -> EvaluationFailed:
    """The error with the first of these rows, its columns under the names that people gave them."""
    if error.row:
        return error
    row = as_json(rows.slice(0, 1), fields)[0] if rows.num_rows else ""
    return type(error)(error.what, row=row[:_LONGEST], where=error.where, hint=error.hint)


def check_is_of_rows(error: EvaluationFailed) -> None:
    """Pass an error on that may be because of something else than the rows: no row is to be blamed for it."""
    if isinstance(error, OutOfMemory) and not is_alone():
        raise error


def as_json(rows: pa.Table, fields: Sequence[Field]) -> list[str]:
    """Rows as JSON, their columns under the names that people gave them."""
    names: dict[str, str] = {}
    for field in (each for each in fields if each.name in rows.column_names):
        shown = field.shown or field.name
        if shown in {LEFT_MARK, RIGHT_MARK}:
            continue
        names[field.name] = shown if shown not in names.values() else field.name
    return list(to_json(rows.select(list(names)).rename_columns(list(names.values()))))


def narrowed(rows: pa.Table, fails: Callable[[pa.Table], bool]) -> pa.Table:
    """As few of these rows as still fail: one, unless only several fail together."""
    while rows.num_rows > 1:
        half = rows.num_rows // 2
        parts = rows.slice(0, half), rows.slice(half)
        failing = next((part for part in parts if fails(part)), None)
        if failing is None:
            break
        rows = failing
    return rows


def blamed(error: EvaluationFailed, rows: pa.Table, evaluate: Callable[[pa.Table], object]) -> pa.Table:
    """The rows because of which evaluating these gave an error, as few as can be told."""
    if isinstance(error, TooMuchOfOne):
        return rows.slice(error.place, 1)
    return narrowed(rows, failing(evaluate))


def narrowed_together(tables: Sequence[pa.Table], fails: Fails) -> list[pa.Table]:
    """As few rows of these tables as still fail: first as few hashes as possible, then of each table rows."""
    every = np.unique(np.concatenate([table.column(HASH).to_numpy() for table in tables]))

    def of(hashes: pa.Table) -> list[pa.Table]:
        wanted = hashes.column(HASH).to_numpy()
        return [table.filter(pa.array(np.isin(table.column(HASH).to_numpy(), wanted))) for table in tables]

    found = of(narrowed(pa.table({HASH: every}), lambda hashes: fails(of(hashes))))
    for place in range(len(found)):
        before, behind = found[:place], found[place + 1 :]
        fails_so = partial(_fails_between, fails, before, behind)
        found[place] = narrowed(found[place], fails_so)
        if before + behind and fails_so(found[place].slice(0, 0)):  # because of the others
            found[place] = found[place].slice(0, 0)
    return found


def _fails_between(fails: Fails, before: Sequence[pa.Table], behind: Sequence[pa.Table], rows: pa.Table) -> bool:
    return fails([*before, rows, *behind])


def split_off(
    rows: pa.Table, evaluate: Callable[[pa.Table], object], fields: Sequence[Field]
) -> tuple[pa.Table, pa.Table]:
    """The rows that can be evaluated; the others as dead letters with reason, expression, the row, and its weight.

    It is an error if there are many, since each costs some evaluations, or if one of them leaves without a letter.
    """
    errors = _errors(rows, evaluate, fields)
    failed = sorted(errors)
    bad = rows.take(pa.array(failed, pa.int64()))
    reasons = [(errors[place].what, errors[place].where) for place in failed]
    good = np.delete(np.arange(rows.num_rows), failed)
    return rows.take(pa.array(good)), dead_letters(reasons, as_json(bad, fields), bad.column(WEIGHT))


def _errors(
    rows: pa.Table, evaluate: Callable[[pa.Table], object], fields: Sequence[Field]
) -> dict[int, EvaluationFailed]:
    """Why rows cannot be evaluated, by their place: found by halves."""
    errors: dict[int, EvaluationFailed] = {}
    waiting = [(0, rows.num_rows)]
    while waiting:
        start, end = waiting.pop()
        if start == end:
            continue
        try:
            evaluate(rows.slice(start, end - start))
        except EvaluationFailed as error:
            check_is_of_rows(error)
            if isinstance(error, TooMuchOfOne):
                waiting += [(start, start + error.place), (start + error.place + 1, end)]
                start += error.place
            elif end - start > 1:
                middle = (start + end) // 2
                waiting += [(start, middle), (middle, end)]
                continue
            if len(errors) == _MOST or rows.column(WEIGHT)[start].as_py() < 0:
                raise explained(error, rows.slice(start, 1), fields) from error
            errors[start] = error
    return errors


def dead_letters(
    reasons: Sequence[tuple[str, str]], raw: Sequence[str], weights: pa.ChunkedArray | pa.Array
) -> pa.Table:
    """Dead letters: reason and expression, the rows as JSON, and their weights."""
    texts = {"reason": [why for why, _ in reasons], "column": [where for _, where in reasons], "raw": raw}
    return pa.table({**{name: pa.array(values, pa.string()) for name, values in texts.items()}, WEIGHT: weights})


def failing(evaluate: Callable[[Rows], object]) -> Callable[[Rows], bool]:
    """Whether evaluating rows fails because of what they are."""

    def fails(rows: Rows) -> bool:
        go_on()
        try:
            evaluate(rows)
        except EvaluationFailed:
            return True
        return False

    return fails
