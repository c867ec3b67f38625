"""A file of runs: what one tick, or one task of it, adds to the state."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pyarrow as pa
from xxhash import xxh3_64_intdigest

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import numbers
from headwater.change.gather import gather, order_of, rows_per_chunk
from headwater.files import disk_errors_told
from headwater.state.checksums import Summing
from headwater.state.files import NewFile, StateFiles
from headwater.state.packed import Packing
from headwater.state.run import HIGHEST, LOWEST, Run

MAGIC = b"HWR2"
TRAILER = struct.Struct("<QI4s")
"""Behind the directory: its checksum and length, and the magic."""
LISTED = ("offset", "length", "rows", "checksum")
"""What the directory says of each run."""
ALIGNMENT = 64
_MOST_ROWS = 1 << 22
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


class RunFile:
    """Writes one file of runs, one behind the other; `docs/formats.md` has the bytes.

    The file comes to be with the first run. A run can be read, by any process of this machine, as soon as `add` has
    returned; it is lasting once `finish` has returned and `files` were synced, which is left to the caller. With
    `packs`, columns take few bytes, which is worth it for what is kept. For `steadily` see `StateFiles.create`. For
    one thread at a time.
    """

    def __init__(self, files: StateFiles, name: str, *, packs: bool = True, steadily: bool = False) -> None:
        self.name = name
        self._packs = packs
        self._steadily = steadily
        self._files = files
        self._file: NewFile | None = None
        self._end = 0
        self._finished = False
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
        file, sized, summing = self._open(), _Sized(tables), Summing()
        start = self._end
        try:
            rows = self._write_rows(_batches(_packed(sized) if self._packs else sized), summing)
        except BaseException:  # nothing is left of it, so that other runs may follow
            self._end = start
            with suppress(OSError):
                file.truncate(start)
            raise
        length, table = self._end - start, summing.table()
        self._write([table, bytes(-(self._end + len(table)) % ALIGNMENT)])
        checksum = xxh3_64_intdigest(table)
        run = Run(self.name, start, length, rows, sized.bytes, low, high, checksum=checksum, weight=sized.weight)
        self._runs.append(run)
        return run

    def _write_rows(self, batches: Iterable[pa.RecordBatch], summing: Summing) -> int:
        """Write the streams of a run, which are summed up; how many rows they have."""
        rows, schema = 0, None

        def write(*buffers: bytes | pa.Buffer) -> None:
            for buffer in buffers:
                summing.add(memoryview(buffer))
            self._write(buffers)

        for batch in batches:
            if batch.schema != schema:  # the first, or one that has wider columns
                write(*([_END_OF_STREAM] if schema else []), batch.schema.serialize())
                schema = batch.schema
            rows += batch.num_rows
            write(batch.serialize())
        write(_END_OF_STREAM)
        return rows

    @disk_errors_told()
    def finish(self) -> None:
        """Write the directory and return when the file is on disk; nothing if no run was added."""
        self._finished = True
        if self._file is None:
            return
        runs = [{name: getattr(run, name) for name in LISTED} for run in self._runs]
        directory = json.dumps({"runs": runs}).encode()
        self._write([directory, TRAILER.pack(xxh3_64_intdigest(directory), len(directory), MAGIC)])
        self._file.finish()
        self._file = None

    def abandon(self) -> None:
        """Remove the file, if there is one; there will be none."""
        self._finished = True
        if self._runs or self._file is not None:
            self.close()
            self._files.remove(self.name)

    def _open(self) -> NewFile:
        if self._finished:
            msg = "nothing is added to a file that is finished"
            raise ValueError(msg)
        if self._file is None:
            self._file = self._files.create(self.name, steadily=self._steadily)
        return self._file

    def close(self) -> None:
        """Give the file back without making it lasting; done again, it does nothing."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _write(self, buffers: Sequence[bytes | pa.Buffer]) -> None:
        assert self._file is not None
        self._file.write([memoryview(buffer) for buffer in buffers])
        self._end += sum(len(buffer) for buffer in buffers)


class _Sized:
    """Tables; how many bytes those had that were taken, and what their weights come to, if they have some."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self.bytes = 0
        self.weight: int | None = 0
        self._tables = tables

    def __iter__(self) -> Iterator[pa.Table]:
        for table in self._tables:
            self.bytes += table.nbytes
            if self.weight is not None:
                has_weights = WEIGHT in table.schema.names
                self.weight = self.weight + int(numbers(table, WEIGHT).sum()) if has_weights else None
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
