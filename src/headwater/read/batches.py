"""Batches: rows in tables of bounded size, however many come at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from headwater.change import WEIGHT
from headwater.log import Records

TICK = "_tick"
BATCH_ROWS = 1 << 17
BATCH_BYTES = 32 << 20
"""No table that `changes` gives has more rows or bytes, unless a single row does."""


def rows_of_a_batch(rows: int, size: int) -> int:
    """How many rows make a batch, where so many take so many bytes."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES * rows // max(size, 1)))


def bounded(table: pa.Table) -> Iterator[pa.Table]:
    """The table, or the halves of it, in order; without a copy."""
    if table.num_rows <= 1 or (table.num_rows <= BATCH_ROWS and table.nbytes <= BATCH_BYTES):
        yield table
        return
    half = table.num_rows // 2
    yield from bounded(table.slice(0, half))
    yield from bounded(table.slice(half))


def grouped(several: Iterable[Records]) -> Iterator[list[Records]]:
    """Runs of records, as many together as make a batch; a run alone may be more than one."""
    group: list[Records] = []
    rows = size = 0
    for records in several:
        more = records.batch.nbytes
        if group and (rows + records.batch.num_rows > BATCH_ROWS or size + more > BATCH_BYTES):
            yield group
            group, rows, size = [], 0, 0
        group.append(records)
        rows += records.batch.num_rows
        size += more
    if group:
        yield group


def tagged(weighted: pa.Table, number: int) -> pa.Table:
    """The rows behind the tick and their weights."""
    ticks = pa.array(np.full(weighted.num_rows, number, np.int64))
    weights = weighted.column(WEIGHT)
    rows = weighted.drop_columns([WEIGHT])
    schema = pa.schema(
        [pa.field(TICK, pa.int64(), nullable=False), pa.field(WEIGHT, pa.int64(), nullable=False), *rows.schema]
    )
    return pa.Table.from_arrays([ticks, weights, *rows.columns], schema=schema)
