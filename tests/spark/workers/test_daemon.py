"""Spark's workers begin with what tasks need."""

from __future__ import annotations

import gc
import io
import os
import struct
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.spark.workers.daemon import tell


@pytest.mark.spark
def test_workers_have_what_tasks_need_when_they_begin_and_collect_none_of_it(spark: SparkSession) -> None:
    def found(_: int) -> tuple[list[str], int]:
        return list(sys.modules), gc.get_freeze_count()

    for modules, frozen in spark.sparkContext.parallelize(range(2), 2).map(found).collect():
        assert {"pandas", "pyarrow.compute", "headwater.operators.accumulate"} <= set(modules)
        assert frozen > 10_000


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted as Linux shows them")
def test_what_is_imported_before_workers_are_forked_starts_no_thread_that_they_need(spark: SparkSession) -> None:
    (daemon,) = set(spark.sparkContext.parallelize(range(2), 2).map(lambda _: os.getppid()).collect())
    names = [name.read_text().strip() for name in Path(f"/proc/{daemon}/task").glob("*/comm")]
    assert len(names) - names.count("jemalloc_bg_thd") == 1


@pytest.mark.parametrize("said", ["no text \udc80", "z" * 30_000_000, ""], ids=["no UTF-8", "long", "empty"])
def test_what_a_function_raises_is_told_as_text_of_some_length(said: str) -> None:
    out = io.BytesIO()
    try:
        raise ValueError(said)
    except ValueError as error:
        tell(error, out)
    kind, length = struct.unpack("!ii", out.getvalue()[:8])
    told = out.getvalue()[8:].decode()
    assert (kind, length) == (-2, len(out.getvalue()) - 8)
    assert length < 20_000
    assert told.startswith("Traceback (most recent call last):\n")
    assert "ValueError" in told.splitlines()[-1]
    assert said.isascii() or "no text \\udc80" in told
