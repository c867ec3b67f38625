"""A topic's log as a DataFrame: the workers read the segments themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headwater.log import Cut, EmbeddedLog
from headwater.log.extent import Extent, read
from headwater.topics import Topic, TopicDeclaration
from headwater.topics.record_view import as_log_table

_BATCH_ROWS = 32_768
_ROW = "folder STRING, partition INT, segment BIGINT, start BIGINT, end BIGINT"


def replay(spark: SparkSession, topic: Topic, *, columns: Sequence[str] | None = None) -> DataFrame:
    """Every committed record of a topic up to now, with the columns of `<topic>__log` or those that are named.

    Only what is named crosses from the workers to the JVM, so name what you need.
    """
    log = topic.log
    if not isinstance(log, EmbeddedLog):
        raise TypeError("only the embedded log is replayed from its files")
    extents = log.extents(topic.name, after=Cut(), until=log.cut([topic.name]))
    schema = topic.log_schema()
    wanted = list(columns) if columns is not None else schema.names
    result = from_arrow_schema(pa.schema([schema.field(name) for name in wanted]))
    tasks = spark.createDataFrame(
        [(e.folder, e.partition, e.segment, e.start, e.end) for e in extents], schema=_ROW
    ).repartition(max(1, min(len(extents), spark.sparkContext.defaultParallelism)))
    return tasks.mapInArrow(_reader(topic.declaration, wanted), schema=result)


def _reader(
    declaration: TopicDeclaration, columns: Sequence[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    name, kind, spec = declaration.name, declaration.kind, declaration.as_dict()

    def read_extents(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = TopicDeclaration.from_dict(name, kind, spec).schema
        waiting: list[pa.Table] = []
        count = 0
        for batch in batches:
            for row in batch.to_pylist():
                for records in read(Extent(**row)):
                    waiting.append(as_log_table(records, schema, columns))
                    count += records.batch.num_rows
                    if count >= _BATCH_ROWS:
                        yield from pa.concat_tables(waiting).combine_chunks().to_batches()
                        waiting, count = [], 0
        if waiting:
            yield from pa.concat_tables(waiting).combine_chunks().to_batches()

    return read_extents
