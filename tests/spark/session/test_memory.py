from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def heap_used(spark: SparkSession) -> int:
    """Bytes that objects take in Java which somebody still needs."""
    assert spark.sparkContext._jvm is not None
    runtime = spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    return int(runtime.totalMemory()) - int(runtime.freeMemory())


def test_few_rows_that_every_task_gets_take_little_memory(spark: SparkSession) -> None:
    before = heap_used(spark)
    joined = [spark.range(1000).join(spark.range(10).hint("broadcast"), "id") for _ in range(3)]
    assert [each.count() for each in joined] == [10, 10, 10]
    assert heap_used(spark) - before < 64 << 20
