"""Rows for which an expression has no value are told from the others by evaluating parts of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.change import WEIGHT
from headwater.evaluation.blame import blamed, split_off
from headwater.evaluation.errors import EvaluationFailed, TooMuchOfOne
from headwater.plan.operators import Field

FIELDS = [Field("a", pa.int64())]


def rows(*values: int, weight: int = 1) -> pa.Table:
    return pa.table({"a": values, WEIGHT: [weight] * len(values)})


def evaluate(table: pa.Table) -> None:
    values = table.column("a").to_pylist()
    if 6 in values:
        raise EvaluationFailed("it is six")
    if max(values) >= 1000:
        raise TooMuchOfOne("it is large", place=values.index(max(values)))


def test_each_bad_row_becomes_a_letter_and_all_others_are_evaluated() -> None:
    good, bad = split_off(rows(1, 2, 3000, 4, 5000, 6, 7), evaluate, FIELDS)
    assert good.column("a").to_pylist() == [1, 2, 4, 7]
    told = [(each["reason"], each["raw"]) for each in bad.to_pylist()]
    assert told == [("it is large", '{"a":3000}'), ("it is large", '{"a":5000}'), ("it is six", '{"a":6}')]


def test_a_row_of_which_too_much_comes_is_known_without_evaluating_others_again() -> None:
    tries = []

    def tried(table: pa.Table) -> None:
        tries.append(table.num_rows)
        evaluate(table)

    split_off(rows(*range(7, 100), 3000, *range(100, 200)), tried, FIELDS)
    assert tries == [194, 100, 93]
    error = TooMuchOfOne("it is large", place=1)
    assert blamed(error, rows(1, 3000), tried).to_pylist() == [{"a": 3000, WEIGHT: 1}]
    assert len(tries) == 3


def test_a_row_that_leaves_without_a_letter_is_an_error() -> None:
    for value in (6, 3000):
        with pytest.raises(EvaluationFailed, match=str(value)):
            split_off(rows(1, value, weight=-1), evaluate, FIELDS)
