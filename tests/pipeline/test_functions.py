"""Functions are what they are when they are declared."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

import headwater as hw
from headwater.pipeline.functions import checked_udf
from headwater.plan.function import Udf
from headwater.testing import assert_same_as_batch


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["scalar", "pandas", "aggregate"])
def test_a_function_runs_as_it_was_when_it_was_declared(tmp_path: Path, kind: str) -> None:
    held: list[Any] = [1]

    def rated(x: Any) -> Any:
        return (x if kind != "aggregate" else int(x.sum())) * held[0]

    def opened() -> tuple[hw.Pipeline, hw.Table]:
        pipeline = hw.Pipeline("functions", tmp_path / "functions")
        table = pipeline.table("t", "id BIGINT, x BIGINT", key="id")
        pipeline.udf("rated", rated, "BIGINT", kind=kind)
        pipeline.view("v", "SELECT id, rated(x) AS y FROM t" + " GROUP BY id" * (kind == "aggregate"))
        return pipeline, table

    for number, deleted in ((1, ()), (10, ()), (10, (1,))):
        held[0] = number
        pipeline, table = opened()
        with pipeline:
            held[0] = threading.Lock()  # which cannot be sent
            table.upsert([{"id": number, "x": 1}])
            table.delete(list(deleted))
            pipeline.tick()
            assert {row["y"] for row in pipeline.read("v").to_pylist()} == {number}
            assert_same_as_batch(pipeline)


def test_a_function_is_told_and_pickled_as_it_is_when_it_is_declared() -> None:
    rates = [2]
    one, same = (checked_udf("rated", lambda x: x * rates[0], "BIGINT", "scalar", None) for _ in range(2))
    rates[0] = 10
    other = checked_udf("rated", lambda x: x * rates[0], "BIGINT", "scalar", None)
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert [cloudpickle.loads(each.pickled)(3) for each in (one, same, other)] == [6, 6, 30]


def test_the_same_function_is_another_when_what_it_uses_has_changed() -> None:
    rates = [2]

    def rated(x: int) -> int:
        return x * rates[0]

    one, same = (checked_udf("rated", rated, "BIGINT", "scalar", None) for _ in range(2))
    rates[0] = 10
    assert one == same != checked_udf("rated", rated, "BIGINT", "scalar", None)


def test_a_function_of_which_nothing_can_be_told_asks_for_a_version() -> None:
    deep: tuple[object, ...] = ()
    for _ in range(100_000):
        deep = (deep,)
    with pytest.raises(hw.HeadwaterError, match="the function f does cannot be told: RecursionError") as caught:
        _ = Udf("f", lambda x: (deep, x)[1], "INT").fingerprint
    assert "declare it with a version" in caught.value.hint
    assert Udf("f", lambda x: (deep, x)[1], "INT", version="1").fingerprint
