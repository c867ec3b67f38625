"""What is used of a mapped batch is compared with its checksums first: only the blocks that it lies in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as arrow_types

from headwater.change import HASH
from headwater.change.gather import Indices
from headwater.state.checksums import Blocks

FEW = 16
"""If more stretches of a batch are used, all of it is compared: each touches a block of every column, or two."""


class CheckedBatch:
    """Compares what is to be used of one batch of a run. Safe for threads.

    `base` is where the bytes of the run are in
    memory. `is_whole` once all of it was compared.
    """

    def __init__(self, batch: pa.RecordBatch, blocks: Blocks, base: int) -> None:
        self._batch = batch
        self._blocks = blocks
        self._base = base
        self.is_whole = blocks.is_whole

    def all(self) -> None:
        """Compare all of it."""
        if not self.is_whole:
            for column in self._batch.columns:
                self._whole(column)
            self.is_whole = True

    def hashes(self, rows: Sequence[int] | Indices) -> None:
        """Compare the hashes of these rows, or all if they are many; rows that are not there do not count."""
        if self.is_whole:
            return
        column = self._batch.column(HASH)
        if len(rows) > 2 * FEW:
            self._whole(column)
            return
        for row in rows:
            if 0 <= row < self._batch.num_rows:
                self._part(column, int(row), int(row) + 1)

    def rows(self, rows: Indices, columns: Iterable[str] | None) -> None:
        """Compare what some rows, which ascend, have in some columns, or in all."""
        if self.is_whole or not len(rows):
            return
        ends = np.flatnonzero(np.diff(rows) > 1) + 1
        if len(ends) >= FEW:
            self.all()
            return
        for stretch in np.split(rows, ends):
            self.stretch(int(stretch[0]), int(stretch[-1]) + 1, columns)

    def stretch(self, start: int, end: int, columns: Iterable[str] | None) -> None:
        """Compare what the rows from `start` up to `end` have in some columns, or in all."""
        if self.is_whole:
            return
        for name in self._batch.schema.names if columns is None else columns:
            self._part(self._batch.column(name), start, end)

    def _whole(self, column: pa.Array) -> None:
        for buffer in column.buffers():
            self._check(buffer, 0, buffer.size if buffer is not None else 0)

    def _part(self, column: pa.Array, start: int, end: int) -> None:
        kind = column.type
        is_text = arrow_types.is_string(kind) or arrow_types.is_binary(kind)
        is_large = arrow_types.is_large_string(kind) or arrow_types.is_large_binary(kind)
        if is_text or is_large:
            self._texts(column, start, end, np.dtype(np.int64 if is_large else np.int32))
        elif arrow_types.is_primitive(kind) or arrow_types.is_decimal(kind):
            validity, values = column.buffers()
            self._check(validity, start >> 3, (end + 7) >> 3)
            self._check(values, start * kind.bit_width >> 3, (end * kind.bit_width + 7) >> 3)
        else:
            self._whole(column)

    def _texts(self, column: pa.Array, start: int, end: int, kind: np.dtype[np.signedinteger[Any]]) -> None:
        validity, offsets, data = column.buffers()
        last = len(column) * kind.itemsize  # Arrow looks at the first and the last to know how much there is
        self._check(validity, start >> 3, (end + 7) >> 3)
        self._check(offsets, 0, kind.itemsize)
        self._check(offsets, last, last + kind.itemsize)
        self._check(offsets, start * kind.itemsize, (end + 1) * kind.itemsize)
        places = np.frombuffer(offsets, kind)
        self._check(data, int(places[start]), int(places[end]))

    def _check(self, buffer: pa.Buffer | None, start: int, end: int) -> None:
        if buffer is not None and start < end:
            place = buffer.address - self._base
            self._blocks.check(place + start, place + end)
