"""A topic's log as a DataFrame has exactly the committed records."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.oracle.replay import replay

pytestmark = pytest.mark.spark


def test_a_replay_has_the_rows_of_a_tail(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_SEGMENT_BYTES", "6000")
    with hw.Pipeline("shop", tmp_path) as shop:
        orders = shop.table("orders", "id BIGINT, name STRING, tags ARRAY<STRING>", key="id", partitions=3)
        for number in range(30):
            orders.upsert([{"id": number + i, "name": None if i else "x", "tags": ["a", None]} for i in range(5)])
        orders.delete([3, 4])
        with pytest.raises(KeyError), shop.transaction() as tx:  # noqa: PT012
            tx.upsert(orders, [{"id": 999, "name": "never", "tags": []}])
            raise KeyError
        found = replay(spark, orders)
        assert found.columns == orders.log_schema().names
        got = sorted(
            (r["_partition"], r["_offset"], r["_op"], r["id"], r["name"], r["tags"]) for r in found.collect()
        )
        want = sorted(
            (r["_partition"], r["_offset"], r["_op"], r["id"], r["name"], r["tags"])
            for table in orders.tail()
            for r in table.to_pylist()
        )
        assert got == want
        assert len(got) == 152
        assert replay(spark, orders, columns=["id"]).columns == ["id"]


def test_a_replay_of_an_empty_topic_is_empty(spark: SparkSession, tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path) as shop:
        assert replay(spark, shop.stream("clicks", "n INT")).count() == 0
