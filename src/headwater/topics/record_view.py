"""A topic's records as rows: the relation `<topic>__log`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from headwater.log import Records
from headwater.schema import Column, Schema
from headwater.schema.types import Integer, Long, String, Timestamp

OPERATIONS = ("append", "upsert", "delete")
"""What can be done to a topic; the log stores the place in this list."""

LOG_COLUMNS = (
    Column("_op", String()),
    Column("_partition", Integer()),
    Column("_offset", Long()),
    Column("_received_at", Timestamp()),
)
"""What `<topic>__log` has before the topic's own columns."""


def log_schema(schema: Schema) -> pa.Schema:
    """The columns of `<topic>__log`."""
    own = (pa.field(field.name, field.type) for field in schema.arrow)
    return pa.schema([*(column.arrow for column in LOG_COLUMNS), *own])


def as_log_table(records: Records, schema: Schema) -> pa.Table:
    """Records as rows of `<topic>__log`."""
    return as_log_rows([records], log_schema(schema))


def as_log_rows(several: Sequence[Records], schema: pa.Schema) -> pa.Table:
    """Several runs of records as rows of `<topic>__log`; the schema names the columns that are wanted."""
    counts = [records.batch.num_rows for records in several]
    arrays = [
        _MADE[name](several, counts) if name in _MADE else pa.chunked_array([r.batch.column(name) for r in several])
        for name in schema.names
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _operation(several: Sequence[Records], counts: list[int]) -> pa.ChunkedArray:
    return _names().take(pa.chunked_array([records.batch.column(0) for records in several]))


def _partition(several: Sequence[Records], counts: list[int]) -> pa.Array:
    return pa.array(np.repeat(np.array([records.partition for records in several], np.int32), counts))


def _offset(several: Sequence[Records], counts: list[int]) -> pa.Array:
    return pa.array(np.concatenate([np.arange(r.offset, r.end, dtype=np.int64) for r in several]))


def _received_at(several: Sequence[Records], counts: list[int]) -> pa.Array:
    times = np.repeat(np.array([records.received_at for records in several], np.int64), counts)
    return pa.array(times).cast(pa.timestamp("us", "UTC"))


_MADE = {"_op": _operation, "_partition": _partition, "_offset": _offset, "_received_at": _received_at}


@cache
def _names() -> pa.Array:
    """Made when it is first needed: pyarrow brings in pandas with its first array."""
    return pa.array(OPERATIONS, pa.string())
