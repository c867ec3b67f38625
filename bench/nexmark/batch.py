"""Spark's own batch answer from the same Parquet files: the limit that the engine underneath sets."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import SparkSession

from bench.nexmark.events import files
from bench.nexmark.streams import SIDE_INPUT, STREAMS, side_input
from bench.workspace import BATCH
from headwater.spark.session.start import start

_RUNS = 2


def measure(sql: str, data: Path) -> float:
    """Seconds of the better of two runs, the answer thrown away."""
    spark = start("batch", master="local[2]", settings=BATCH)
    declare(spark, data)
    took = []
    for _ in range(_RUNS):
        started = time.perf_counter()
        spark.sql(sql).write.format("noop").mode("overwrite").save()
        took.append(time.perf_counter() - started)
    return min(took)


def declare(spark: SparkSession, data: Path) -> None:
    """The streams as views over the files; the time of receipt is that of the event."""
    for name in STREAMS:
        spark.read.parquet(*map(str, files(data, name))).createOrReplaceTempView(name)
    spark.sql("SELECT *, date_time AS _received_at FROM bid").createOrReplaceTempView("bid__log")
    spark.createDataFrame(side_input()).createOrReplaceTempView(SIDE_INPUT)
