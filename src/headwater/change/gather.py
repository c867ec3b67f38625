"""Picking rows out of tables of any size.

Arrow's own `take` joins all chunks of a column before it picks: slow if few rows are wanted, and impossible if the
column has more than 2 GiB of text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Indices = npt.NDArray[np.int64]

_FEW_PARTS = 64
_LARGE = 1 << 30
"""So many bytes of rows of usual size can be picked at once."""
CHUNK_BYTES = 128 << 20
"""About how large the chunks are that are made here."""


def gather(table: pa.Table, indices: Indices) -> pa.Table:
    """The rows at these positions, in this order; chunks of modest size."""
    size = table.nbytes
    is_whole = table.num_columns == 0 or all(column.num_chunks <= 1 for column in table.columns)
    if is_whole and len(indices) * size <= _LARGE * max(table.num_rows, 1):
        return table.take(pa.array(indices))
    if size <= CHUNK_BYTES and 4 * len(indices) >= table.num_rows:
        return table.take(pa.array(indices))
    batches = table.to_batches()
    step = rows_per_chunk(size, table.num_rows)
    parts = [_pick(batches, indices[start : start + step]) for start in range(0, len(indices), step)]
    return pa.concat_tables([part for pieces in parts for part in pieces] or [table.slice(0, 0)])


def in_parts(table: pa.Table) -> Iterator[pa.Table]:
    """The rows in order, in parts of modest size."""
    step = rows_per_chunk(table.nbytes, table.num_rows)
    for start in range(0, table.num_rows, step):
        yield table.slice(start, step)


def batches_of(table: pa.Table, most: int) -> list[pa.RecordBatch]:
    """The rows in batches of so many at most, and of modest size."""
    step = rows_per_chunk(table.nbytes, table.num_rows, most=most)
    made: list[pa.RecordBatch] = table.combine_chunks().to_batches(max_chunksize=step)
    return made


def order_of(hashes: Indices) -> Indices:
    """The positions in order of hash: parts that are in order already are brought together quickly."""
    parts = np.count_nonzero(hashes[1:] < hashes[:-1])
    order: Indices = np.argsort(hashes, kind="stable" if _FEW_PARTS * parts < len(hashes) else None)
    return order


def each_once(hashes: Indices) -> Indices:
    """The hashes in order, each once; `np.unique` takes fifty times as long if they are almost in order."""
    ordered = hashes[order_of(hashes)]
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def rows_per_chunk(size: int, rows: int, *, most: int = 1 << 20) -> int:
    """How many rows make about `CHUNK_BYTES`, if `rows` rows take `size` bytes; at least 1 and at most `most`."""
    return max(1, min(most, CHUNK_BYTES * rows // max(size, 1)))


def _pick(batches: Sequence[pa.RecordBatch], indices: Indices) -> list[pa.Table]:
    """The rows in order; in several tables if one cannot hold all their text."""
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    batch_of = np.searchsorted(starts, indices, side="right") - 1
    order = np.argsort(batch_of, kind="stable")
    picked = pa.Table.from_batches(_parts(batches, starts, batch_of[order], indices[order]), batches[0].schema)
    if bool(np.all(order[1:] > order[:-1])):
        return [picked]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    try:
        return [picked.take(pa.array(place))]
    except pa.ArrowInvalid:  # more text than the offsets of one chunk can count
        if len(indices) == 1:
            raise
        half = len(indices) // 2
        return [*_pick(batches, indices[:half]), *_pick(batches, indices[half:])]


def _parts(
    batches: Sequence[pa.RecordBatch], starts: Indices, batch_of: Indices, indices: Indices
) -> Iterator[pa.RecordBatch]:
    for number in np.unique(batch_of).tolist():
        first, last = np.searchsorted(batch_of, [number, number + 1])
        yield batches[number].take(pa.array(indices[first:last] - starts[number]))
