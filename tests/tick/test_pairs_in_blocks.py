"""Pairs are made in blocks, on both paths: what a condition leaves of one is all that stays of it in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headwater as hw
from headwater.change import pairs
from headwater.change.pairs import PairBlocks, Pairs
from headwater.evaluation import ROW
from headwater.evaluation.errors import EvaluationFailed
from headwater.expressions.expression import ColumnReference, Direct, Expression, Filter, FunctionCall
from headwater.memory import allowing
from headwater.operators import Fragment, Join
from headwater.plan.operators import Node
from tests.crash import hand_engine
from tests.crash.hand_engine import LONG, TEXT, drive, source

_BLOCK = 1 << 12
_ALLOWED = 1 << 15
"""Blocks fit into this, all pairs do not."""


def between(table: pa.Table) -> pa.Table:
    """The pairs whose size is within the limits; 13 has no value."""
    if pc.any(pc.equal(table.column("a2"), 13)).as_py():
        raise EvaluationFailed("it is thirteen")
    above = pc.less_equal(table.column("b2"), table.column("a2"))
    mask = pc.and_(above, pc.less_equal(table.column("a2"), table.column("b3")))
    return table.select([ROW]).filter(mask)


def _ordered(one: str, other: str) -> FunctionCall:
    return FunctionCall("less_equal", (ColumnReference(one), ColumnReference(other)), pa.bool_())


CONDITION: Expression = FunctionCall("and", (_ordered("b2", "a2"), _ordered("a2", "b3")), pa.bool_())
DIRECT = Direct((Filter(CONDITION),), ("a2", "b2", "b3", "row"), ("row",), pa.schema([pa.field(ROW, LONG)]))


def _within(*, keyed: bool, direct: Direct | None) -> Node:
    sales = source("sales", a1=("id", LONG), a2=("size", LONG), a3=("color", TEXT))
    limits = source("limits", b1=("id", LONG), b2=("low", LONG), b3=("high", LONG), b4=("color", TEXT))
    keys = {"left_keys": ("a3",), "right_keys": ("b4",)} if keyed else {}
    join = Join((*sales.output, *limits.output), left=sales, right=limits, name="join1", **keys)
    passed = (("a1", "a1"), ("b1", "b1"))
    output = (sales.output[0], limits.output[0])
    inputs = ("a2", "b2", "b3")
    return Fragment(output, child=join, inputs=inputs, computing=between, direct=direct, passed=passed)


PLANS: dict[str, Callable[[], Node]] = {
    "by Arrow": lambda: _within(keyed=False, direct=DIRECT),
    "by Spark": lambda: _within(keyed=False, direct=None),
    "of a crowded key": lambda: _within(keyed=True, direct=DIRECT),
    "of a crowded key, by Spark": lambda: _within(keyed=True, direct=None),
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs each block has that was made."""
    sizes: list[int] = []
    real = PairBlocks.block

    def block(self: PairBlocks, start: int, end: int) -> Pairs:
        found = real(self, start, end)
        sizes.append(found.table().nbytes)
        return found

    monkeypatch.setattr(PairBlocks, "block", block)
    monkeypatch.setattr(pairs, "BLOCK_BYTES", _BLOCK)
    return sizes


@pytest.mark.parametrize("large", [False, True], ids=["here", "in stages"])
@pytest.mark.parametrize("plan", PLANS)
def test_more_pairs_than_fit_into_memory_go_through_a_condition_block_by_block(
    tmp_path: Path, plan: str, large: bool, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(hand_engine.PLANS, "within", (PLANS[plan], "sale BIGINT, limit BIGINT"))
    random = Random(plan)
    sold: dict[int, int] = {}
    known: dict[int, tuple[int, int]] = {}
    with hw.Pipeline("new", tmp_path) as pipeline, allowing(_ALLOWED):
        sales = pipeline.table("sales", "id BIGINT, size BIGINT, color STRING", key="id")
        limits = pipeline.table("limits", "id BIGINT, low BIGINT, high BIGINT, color STRING", key="id")
        drive(pipeline, large=large)
        pipeline.view("within", "planned by hand")
        for _ in range(3):
            for _ in range(60):
                low = random.randrange(100, 900)
                known[random.randrange(80)] = (low, low + random.randrange(-5, 10))
                sold[random.randrange(80)] = random.randrange(100, 900)
            sales.upsert([{"id": each, "size": size, "color": "red"} for each, size in sold.items()])
            limits.upsert(
                [{"id": each, "low": low, "high": high, "color": "red"} for each, (low, high) in known.items()]
            )
            pipeline.tick()
            expected = [
                {"sale": sale, "limit": limit}
                for sale, size in sold.items()
                for limit, (low, high) in known.items()
                if low <= size <= high
            ]
            found = pipeline.read("within").to_pylist()
            assert sorted(found, key=str) == sorted(expected, key=str)
    assert len(made) > 10
    assert max(made) <= _BLOCK


@pytest.mark.parametrize("large", [False, True], ids=["here", "in stages"])
def test_a_pair_without_a_value_is_named_also_in_a_late_block(
    tmp_path: Path, large: bool, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(hand_engine.PLANS, "within", (PLANS["by Spark"], "sale BIGINT, limit BIGINT"))
    with hw.Pipeline("new", tmp_path) as pipeline, allowing(_ALLOWED):
        sales = pipeline.table("sales", "id BIGINT, size BIGINT, color STRING", key="id")
        limits = pipeline.table("limits", "id BIGINT, low BIGINT, high BIGINT, color STRING", key="id")
        drive(pipeline, large=large)
        pipeline.view("within", "planned by hand")
        sales.upsert([{"id": each, "size": 13 if each == 70 else 500, "color": "red"} for each in range(80)])
        limits.upsert([{"id": each, "low": 0, "high": 10, "color": "red"} for each in range(80)])
        pipeline.tick()
        with pytest.raises(hw.ViewSuspended, match=r"it is thirteen, for the row .*13"):
            pipeline.read("within", as_of=1)
    assert len(made) > 1


def test_a_condition_sees_some_pairs_of_each_block_and_their_weights() -> None:
    left = pa.table({"a": [1, 2, 3], "_weight": [1, -1, 2]})
    right = pa.table({"b": [7, 8], "_weight": [1, 3]})
    schema = pa.schema([("a", LONG), ("b", LONG), ("_weight", LONG)])
    whole = pairs.Stretches(*(pa.array(each).to_numpy() for each in ([2, 0, 1], [0, 1, 0], [2, 1, 2], [1, 0])))
    blocks = PairBlocks(left, right, whole, ((), ()), schema)
    assert blocks.most == 5
    (one,) = blocks
    assert one.table().to_pylist() == [
        {"a": 3, "b": 8, "_weight": 6},
        {"a": 3, "b": 7, "_weight": 2},
        {"a": 1, "b": 7, "_weight": 1},
        {"a": 2, "b": 8, "_weight": -3},
        {"a": 2, "b": 7, "_weight": -1},
    ]
    assert one.slice(1, 2).table().to_pylist() == one.table().to_pylist()[1:3]
    assert one.slice(4).table().to_pylist() == one.table().to_pylist()[4:]
    none = pairs.Stretches(whole.rows, whole.first, whole.counts * 0, whole.order)
    assert [each.num_rows for each in PairBlocks(left, right, none, ((), ()), schema)] == [0]
