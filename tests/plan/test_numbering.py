"""The columns of a plan have the same names in every session: state is kept under them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.operators.accumulate import Aggregate
from headwater.operators.aggregate_call import AggregateCall
from headwater.operators.join import Join
from headwater.operators.stateless import Constant, Fragment, Union
from headwater.plan.numbering import numbered
from headwater.plan.operators import Field, Plan, Source
from tests.inside import plan_of

LONG = pa.int64()


def plan_numbered_from(first: int) -> Plan:
    """A plan with all operators, as Spark would number it that has numbered so many columns before."""
    c0, c1, c2, c3, c4 = (Field(f"c{first + number}", LONG) for number in (7, 3, 9, 1, 4))
    left = Source((c0, c1), "orders", ("id", "cents"))
    right = Constant((c2,), pa.table({c2.name: [1]}))
    joined = Join((c0, c1, c2), left=left, right=right, left_keys=(c0.name,), right_keys=(c2.name,), name="join1")
    fragment = Fragment(
        (c3, c1), child=joined, present=(c1.name,), inputs=(), passed=((c3.name, c0.name), (c1.name, c1.name))
    )
    call = AggregateCall("Sum", (c1.name,), c4, c3.name)
    total = Aggregate(
        (c3, c4), child=Union((c3, c1), (fragment, fragment)), keys=(c3.name,), calls=(call,), name="a"
    )
    return Plan(total, ("id", "total"), appends_only=False)


def test_a_plan_is_the_same_whatever_was_numbered_before() -> None:
    one, other = numbered(plan_numbered_from(0)), numbered(plan_numbered_from(100))
    assert one == other
    assert [each.name for each in one.root.output] == ["c3", "c4"]
    assert [node.relation for node in one.walk() if isinstance(node, Source)] == ["orders", "orders"]


@pytest.mark.spark
@pytest.mark.slow
def test_a_query_planned_again_keeps_its_names(pipeline: hw.Pipeline) -> None:
    pipeline.table("orders", "id BIGINT, customer BIGINT, cents BIGINT", key="id")
    pipeline.table("customers", "id BIGINT, country STRING", key="id")
    sql = (
        "SELECT upper(c.country) AS country, sum(o.cents + 1) AS cents, count(*) AS n FROM orders o "
        "JOIN customers c ON o.customer = c.id WHERE o.cents > 3 GROUP BY upper(c.country) HAVING count(*) > 1"
    )
    plans = [plan_of(pipeline, "revenue", sql) for _ in range(2)]
    names = [[[each.name for each in node.output] for node in plan.walk()] for plan in plans]
    assert names[0] == names[1]


@pytest.mark.spark
@pytest.mark.slow
def test_state_of_one_driver_is_understood_by_the_next(tmp_path: Path) -> None:
    for number in (1, 2):
        with hw.Pipeline("restart", tmp_path, master="local[1]") as pipeline:
            orders = pipeline.table("orders", "id BIGINT, cents BIGINT", key="id")
            pipeline.view("total", "SELECT sum(cents) AS cents FROM orders WHERE cents > 0")
            orders.upsert([{"id": number, "cents": 5}])
            pipeline.tick()
            assert pipeline.read("total").to_pylist() == [{"cents": 5 * number}]
