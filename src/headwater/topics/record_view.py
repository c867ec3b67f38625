"""A topic's records as rows: the relation `<topic>__log`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from headwater.log import Records
from headwater.schema import Schema

OPERATIONS = ("append", "upsert", "delete")
"""What can be done to a topic; the log stores the place in this list."""

_LEADING = (
    pa.field("_op", pa.string()),
    pa.field("_partition", pa.int32()),
    pa.field("_offset", pa.int64()),
    pa.field("_received_at", pa.timestamp("us", "UTC")),
)


def log_schema(schema: Schema) -> pa.Schema:
    """The columns of `<topic>__log`."""
    return pa.schema([*_LEADING, *(pa.field(field.name, field.type) for field in schema.arrow)])


def as_log_table(records: Records, schema: Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """Records as rows of `<topic>__log`; only the named columns, if any are."""
    whole = log_schema(schema)
    names = whole.names if columns is None else columns
    make = {"_op": _operation, "_partition": _partition, "_offset": _offset, "_received_at": _received_at}
    arrays = [make[name](records) if name in make else records.batch.column(name) for name in names]
    return pa.Table.from_arrays(arrays, schema=pa.schema([whole.field(name) for name in names]))


def _operation(records: Records) -> pa.Array:
    return _names().take(records.batch.column(0))


@cache
def _names() -> pa.Array:
    """Made when it is first needed: pyarrow brings in pandas with its first array."""
    return pa.array(OPERATIONS, pa.string())


def _partition(records: Records) -> pa.Array:
    return pa.array(np.full(records.batch.num_rows, records.partition, np.int32))


def _offset(records: Records) -> pa.Array:
    return pa.array(np.arange(records.offset, records.end, dtype=np.int64))


def _received_at(records: Records) -> pa.Array:
    return pa.array(np.full(records.batch.num_rows, records.received_at, np.int64)).cast(pa.timestamp("us", "UTC"))
