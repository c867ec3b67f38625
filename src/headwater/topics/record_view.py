"""A topic's records as rows: the relation `<topic>__log`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.log import Records
from headwater.schema import Schema

OPERATIONS = ("append", "upsert", "delete")
"""What can be done to a topic; the log stores the place in this list."""

_NAMES = pa.array(OPERATIONS, pa.string())
_LEADING = (
    pa.field("_op", pa.string()),
    pa.field("_partition", pa.int32()),
    pa.field("_offset", pa.int64()),
    pa.field("_received_at", pa.timestamp("us", "UTC")),
)


def log_schema(schema: Schema) -> pa.Schema:
    """The columns of `<topic>__log`."""
    return pa.schema([*_LEADING, *(pa.field(field.name, field.type) for field in schema.arrow)])


def as_log_table(records: Records, schema: Schema) -> pa.Table:
    """Records as rows of `<topic>__log`."""
    count = records.batch.num_rows
    leading = [
        _NAMES.take(records.batch.column(0)),
        pa.array(np.full(count, records.partition, np.int32)),
        pa.array(np.arange(records.offset, records.offset + count, dtype=np.int64)),
        pa.array(np.full(count, records.received_at, np.int64)).cast(pa.timestamp("us", "UTC")),
    ]
    return pa.Table.from_arrays([*leading, *records.batch.columns[1:]], schema=log_schema(schema))
