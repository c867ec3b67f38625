"""Operators that keep nothing: expressions row by row, all rows of several inputs, rows of the query's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headwater.change import WEIGHT
from headwater.change.pairs import Pairs
from headwater.evaluation import ROW
from headwater.evaluation.errors import EvaluationFailed, OutOfMemory
from headwater.expressions.expression import ColumnReference, Direct, Filter, FunctionCall, Value
from headwater.operators.join import Join
from headwater.operators.stateless import Constant, Fragment, Union
from headwater.plan.operators import Field, Names, Node, Source
from headwater.plan.physical import Apply, Load, Rows, Together
from tests.operators.running import Row, changed, counted

LONG = pa.int64()
COLUMNS = (Field("a", LONG, "size"), Field("b", LONG))
TWICE = Field("c", LONG)


def twice(computing: object, table: pa.Table) -> pa.Table:
    """Two rows for each that is above 3, none for others; 13 has no value."""
    if pc.any(pc.equal(table.column("a"), 13)).as_py():
        raise EvaluationFailed("it is thirteen")
    large = table.filter(pc.greater(table.column("a"), 3))
    rows = pa.table({"c": pc.multiply(large.column("a"), 2), ROW: large.column(ROW)})
    return pa.concat_tables([rows, rows]).sort_by(ROW)


def fragment(**fields: Any) -> Fragment:
    given: dict[str, Any] = {"inputs": ("a",), "computing": "twice", "passed": (("b", "b"),), "present": ("b",)}
    return Fragment((TWICE, COLUMNS[1]), child=Source(COLUMNS, "t", ("size", "b")), **{**given, **fields})


def some(random: Random, count: int) -> Counter[Row]:
    change: Counter[Row] = Counter()
    for _ in range(count):
        change[random.choice([None, 1, 4, 7]), random.choice([None, 1, 2])] += random.choice([-2, -1, 1, 3])
    return change


@pytest.mark.parametrize("seed", range(5))
def test_each_row_becomes_what_it_is_worth_with_its_weight(seed: int) -> None:
    change = some(Random(seed), Random(seed).choice([0, 1, 30]))
    made = fragment().apply(changed(COLUMNS, change), twice)
    wanted: Counter[Row] = Counter()
    for (a, b), weight in change.items():
        if a is not None and a > 3 and b is not None:
            wanted[2 * a, b] += 2 * weight
    assert counted([made], ["c", "b"]) == Counter({row: weight for row, weight in wanted.items() if weight})
    assert made.schema.names == ["c", "b", WEIGHT]


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_evaluated_as_the_rows_that_they_stand_for(seed: int) -> None:
    random = Random(seed)
    left, right = (pa.table({name: [4, 5, None, 9], WEIGHT: [1, 2, -1, 1]}) for name in "ab")
    rows = [[random.randrange(4) for _ in range(12)] for _ in range(2)]
    schema = pa.schema([*(each.arrow for each in COLUMNS), pa.field(WEIGHT, LONG)])
    pairs = Pairs(left, pa.array(rows[0]).to_numpy(), right, pa.array(rows[1]).to_numpy(), schema)
    assert fragment().apply(pairs, twice).equals(fragment().apply(pairs.table(), twice))


def test_what_arrow_computes_needs_nobody_else() -> None:
    above = Filter(FunctionCall("greater", (ColumnReference("x"), Value(pa.scalar(3, LONG))), pa.bool_()))
    direct = Direct((above,), ("x", "row"), ("x", "row"), pa.schema([TWICE.arrow, pa.field(ROW, LONG)]))
    node = fragment(direct=direct)

    def never(*given: object) -> pa.Table:
        raise AssertionError(given)

    made = node.portable().apply(changed(COLUMNS, Counter([(1, 1), (4, 2)])), never)
    assert counted([made], ["c", "b"]) == Counter([(4, 2)])


def test_a_row_without_a_value_is_named_as_people_call_its_columns() -> None:
    rows = Counter((number, 1) for number in range(40))
    with pytest.raises(EvaluationFailed, match="thirteen") as failed:
        fragment().apply(changed(COLUMNS, rows), twice)
    assert failed.value.row == '{"size":13,"b":1}'


class Aside:
    def __init__(self) -> None:
        self.rows: list[pa.Table] = []

    def left(self, rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
        return rows

    def put(self, rows: pa.Table) -> None:
        self.rows.append(rows)


def test_rows_without_a_value_are_set_aside_and_the_others_go_on() -> None:
    aside = Aside()
    made = fragment().apply(changed(COLUMNS, Counter({(13, 1): 2, (4, 1): 1, (13, 2): 1})), twice, aside)
    assert counted([made], ["c", "b"]) == Counter({(8, 1): 2})
    (bad,) = aside.rows
    assert bad.select(["raw", WEIGHT]).to_pylist() == [
        {"raw": '{"size":13,"b":1}', WEIGHT: 2},
        {"raw": '{"size":13,"b":2}', WEIGHT: 1},
    ]
    assert fragment().apply(changed(COLUMNS, Counter([(13, 1)])), twice, aside).num_rows == 0


def test_rows_that_were_set_aside_leave_without_being_evaluated() -> None:
    class Known(Aside):
        def left(self, rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
            assert [field.shown or field.name for field in fields] == ["size", "b"]
            return rows.filter(pc.not_equal(rows.column("a"), 13))

    change = changed(COLUMNS, Counter({(13, 1): -1, (4, 1): -1}))
    assert counted([fragment().apply(change, twice, Known())], ["c", "b"]) == Counter({(8, 1): -2})


@pytest.mark.parametrize("error", [KeyError, OutOfMemory])
def test_what_no_row_is_to_blame_for_sets_none_aside(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.evaluation.blame.is_alone", lambda: False)
    aside, tries = Aside(), list[int]()

    def evaluate(computing: object, table: pa.Table) -> pa.Table:
        tries.append(table.num_rows)
        raise error("x")

    with pytest.raises(error):
        fragment().apply(changed(COLUMNS, Counter([(13, 1), (4, 1)])), evaluate, aside)
    assert tries == [2]
    assert not aside.rows


def test_columns_that_are_merely_chosen_are_those_of_what_is_below() -> None:
    chosen = fragment(computing=None, inputs=(), present=(), passed=(("c", "a"), ("b", "b")))
    assert chosen.selected == (chosen.child, {"c": "a", "b": "b"})
    assert chosen.reading == ("t", ("size", "b"), ())
    assert fragment().reading is None
    assert fragment().selected[0] == fragment()
    checked = fragment(computing=None, inputs=(), passed=(("c", "a"), ("b", "b")))
    assert checked.reading == ("t", ("size", "b"), ("b",))
    assert checked.title == "b is not null"


def test_the_physical_plan_has_a_step_for_each() -> None:
    source, constant = Source(COLUMNS, "t", ("size", "b")), Constant(COLUMNS, pa.table({"a": [1], "b": [2]}))
    union = Union(COLUMNS, (source, constant))
    physical = Fragment((COLUMNS[1],), child=union, passed=(("b", "b"),)).physical()
    assert isinstance(physical, Apply)
    assert isinstance(physical.of, Together)
    load, rows = physical.of.parts
    assert isinstance(load, Load)
    assert (load.relation, load.columns) == ("t", ("size", "b"))
    assert isinstance(rows, Rows)
    assert rows.rows.num_rows == 1


def test_what_is_sent_to_workers_knows_only_the_columns_below() -> None:
    sent = fragment().portable()
    assert sent.computing is None
    assert sent.child == Node(COLUMNS)
    join = Join(
        COLUMNS, left=fragment(), right=Source(COLUMNS, "t", ("a", "b")), left_keys=("c",), right_keys=("a",)
    )
    assert [type(each) for each in join.portable().children] == [Node, Node]


def test_a_constant_is_renamed_with_its_rows() -> None:
    constant = Constant(COLUMNS, pa.table({"a": [1], "b": [2]}))
    renamed = constant.renamed(Names(a="c0", b="c1"))
    assert renamed.rows is not None
    assert renamed.rows.column_names == renamed.schema.names == ["c0", "c1"]
