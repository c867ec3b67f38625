"""A file of runs: what one tick, or one task of it, adds to the state."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from headwater.change import HASH
from headwater.files import Files, disk_errors_told
from headwater.state.consolidate import numbers
from headwater.state.gather import gather, order_of, rows_per_chunk
from headwater.state.packed import Packing
from headwater.state.run import HIGHEST, LOWEST, Run

MAGIC = b"HWR1"
ALIGNMENT = 64
_MOST_ROWS = 1 << 22
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


class RunFile:
    """Writes one file of runs, one behind the other; `docs/formats.md` has the bytes.

    The file comes to be with the first run. A run can be read, by any process of this machine, as soon as `add` has
    returned; it is lasting once `finish` has returned and the folder was synced, which is left to the caller. With
    `packs`, columns take few bytes, which is worth it for what is kept. For one thread at a time.
    """

    def __init__(self, files: Files, folder: str, name: str, *, packs: bool = True) -> None:
        self.name = name
        self._packs = packs
        self.path = os.path.join(folder, name)
        self._files = files
        self._handle = -1
        self._end = 0
        self._runs: list[Run] = []

    def add(self, table: pa.Table, *, low: int = LOWEST, high: int = HIGHEST) -> Run:
        """Write a consolidated table, not empty, as a run; it is sorted by `_hash` here if it is not yet.

        `low` and `high` are the range of hashes that the run speaks for, if not for all: runs that lie side by side
        count as one when runs are merged.
        """
        hashes = numbers(table, HASH)
        if not len(hashes) or hashes.min() < low or hashes.max() > high:
            msg = f"a run has at least one row, and hashes from {low} to {high} only"
            raise ValueError(msg)
        if bool(np.any(hashes[1:] < hashes[:-1])):
            table = gather(table, order_of(hashes))
        return self.add_sorted([table], low=low, high=high)

    @disk_errors_told()
    def add_sorted(self, tables: Iterable[pa.Table], *, low: int = LOWEST, high: int = HIGHEST) -> Run:
        """Write one run of tables, not all empty, that are consolidated and sorted by `_hash` over all of them."""
        start, rows, schema = self._open(), 0, None
        sized = _Sized(tables)
        for batch in _batches(_packed(sized) if self._packs else sized):
            if batch.schema != schema:  # the first, or one that has wider columns
                self._write([_END_OF_STREAM] if schema else [])
                schema = batch.schema
                self._write([schema.serialize()])
            rows += batch.num_rows
            self._write([batch.serialize()])
        self._write([_END_OF_STREAM])
        length = self._end - start
        self._write([bytes(-self._end % ALIGNMENT)])
        run = Run(self.name, start, length, rows, sized.bytes, low, high)
        self._runs.append(run)
        return run

    @disk_errors_told()
    def finish(self) -> None:
        """Write the directory and return when the file is on disk; nothing if no run was added."""
        if self._handle < 0:
            return
        runs = [{"offset": run.offset, "length": run.length, "rows": run.rows} for run in self._runs]
        directory = json.dumps({"runs": runs}).encode()
        self._write([directory, len(directory).to_bytes(4, "little"), MAGIC])
        self._files.sync(self._handle)
        self.close()

    def abandon(self) -> None:
        """Remove the file, if there is one."""
        if self._runs or self._handle >= 0:
            self.close()
            self._files.remove(self.path)

    def _open(self) -> int:
        if self._handle < 0:
            self._files.make_folder(os.path.dirname(self.path))
            self._files.remove(self.path)  # of whoever had this name before, who may still be read
            self._handle = self._files.open(self.path, create=True)
        return self._end

    def close(self) -> None:
        """Give the file back without making it lasting; done again, it does nothing."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            self._files.close(handle)

    def _write(self, buffers: list[bytes | pa.Buffer]) -> None:
        self._files.write(self._handle, [memoryview(buffer) for buffer in buffers], self._end)
        self._end += sum(len(buffer) for buffer in buffers)


class _Sized:
    """Tables, and how many bytes those had that were taken."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self.bytes = 0
        self._tables = tables

    def __iter__(self) -> Iterator[pa.Table]:
        for table in self._tables:
            self.bytes += table.nbytes
            yield table


def _packed(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    packing = None
    for table in tables:
        packing = packing or Packing(table.schema)
        yield packing.pack(table)


def _batches(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """The rows in batches that are neither large nor many: a lookup goes through each of them."""
    waiting: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        more, larger = rows + table.num_rows, size + table.nbytes
        if waiting and (table.schema != waiting[0].schema or more > _step(larger, more)):
            yield from _cut(waiting, _step(size, rows))
            waiting, more, larger = [], table.num_rows, table.nbytes
        waiting.append(table)
        rows, size = more, larger
    yield from _cut(waiting, _step(size, rows))


def _step(size: int, rows: int) -> int:
    return rows_per_chunk(size, rows, most=_MOST_ROWS)


def _cut(tables: list[pa.Table], step: int) -> Iterator[pa.RecordBatch]:
    """So many rows at a time, or somewhat fewer, so that no batch is a small rest."""
    table = pa.concat_tables(tables)
    parts = -(-table.num_rows // step)
    for start, end in pairwise(table.num_rows * part // parts for part in range(parts + 1)):
        yield from table.slice(start, end - start).combine_chunks().to_batches()
