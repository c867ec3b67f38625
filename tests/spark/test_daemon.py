"""Spark's workers begin with what tasks need."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_workers_have_what_tasks_need_when_they_begin_and_collect_none_of_it(spark: SparkSession) -> None:
    def found(_: int) -> tuple[list[str], int]:
        return list(sys.modules), gc.get_freeze_count()

    for modules, frozen in spark.sparkContext.parallelize(range(2), 2).map(found).collect():
        assert {"pandas", "pyarrow.compute", "headwater.operators.accumulate"} <= set(modules)
        assert frozen > 10_000


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted as Linux shows them")
def test_what_is_imported_before_workers_are_forked_starts_no_thread_that_they_need(spark: SparkSession) -> None:
    (daemon,) = set(spark.sparkContext.parallelize(range(2), 2).map(lambda _: os.getppid()).collect())
    names = [name.read_text().strip() for name in Path(f"/proc/{daemon}/task").glob("*/comm")]
    assert len(names) - names.count("jemalloc_bg_thd") == 1
