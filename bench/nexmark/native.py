"""Spark's own Structured Streaming over the same files, for the queries that it can run, with state in RocksDB."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

from bench.nexmark.events import PART
from bench.nexmark.ours import MOST_ROWS
from bench.nexmark.streams import SIDE_INPUT, STREAMS, side_input
from bench.workspace import CannotMeasure, scratch
from headwater.spark.session.start import start

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_WATERMARK = "4 seconds"


def measure(sql: str, data: Path) -> float:
    """Seconds from the start of the query to its last commit, in steps of as many rows as ours takes at most."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # what it cannot run is in the table
    spark = start("native", master="local[2]")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    _declare(spark, data, MOST_ROWS // PART)
    refused = ""
    for mode in ("update", "append"):
        with scratch("native") as checkpoint:
            writer = spark.sql(sql).writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
            started = time.perf_counter()
            try:
                query = writer.option("checkpointLocation", str(checkpoint)).start()
                query.awaitTermination()
            except (AnalysisException, StreamingQueryException) as error:
                refused = str(error).splitlines()[0]
                continue
            return time.perf_counter() - started
    message = f"Structured Streaming cannot run it: {refused}"
    raise CannotMeasure(message)


def _declare(spark: SparkSession, data: Path, files: int) -> None:
    for name, schema in STREAMS.items():
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", files)
        rows = reader.parquet(str(data / name)).withWatermark("date_time", _WATERMARK)
        rows.createOrReplaceTempView(name)
    received = spark.table("bid").withColumnRenamed("date_time", "_received_at")
    received.createOrReplaceTempView("bid__log")
    spark.createDataFrame(side_input()).createOrReplaceTempView(SIDE_INPUT)
