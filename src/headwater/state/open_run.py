"""Runs that are open for reading, and a cache of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.change import HASH
from headwater.change.columns import altered, conformed
from headwater.change.gather import Indices
from headwater.files import disk_errors_told
from headwater.lock import forget_in_child
from headwater.state.checked import CheckedBatch
from headwater.state.checksums import Blocks, table_length
from headwater.state.damage import damaged
from headwater.state.files import StateFiles
from headwater.state.hashes import Hashes
from headwater.state.packed import unpacked, unpacked_schema
from headwater.state.run import Run

_HEAD = 8
"""A message begins with FF FF FF FF and the length of what says what it is."""
_CACHED = 8192
"""More than a tick reads, or each would open all of them anew. A fill leaves hundreds for an operator."""
_LOOK_EVERY = 32
_LOOKED_AT = 8
"""So many files are looked at for each that is opened, if many are open."""


class OpenRun:
    """The rows of a run, of which only what is touched is read. They never change; safe for threads.

    What is read is compared with its checksum first; all methods raise StateDamaged if it is not what was written.

    `schema` has the columns as they were given to be written, however they are packed.
    A file that is removed stays readable here. Positions count the rows of the run from 0, whatever range of hashes
    counts.
    """

    def __init__(self, stream: pa.Buffer, blocks: Blocks) -> None:
        _check_heads(stream, blocks)
        file = pa.BufferReader(stream)
        self._batches: list[pa.RecordBatch] = []
        schemas: list[pa.Schema] = []
        while file.tell() < stream.size:
            reader = pa.ipc.open_stream(file)
            schemas.append(unpacked_schema(reader.schema))
            self._batches += [batch for batch in reader if batch.num_rows]
        if not schemas or any(each != schemas[0] for each in schemas):
            msg = "its streams are none, or have other columns"
            raise ValueError(msg)
        self.schema = schemas[0]
        self.altered = altered(self.schema)
        self._checked = [CheckedBatch(batch, blocks, stream.address) for batch in self._batches]
        for checked, batch in zip(self._checked, self._batches, strict=True):
            checked.hashes((0, batch.num_rows - 1))
        self._hashes = [
            Hashes(batch.column(HASH).to_numpy(), None if checked.is_whole else checked)
            for batch, checked in zip(self._batches, self._checked, strict=True)
        ]
        self._firsts = np.array([hashes.all[0] for hashes in self._hashes], dtype=np.int64)
        self._lasts = np.array([hashes.all[-1] for hashes in self._hashes], dtype=np.int64)
        self._starts = np.cumsum([0, *map(len, self._hashes)])

    def below(self, hash_: int) -> int:
        """How many rows have a smaller hash."""
        number = int(np.searchsorted(self._lasts, hash_))
        if number == len(self._hashes):
            return int(self._starts[-1])
        return int(self._starts[number] + self._hashes[number].rank(hash_))

    def upto(self, hash_: int) -> int:
        """How many rows have this hash or a smaller one."""
        number = int(np.searchsorted(self._lasts, hash_, side="right"))
        if number == len(self._hashes):
            return int(self._starts[-1])
        return int(self._starts[number] + self._hashes[number].rank(hash_, upto=True))

    def slice(self, start: int, end: int, columns: list[str] | None = None) -> pa.Table:
        """The rows at these positions, in all columns or some; what is not packed without a copy."""
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        last = int(np.searchsorted(self._starts, end))
        bounds = zip(self._batches[first:last], self._starts[first:last].tolist(), strict=True)
        parts = [batch.slice(max(0, start - begin), end - max(start, begin)) for batch, begin in bounds]
        for number, part in enumerate(parts, first):
            at = max(0, start - int(self._starts[number]))
            self._checked[number].stretch(at, at + part.num_rows, columns)
        if columns is None:
            return unpacked(parts, self.schema)
        return unpacked([part.select(columns) for part in parts], pa.schema(map(self.schema.field, columns)))

    def searches(self, wanted: Indices) -> list[Search]:
        """The batches that may have some of these hashes, which ascend without repeating."""
        begins = np.searchsorted(wanted, self._firsts)
        ends = np.searchsorted(wanted, self._lasts, side="right")
        bounds = zip(self._batches, self._hashes, self._checked, begins.tolist(), ends.tolist(), strict=True)
        return [Search(batch, hashes, checked, wanted[i:j]) for batch, hashes, checked, i, j in bounds if i < j]

    def stretches(self, lows: Indices, highs: Indices) -> list[Stretches]:
        """The batches that may have hashes in some of these ranges, which ascend and are apart."""
        begins = np.searchsorted(highs, self._firsts)
        ends = np.searchsorted(lows, self._lasts, side="right")
        bounds = zip(self._batches, self._hashes, self._checked, begins.tolist(), ends.tolist(), strict=True)
        return [
            Stretches(batch, hashes, checked, lows[i:j], highs[i:j])
            for batch, hashes, checked, i, j in bounds
            if i < j
        ]


class Search(NamedTuple):
    """Hashes that are looked for in one batch of a run."""

    batch: pa.RecordBatch
    hashes: Hashes
    checked: CheckedBatch
    wanted: Indices

    def find(self, columns: list[str] | None = None) -> pa.RecordBatch:
        """The rows with these hashes, in all columns or some, packed as they are."""
        batch = self.batch if columns is None else self.batch.select(columns)
        rows = self.hashes.positions(self.wanted)
        self.checked.rows(rows, columns)
        return batch.take(pa.array(rows)) if len(rows) else batch.slice(0, 0)

    def matches(self) -> int:
        """How many rows have these hashes."""
        return len(self.hashes.positions(self.wanted))


class Stretches(NamedTuple):
    """Ranges of hashes that are looked for in one batch of a run."""

    batch: pa.RecordBatch
    hashes: Hashes
    checked: CheckedBatch
    lows: Indices
    highs: Indices

    def find(self, columns: list[str] | None = None) -> pa.RecordBatch:
        """The rows with hashes in these ranges, in all columns or some, packed as they are."""
        batch = self.batch if columns is None else self.batch.select(columns)
        rows = self.hashes.within(self.lows, self.highs)
        self.checked.rows(rows, columns)
        return batch.take(pa.array(rows)) if len(rows) else batch.slice(0, 0)


def _check_heads(stream: pa.Buffer, blocks: Blocks) -> None:
    """Check all that says where the rows are: the messages of the streams without their bodies."""
    if blocks.is_whole:
        return
    file, data = pa.BufferReader(stream), memoryview(stream)
    while (at := file.tell()) < stream.size:
        blocks.check(at, at + _HEAD)
        length = int.from_bytes(data[at + 4 : at + _HEAD], "little")
        blocks.check(at, at + _HEAD + length)
        if length:
            pa.ipc.read_message(file)
        else:  # the end of a stream
            file.seek(at + _HEAD)


class _Cache:
    """The runs opened last.

    A removed file keeps its space while it is open, so now and then, as runs are opened, those whose file is gone
    are let go.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened = 0
        self._runs: OrderedDict[tuple[Any, ...], OpenRun] = OrderedDict()
        forget_in_child(self)

    def after_fork(self) -> None:
        """A thread that the child does not have may hold the lock."""
        self._lock = threading.Lock()

    def get(self, files: StateFiles, run: Run) -> OpenRun:
        identity = files.identity(run.file)  # another file may have come to have the same name
        key = (files, run.file, identity, run.offset, run.length, run.checksum)
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
                return self._runs[key]
        opened = _opened(files, run)
        with self._lock:
            self._runs[key] = opened
            self._shrink()
        return opened

    def _shrink(self) -> None:
        if len(self._runs) > _CACHED:
            self._runs.popitem(last=False)
        self._opened += 1
        if self._opened >= max(_LOOK_EVERY, len(self._runs) // _LOOKED_AT):
            self._opened = 0
            files = {each[1]: each[0] for each in self._runs}  # of two that are called alike, one is enough for now
            gone = {name for name, each in files.items() if not each.exists(name)}
            for key in [key for key in self._runs if key[1] in gone and key[0] == files[key[1]]]:
                del self._runs[key]


def _opened(files: StateFiles, run: Run) -> OpenRun:
    def tell(what: str, byte: int) -> Exception:
        return damaged(files, run.file, what, byte=run.offset + byte)

    if run.checksum is None:
        raise tell("it was written without checksums, by an older version", 0)
    file, sums = files.open(run.file), table_length(run.length)
    if file.size < run.offset + run.length + sums:
        raise tell(f"the file ends after {file.size} bytes, within what is needed of it", 0)
    stream, table = file.read(run.offset, run.length), file.read(run.offset + run.length, sums)
    return OpenRun(stream, Blocks(memoryview(stream), memoryview(table), run.checksum, tell))


_cache = _Cache()


def open_run(files: StateFiles, run: Run, schema: pa.Schema) -> OpenRun:
    """The run's rows; StateDamaged if its file is missing or is not what it was, or has other columns.

    One of a table that was altered since may have the columns of before; `DeclarationChanged`, to be tried again,
    if it has those of after.
    """
    try:
        opened = _cache.get(files, run)
    except FileNotFoundError as error:
        raise damaged(files, run.file, "a file of the state is missing") from error
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        if getattr(error, "errno", None) is not None:  # Arrow's own have none
            with disk_errors_told():
                raise
        raise damaged(files, run.file, f"the run cannot be read: {error}", byte=run.offset) from error
    given = opened.schema
    if opened.altered != altered(schema):
        conformed(given.empty_table(), schema)  # or it cannot be
        return opened
    if not given.equals(schema) and (given.names != schema.names or given.types != schema.types):
        msg = f"the run has other columns: {_columns(given)}, not {_columns(schema)}"
        raise damaged(files, run.file, msg, byte=run.offset)
    return opened


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
