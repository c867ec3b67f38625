"""A file of runs: what one tick, or one task of it, adds to the state."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from headwater.change import HASH
from headwater.files import Files, disk_errors_told
from headwater.state.consolidate import numbers
from headwater.state.gather import gather, order_of, rows_per_chunk
from headwater.state.run import HIGHEST, LOWEST, Run

MAGIC = b"HWR1"
ALIGNMENT = 64
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


class RunFile:
    """Writes one file of runs, one behind the other; `docs/formats.md` has the bytes.

    The file comes to be with the first run. A run can be read, by any process of this machine, as soon as `add` has
    returned; it is lasting once `finish` has returned and the folder was synced, which is left to the caller. For
    one thread at a time.
    """

    def __init__(self, files: Files, folder: str, name: str) -> None:
        self.name = name
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
        start, rows = self._open(), 0
        for table in tables:
            if self._end == start:
                self._write([table.schema.serialize()])
            for batch in _batches(table):
                rows += batch.num_rows
                self._write([batch.serialize()])
        self._write([_END_OF_STREAM])
        length = self._end - start
        self._write([bytes(-self._end % ALIGNMENT)])
        run = Run(self.name, start, length, rows, length, low, high)
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


def _batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows in batches that are neither large nor many."""
    step = rows_per_chunk(table.nbytes, table.num_rows)
    for start in range(0, table.num_rows, step):
        yield from table.slice(start, step).combine_chunks().to_batches()
