"""What views share, on the driver without Spark: retention, replacing, takeovers and plans that become others."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headwater as hw
from headwater.clock import SystemClock
from headwater.evaluation import ROW
from headwater.evaluation.errors import EvaluationFailed
from headwater.operators.accumulate import Aggregate
from headwater.operators.aggregate_call import AggregateCall
from headwater.operators.join import Join
from headwater.operators.stateless import Fragment
from headwater.plan.operators import Field, Fields, Node, Source
from headwater.state.manifest import Manifest
from headwater.tick import state
from tests.crash import hand_engine, shop
from tests.crash.hand_engine import LONG, TEXT, drive, source
from tests.inside import engine_of, merging_of, store_of


@dataclass(frozen=True)
class NotNegative:
    """An expression that has no value for negative numbers."""

    inputs: Fields
    outputs: Fields

    def __call__(self, table: pa.Table) -> pa.Table:
        numbers = table.column(self.inputs[0].name)
        if pc.any(pc.less(numbers, 0)).as_py():
            msg = "a number is negative"
            raise EvaluationFailed(msg)
        return pa.table({self.outputs[0].name: numbers, ROW: table.column(ROW)})


def customers() -> Source:
    return source("customers", d1=("id", LONG), d2=("country", TEXT))


def checked(child: Node, passed: str) -> Fragment:
    cents, made = Field("o2", LONG), Field("o3", LONG)
    kept = next(each for each in child.output if each.name == passed)
    computing = NotNegative((cents,), (made,))
    return Fragment(
        (kept, made), child=child, inputs=(cents.name,), passed=((passed, passed),), computing=computing, text="f"
    )


def totals() -> Node:
    """Customers with what they paid: the sums are what is shared."""
    orders = source("orders", o1=("customer", LONG), o2=("cents", LONG))
    call = AggregateCall("Sum", ("o3",), Field("o4", LONG))
    sums = Aggregate(
        (Field("o1", LONG), Field("o4", LONG)),
        child=checked(orders, "o1"),
        keys=("o1",),
        calls=(call,),
        name="aggregate1",
    )
    output = (Field("d2", TEXT), Field("o4", LONG))
    return Join(output, left=customers(), right=sums, left_keys=("d1",), right_keys=("o1",), name="join1")


def known() -> Node:
    """The same, joined with another view."""
    others = source("others", e1=("id", LONG), e2=("country", TEXT))
    output = (Field("o4", LONG), Field("e1", LONG))
    return Join(output, left=totals(), right=others, left_keys=("d2",), right_keys=("e2",), name="join2")


def paid() -> Node:
    """An expression above the join, so that what is shared goes on when it fails."""
    orders = source("orders", o1=("customer", LONG), o2=("cents", LONG))
    output = (Field("o2", LONG), Field("d2", TEXT))
    joined = Join(output, left=orders, right=customers(), left_keys=("o1",), right_keys=("d1",), name="join1")
    return checked(joined, "d2")


def twice() -> Node:
    """A column of a table under two names."""
    orders = source("orders", o1=("customer", LONG), o2=("cents", LONG))
    named = Fragment(
        (Field("d1", LONG), Field("d3", TEXT), Field("d4", TEXT)),
        child=customers(),
        passed=(("d1", "d1"), ("d3", "d2"), ("d4", "d2")),
    )
    output = (Field("o2", LONG), Field("d3", TEXT), Field("d4", TEXT))
    return Join(output, left=orders, right=named, left_keys=("o1",), right_keys=("d1",), name="join1")


PLANS: dict[str, tuple[Callable[[], Node], str]] = {
    "totals": (totals, "country STRING, total BIGINT"),
    "others": (customers, "id BIGINT, country STRING"),
    "known": (known, "total BIGINT, id BIGINT"),
    "paid": (paid, "country STRING, cents BIGINT"),
    "twice": (twice, "cents BIGINT, a STRING, b STRING"),
}


@pytest.fixture(autouse=True)
def plans(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, plan in PLANS.items():
        monkeypatch.setitem(hand_engine.PLANS, name, plan)


def opened(path: Path, **how: Any) -> tuple[hw.Pipeline, hw.Table, hw.Table]:
    pipeline = hw.Pipeline("p", path, **how)
    orders = pipeline.table("orders", "id BIGINT NOT NULL, customer BIGINT, cents BIGINT", key="id")
    buyers = pipeline.table("customers", "id BIGINT NOT NULL, country STRING", key="id")
    drive(pipeline)
    return pipeline, orders, buyers


class Clock(SystemClock):
    at = 0

    def now(self) -> int:
        return self.at


def test_the_last_good_tick_is_kept_among_those_of_which_few_are(tmp_path: Path) -> None:
    clock = Clock()
    pipeline, orders, buyers = opened(tmp_path, retain_ticks=2, retain_for="1 hour", clock=clock)
    with pipeline:
        pipeline.view("paid", "any")
        buyers.upsert([{"id": 1, "country": "A"}])
        orders.upsert([{"id": 1, "customer": 1, "cents": 5}])
        pipeline.tick()
        clock.at = 61_000_000  # the tick before is the last of its minute
        orders.upsert([{"id": 7, "customer": 1, "cents": 6}])
        pipeline.tick()
        orders.upsert([{"id": 9, "customer": 1, "cents": -5}])
        pipeline.tick()
        for number in range(20):
            buyers.upsert([{"id": 1, "country": f"X{number}"}])
            clock.at += 100_000
            pipeline.tick()
        assert [number for number, _ in store_of(pipeline).ticks()][:2] == [1, 2]
        position = orders.delete([9])
        pipeline.tick()
        rows = sorted(pipeline.read("paid", after=position).to_pylist(), key=str)
        assert rows == [{"country": "X19", "cents": 5}, {"country": "X19", "cents": 6}]


def test_what_another_view_reads_does_not_make_it_stale(tmp_path: Path) -> None:
    pipeline, orders, buyers = opened(tmp_path)
    with pipeline:
        pipeline.view("totals", "any")
        pipeline.view("others", "any", key="id")
        pipeline.view("known", "any")
        names = [store_of(pipeline).find(name).spec["shares"]["join1.right"] for name in ("totals", "known")]  # type: ignore[union-attr]
        assert names[0] == names[1]
        number = store_of(pipeline).find("totals").number  # type: ignore[union-attr]
        buyers.upsert([{"id": 1, "country": "A"}])
        orders.upsert([{"id": 1, "customer": 1, "cents": 5}])
        pipeline.tick()
        orders.upsert([{"id": 9, "customer": 1, "cents": -5}])
        pipeline.tick()
        pipeline.view("others", "another", key="country", replace=True)
        for _ in range(2):
            pipeline.tick()
        orders.delete([9])
        for _ in range(2):
            pipeline.tick()
        assert pipeline.read("totals").to_pylist() == [{"country": "A", "total": 5}]
        assert pipeline.read("known").to_pylist() == [{"total": 5, "id": 1}]
        assert store_of(pipeline).find("totals").number == number  # type: ignore[union-attr]  # not made anew


def test_what_is_made_anew_has_nothing_of_what_it_had(tmp_path: Path) -> None:
    pipeline, orders, buyers = opened(tmp_path, retain_ticks=2, retain_for="0 seconds")
    with pipeline:
        pipeline.view("totals", "any")
        buyers.upsert([{"id": 1, "country": "A"}])
        orders.upsert([{"id": 1, "customer": 1, "cents": 5}])
        pipeline.tick()
        orders.upsert([{"id": 9, "customer": 1, "cents": -5}])
        for number in range(21):
            pipeline.tick()
            buyers.upsert([{"id": 2, "country": str(number)}])
        orders.delete([9, 1])
        for _ in range(2):
            pipeline.tick()
        assert pipeline.read("totals").num_rows == 0
        orders.upsert([{"id": 3, "customer": 1, "cents": 7}])
        pipeline.tick()
        assert pipeline.read("totals").to_pylist() == [{"country": "A", "total": 7}]


def test_a_column_of_a_table_may_be_needed_twice(tmp_path: Path) -> None:
    pipeline, orders, buyers = opened(tmp_path)
    with pipeline:
        pipeline.view("twice", "any")
        buyers.upsert([{"id": 1, "country": "A"}])
        pipeline.tick()
        orders.upsert([{"id": 1, "customer": 1, "cents": 5}])
        pipeline.tick()
        assert pipeline.read("twice").to_pylist() == [{"cents": 5, "a": "A", "b": "A"}]


def test_a_plan_that_becomes_another_shares_by_what_it_has_become(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pairs(first: str, second: str) -> Callable[[], Node]:
        def made() -> Node:
            sides = {
                "a": source("a", c1=("id", LONG), c2=("name", TEXT)),
                "b": source("b", c3=("id", LONG), c4=("name", TEXT)),
            }
            keys = {"a": ("c1",), "b": ("c3",)}
            output = (Field("c2", TEXT), Field("c4", TEXT))
            return Join(
                output,
                left=sides[first],
                right=sides[second],
                left_keys=keys[first],
                right_keys=keys[second],
                name="join1",
            )

        return made

    plans = []
    for order, version in (("ab", "4.0"), ("ba", "4.1")):
        monkeypatch.setitem(hand_engine.PLANS, "pairs", (pairs(*order), "a STRING, b STRING"))
        with hw.Pipeline("p", tmp_path) as pipeline:
            for name in "ab":
                table = pipeline.table(name, "id BIGINT NOT NULL, name STRING", key="id")
                table.upsert([{"id": 1, "name": f"of {name}"}])
            drive(pipeline)
            engine_of(pipeline).meaning = {"Spark": version}
            pipeline.view("pairs", "any")
            for _ in range(2):
                pipeline.tick()
                assert pipeline.read("pairs").to_pylist() == [{"a": "of a", "b": "of b"}]
            plans.append(store_of(pipeline).declarations()["pairs"].spec["plan"])
    assert plans[0] != plans[1]


def test_a_merge_of_before_another_driver_is_not_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_LEAST_MERGED", 1)
    monkeypatch.setattr(state, "_MERGED_PER_CHANGED", 3)
    with shop.opened(str(tmp_path), views=False, retain_ticks=2) as first:
        driver = drive(first)
        shop.declare_views(first)
        traffic = shop.Traffic(first, 1)
        merging = merging_of(driver)
        while merging._thread is None:
            for _ in range(4):
                traffic.step()
            first.tick()
        merging._thread.join()
        (name,) = merging_of(driver).files
        with shop.opened(str(tmp_path), views=False, retain_ticks=2) as second:
            drive(second)
            second.take_over()
            shop.Traffic(second, 2).step()
            second.tick()
        assert not os.path.exists(tmp_path / "state" / name)
        first.take_over()
        traffic.step()
        first.tick()
        last = store_of(first).last_tick()
        assert last is not None
        manifests = map(Manifest.from_dict, store_of(first).arrangements(last.number).values())
        assert {run.file for each in manifests for run in each.runs} <= set(os.listdir(tmp_path / "state"))
