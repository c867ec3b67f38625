"""A topic's log as a DataFrame: the workers read slices of it themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headwater.log import Cut, LogSlice, Records
from headwater.topics import Topic
from headwater.topics.record_view import as_log_rows

_BATCH_ROWS = 32_768


def replay(spark: SparkSession, topic: Topic, *, columns: Sequence[str] | None = None) -> DataFrame:
    """Every committed record of a topic up to now, with the columns of `<topic>__log` or those that are named.

    Only what is named crosses from the workers to the JVM, so name what you need.
    """
    log = topic.log
    until = log.cut([topic.name])
    slices = log.slices(topic.name, after=Cut(), until=until, columns=topic.declaration.stored_schema)
    whole = topic.log_schema()
    schema = whole if columns is None else pa.schema([whole.field(name) for name in columns])
    tasks = max(1, min(len(slices), spark.sparkContext.defaultParallelism))
    shares = [slices[start::tasks] for start in range(tasks)]
    numbers = spark.range(0, tasks, 1, tasks)
    return numbers.mapInArrow(_reader(shares, schema), schema=from_arrow_schema(schema))


def _reader(
    shares: Sequence[Sequence[LogSlice]], schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a worker does with the numbers of its shares."""

    def read_shares(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine = [number for batch in numbers for number in batch.column(0).to_pylist()]
        waiting: list[Records] = []
        count = 0
        for records in (records for number in mine for each in shares[number] for records in each.read()):
            waiting.append(records)
            count += records.batch.num_rows
            if count >= _BATCH_ROWS:
                yield from as_log_rows(waiting, schema).combine_chunks().to_batches()
                waiting, count = [], 0
        if waiting:
            yield from as_log_rows(waiting, schema).combine_chunks().to_batches()

    return read_shares
