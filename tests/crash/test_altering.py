"""Whoever alters a topic, writes to it or ticks is killed at each point on the way, and nothing is lost."""

from __future__ import annotations

import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater import crashpoint
from headwater.oracle.naive import content
from tests.crash.children import child
from tests.crash.hand_engine import drive
from tests.inside import log_of, topic_of

OLD, NEW = "id BIGINT, cents INT, note STRING", "id BIGINT, cents BIGINT, tax INT DEFAULT 3, remark STRING"
WRITING = ("alter.stored", "append.half_written", "append.published", "roll.sealed", "roll.created", "roll.renamed")
DECIDING = ("transaction.written", "transaction.synced", "transaction.decided")
TICKING = tuple(point for point in crashpoint.CRASH_POINTS if point.startswith("tick."))


def opened(path: str) -> hw.Pipeline:
    return hw.Pipeline("shop", path, retain_ticks=5)


def old_rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": n, "cents": n, "note": f"n{n}"} for n in ids]


def new_rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": n, "cents": n << 33, "tax": 1, "remark": "new"} for n in ids]


def work(pipe: Connection, path: str, point: str) -> None:
    """Alter the table, write to it and tick, telling what is done, until it dies at a point."""
    with opened(path) as pipeline:
        drive(pipeline)
        crashpoint.arm(point)
        table: Any = pipeline.alter("orders", NEW, rename={"note": "remark"})
        pipe.send("altered")
        table.upsert(new_rows(1, 10))
        pipe.send("written")
        with pipeline.transaction() as transaction:
            transaction.upsert(table, new_rows(11, 12))
            transaction.append("clicks", [{"id": 1}])
        pipe.send("committed")
        for number in range(12):
            table.upsert(new_rows(20 + number))
            pipeline.tick()
        pipe.send("ticked")


def told_until_death(path: str, point: str) -> list[str]:
    found = []
    with child(work, path, point) as (process, pipe):
        try:
            while True:
                found.append(pipe.recv())
        except EOFError:
            process.join()
        assert process.exitcode == -signal.SIGKILL, f"{point} was not reached: {found}"
    return found


@pytest.mark.slow
@pytest.mark.parametrize("point", [*WRITING, *DECIDING, *TICKING])
def test_a_pipeline_goes_on_whatever_altered_it_died_of(tmp_path: Path, point: str) -> None:
    path = str(tmp_path / "shop")
    with opened(path) as pipeline:
        orders: Any = pipeline.table("orders", OLD, key="id", partitions=3)
        pipeline.stream("clicks", "id BIGINT")
        orders.upsert(old_rows(*range(9)))
        drive(pipeline)
        pipeline.tick()
    told = told_until_death(path, point)
    with opened(path) as pipeline:
        drive(pipeline)
        table: Any = pipeline.alter("orders", NEW, rename={"note": "remark"})
        assert pipeline.table("orders", NEW, key="id", partitions=3).schema.names == (
            "id",
            "cents",
            "tax",
            "remark",
        )
        orders = {row["id"]: row for found in table.tail() for row in found.to_pylist()}
        assert orders[0]["remark"] == "n0"
        assert (orders[0]["tax"], orders[0]["cents"]) == (3, 0)
        assert ("written" not in told) or (orders[1]["cents"] == 1 << 33)
        assert ("committed" not in told) or {11, 12} <= orders.keys()
        assert (11 in orders) == (12 in orders)
        table.upsert(new_rows(99))
        pipeline.tick()
        _check(pipeline)
        table.delete(list(range(0, 99, 2)))
        pipeline.tick()
        _check(pipeline)
        log_of(pipeline).verify("orders")


def _check(pipeline: hw.Pipeline) -> None:
    """The table is what its log says, read in the simplest way."""
    topic = topic_of(pipeline, "orders")
    expected = content(topic, log_of(pipeline).cut(["orders"]))
    found = pipeline.read("orders")
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_a_tick_that_is_outrun_by_an_alteration_is_decided_anew(tmp_path: Path) -> None:
    """Between its catalog and its cut somebody alters the table, and appends what the catalog does not know."""
    with opened(str(tmp_path / "shop")) as pipeline, opened(str(tmp_path / "shop")) as other:
        orders: Any = pipeline.table("orders", OLD, key="id")
        orders.upsert(old_rows(1))
        driver = drive(pipeline)
        pipeline.tick()
        log = log_of(pipeline)
        cut, read, calls = log.cut, log.read, list[Any]()

        def late(*given: Any, **named: Any) -> Any:
            if not calls:
                calls.append(other.alter("orders", f"{OLD}, tax INT"))
                calls[0].upsert([{**old_rows(2)[0], "tax": 5}])
            return cut(*given, **named)

        def with_all_columns(*given: Any, columns: pa.Schema) -> Any:
            assert columns.names == ["_op", "id", "cents", "note", "tax"]
            return read(*given, columns=columns)

        log.cut, log.read = late, with_all_columns  # type: ignore[method-assign, assignment]
        assert driver.tick() is not None
        log.cut, log.read = cut, read  # type: ignore[method-assign]
        assert {row["id"]: row["tax"] for row in pipeline.read("orders").to_pylist()} == {1: None, 2: 5}


def test_a_tick_that_is_always_outrun_is_not_decided_anew_for_ever(tmp_path: Path) -> None:
    with opened(str(tmp_path / "shop")) as pipeline, opened(str(tmp_path / "shop")) as other:
        pipeline.table("orders", OLD, key="id").upsert(old_rows(1))
        driver = drive(pipeline)
        log, count = log_of(pipeline), 0
        cut = log.cut

        def late(*given: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            assert count < 100, "it goes on for ever"
            columns = ", ".join(f"c{number} INT" for number in range(count))
            table: Any = other.alter("orders", f"{OLD}, {columns}")
            table.upsert([dict.fromkeys(table.schema.names) | old_rows(2)[0]])
            return cut(*given, **named)

        log.cut = late  # type: ignore[method-assign]
        with pytest.raises(hw.DeclarationChanged, match="altered in this moment"):
            driver.tick()
        log.cut = cut  # type: ignore[method-assign]
        assert driver.tick() is not None
        _check(pipeline)
