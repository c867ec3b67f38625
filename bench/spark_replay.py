"""A whole topic replayed into a Spark aggregate: ours against Spark's own Kafka source, in the same session.

The question is the same for both: rows and the sum of `id` by `key` (1,000 of them). Kafka's values hold the row
as text, and parsing it is part of reading it; so that nobody has to argue about the format, JSON (`from_json`) and
CSV (`split`) are both measured, the better one has the bar, and the bare count of values, which parses nothing, is
there to compare. Ours has typed columns and is asked for the two that the question needs, as any columnar source
would be; what it does when all seven cross is shown too. The topic has one partition; `minPartitions` lets the
Kafka source read it with both cores all the same. Every answer is checked.
"""

import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import confluent_kafka
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bench import rows
from bench.headwater_producers import open_pipeline
from bench.kafka import Kafka
from bench.maven import Artifact, jars
from bench.progress import say
from bench.table import Line
from bench.workspace import CannotMeasure, scratch

BAR = 3.0
_CORES = 2

_ARTIFACTS = (
    Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0", alone=True),
    Artifact("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0", alone=True),
    Artifact("org.apache.kafka", "kafka-clients", "3.9.1", alone=True),
    Artifact("org.apache.commons", "commons-pool2", "2.12.0", alone=True),
)

Query = Callable[[], None]


def compare(kafka: Kafka | None, rounds: int, count: int) -> list[Line]:
    """Replay *count* rows (a multiple of 1,000) in interleaved rounds."""
    with scratch("replay") as path, ExitStack() as closing, _session(kafka is not None) as spark:
        queries: dict[str, Query] = {}
        try:
            queries.update(_ours(spark, closing, path, count))
        except CannotMeasure as reason:
            say(f"ours is left out: {reason}")
        if kafka is not None:
            queries.update(_theirs(spark, kafka, count))
        rates: dict[str, list[float]] = {name: [] for name in queries}
        for number in range(rounds + 1):
            say("replay: " + (f"round {number} of {rounds}" if number else "a round to warm up"))
            for name, query in queries.items():
                started = time.monotonic()
                query()
                if number:
                    rates[name].append(count / (time.monotonic() - started))
    return _lines(rates, count)


def _lines(rates: dict[str, list[float]], count: int) -> list[Line]:
    named, all_columns = rates.get("ours named", []), rates.get("ours", [])
    what = f"replay of {count / 1e6:g} M rows into an aggregate"
    parsed = [name for name in ("json", "csv") if name in rates]
    if not parsed:
        return [Line(what, named, [], BAR)]
    best = max(parsed, key=lambda name: median(rates[name]))
    lines = [
        Line(what, named, rates[name], BAR if name == best else None, note=f"Kafka source, {name} parsed")
        for name in sorted(parsed, key=lambda name: name != best)
    ]
    lines.append(
        Line("the same, ours with all columns", all_columns, rates[best], note=f"Kafka source, {best} parsed")
    )
    counted = rates.get("ours counted", [])
    lines.append(Line("the same, only counted", counted, rates["raw"], note="Kafka source, nothing parsed"))
    return lines


@contextmanager
def _session(with_kafka: bool) -> Iterator[SparkSession]:
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": str(_CORES)}
    if with_kafka:
        directory = jars("spark-kafka", _ARTIFACTS)
        settings["spark.jars"] = ",".join(str(jar) for jar in sorted(directory.glob("*.jar")))
    say("starting Spark")
    start = importlib.import_module("headwater.spark.session.start").start
    spark: SparkSession = start("bench", master=f"local[{_CORES}]", settings=settings)
    try:
        yield spark
    finally:
        spark.stop()


def _ours(spark: SparkSession, closing: ExitStack, path: Path, count: int) -> dict[str, Query]:
    try:
        replay: Callable[..., DataFrame] = importlib.import_module("headwater.oracle.replay").replay
    except ModuleNotFoundError as missing:
        message = f"headwater.oracle.replay does not exist yet ({missing})"
        raise CannotMeasure(message) from missing
    pipeline = closing.enter_context(open_pipeline(path))
    stream = pipeline.stream("rows", rows.SCHEMA, durability="none")
    say(f"filling our topic with {count:,} rows")
    for first in range(0, count, rows.ROWS_PER_BATCH):
        stream.append(rows.record_batch(first))
    total = count * (count - 1) // 2
    return {
        "ours": lambda: _aggregate(replay(spark, stream), count, total),
        "ours named": lambda: _aggregate(replay(spark, stream, columns=["id", "key"]), count, total),
        "ours counted": lambda: _count(replay(spark, stream), count),
    }


def _theirs(spark: SparkSession, kafka: Kafka, count: int) -> dict[str, Query]:
    for topic, values in (("json", rows.json_values), ("csv", rows.csv_values)):
        say(f"filling Kafka's {topic} topic with {count:,} rows")
        _fill(kafka, topic, values, count)
    total = count * (count - 1) // 2
    shift = 10_000_000 * count

    def source(topic: str) -> DataFrame:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.address)
        reader = reader.option("subscribe", topic).option("minPartitions", _CORES)
        return reader.option("kafka.max.partition.fetch.bytes", 16 << 20).load()

    def json() -> DataFrame:
        row = F.from_json(F.col("value").cast("string"), rows.SCHEMA)
        return source("json").select(row.alias("row")).select("row.*")

    def csv() -> DataFrame:
        fields = F.split(F.col("value").cast("string"), ",")
        return source("csv").select(fields[0].cast("bigint").alias("id"), fields[1].alias("key"))

    return {
        "json": lambda: _aggregate(json(), count, total + shift),
        "csv": lambda: _aggregate(csv(), count, total),
        "raw": lambda: _count(source("csv"), count),
    }


def _fill(kafka: Kafka, topic: str, values: Callable[[int], list[bytes]], count: int) -> None:
    kafka.create(topic, flush_every_message=False)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": kafka.address,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "batch.num.messages": 1_000_000,
        }
    )
    for first in range(0, count, rows.ROWS_PER_BATCH):
        for value in values(first):
            while True:
                try:
                    producer.produce(topic, value, partition=0)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    producer.flush(60)
    if kafka.count(topic) != count:
        message = f"{topic} holds {kafka.count(topic)} records instead of {count}"
        raise RuntimeError(message)


def _aggregate(frame: DataFrame, count: int, total: int) -> None:
    answer = frame.groupBy("key").agg(F.count("*").alias("rows"), F.sum("id").alias("total")).collect()
    found = (len(answer), sum(row["rows"] for row in answer), sum(row["total"] for row in answer))
    if found != (min(count, rows.KEYS), count, total):
        message = f"the aggregate is wrong: {found}"
        raise RuntimeError(message)


def _count(frame: DataFrame, count: int) -> None:
    found = frame.count()
    if found != count:
        message = f"{found} rows were counted instead of {count}"
        raise RuntimeError(message)
