"""Runs opened by memory map, and a cache of them."""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.change import HASH
from headwater.errors import Unavailable
from headwater.files import allow_many_files, disk_errors_told
from headwater.lock import forget_in_child
from headwater.state.gather import Indices
from headwater.state.hashes import Hashes
from headwater.state.packed import unpacked, unpacked_schema
from headwater.state.ready import ready
from headwater.state.run import Run

_HINT = "derived state can be deleted (the folder `state`) and is rebuilt from the log at the next start"
_CACHED = 8192
"""More than a tick reads, or each would open all of them anew. A fill leaves hundreds for an operator."""
_LOOK_EVERY = 32
_LOOKED_AT = 8
"""So many files are looked at for each that is opened, if many are open."""


class OpenRun:
    """The rows of a run, mapped: a page is read when it is touched. They never change; safe for threads.

    `schema` has the columns as they were given to be written, however they are packed.
    A file that is removed stays readable here. Positions count the rows of the run from 0, whatever range of hashes
    counts.
    """

    def __init__(self, stream: pa.Buffer) -> None:
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
        self._hashes = [Hashes(batch.column(HASH).to_numpy()) for batch in self._batches]
        self._firsts = np.array([hashes.all[0] for hashes in self._hashes], dtype=np.int64)
        self._lasts = np.array([hashes.all[-1] for hashes in self._hashes], dtype=np.int64)
        self._starts = np.cumsum([0, *map(len, self._hashes)])

    def below(self, hash_: int) -> int:
        """How many rows have a smaller hash."""
        number = int(np.searchsorted(self._lasts, hash_))
        if number == len(self._hashes):
            return int(self._starts[-1])
        return int(self._starts[number] + np.searchsorted(self._hashes[number].all, hash_))

    def upto(self, hash_: int) -> int:
        """How many rows have this hash or a smaller one."""
        number = int(np.searchsorted(self._lasts, hash_, side="right"))
        if number == len(self._hashes):
            return int(self._starts[-1])
        return int(self._starts[number] + np.searchsorted(self._hashes[number].all, hash_, side="right"))

    def slice(self, start: int, end: int, columns: list[str] | None = None) -> pa.Table:
        """The rows at these positions, in all columns or some; what is not packed without a copy."""
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        last = int(np.searchsorted(self._starts, end))
        bounds = zip(self._batches[first:last], self._starts[first:last].tolist(), strict=True)
        parts = [batch.slice(max(0, start - begin), end - max(start, begin)) for batch, begin in bounds]
        if columns is None:
            return unpacked(parts, self.schema)
        return unpacked([part.select(columns) for part in parts], pa.schema(map(self.schema.field, columns)))

    def searches(self, wanted: Indices) -> list[Search]:
        """The batches that may have some of these hashes, which ascend without repeating."""
        begins = np.searchsorted(wanted, self._firsts)
        ends = np.searchsorted(wanted, self._lasts, side="right")
        bounds = zip(self._batches, self._hashes, begins.tolist(), ends.tolist(), strict=True)
        return [Search(batch, hashes, wanted[begin:end]) for batch, hashes, begin, end in bounds if begin < end]


class Search(NamedTuple):
    """Hashes that are looked for in one batch of a run."""

    batch: pa.RecordBatch
    hashes: Hashes
    wanted: Indices

    def find(self, columns: list[str] | None = None) -> pa.RecordBatch:
        """The rows with these hashes, in all columns or some, packed as they are."""
        batch = self.batch if columns is None else self.batch.select(columns)
        rows = self.hashes.positions(self.wanted)
        return batch.take(pa.array(rows)) if len(rows) else batch.slice(0, 0)

    def matches(self) -> int:
        """How many rows have these hashes."""
        return len(self.hashes.positions(self.wanted))


class _Cache:
    """The runs opened last.

    A removed file keeps its space while it is mapped, so now and then, as runs are opened, those whose file is gone
    are let go.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened = 0
        self._runs: OrderedDict[tuple[Any, ...], OpenRun] = OrderedDict()
        self._maps: weakref.WeakValueDictionary[tuple[Any, ...], mmap.mmap] = weakref.WeakValueDictionary()
        forget_in_child(self)

    def after_fork(self) -> None:
        """A thread that the child does not have may hold the lock."""
        self._lock = threading.Lock()

    def get(self, path: str, offset: int, length: int) -> OpenRun:
        found = os.stat(path)  # another file may have come to have the same name
        file = (path, found.st_ino, found.st_mtime_ns, found.st_size)
        key = (*file, offset, length)
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
                return self._runs[key]
            mapped = self._maps.get(file)
        if mapped is None:
            mapped = _mapped(path)
            ready.soon(mapped)
        run = OpenRun(pa.py_buffer(mapped).slice(offset, length))
        with self._lock:
            self._maps[file] = mapped
            self._runs[key] = run
            self._shrink()
        return run

    def _shrink(self) -> None:
        if len(self._runs) > _CACHED:
            self._runs.popitem(last=False)
        self._opened += 1
        if self._opened >= max(_LOOK_EVERY, len(self._runs) // _LOOKED_AT):
            self._opened = 0
            gone = {path for path in {key[0] for key in self._runs} if not os.path.exists(path)}
            for key in [key for key in self._runs if key[0] in gone]:
                del self._runs[key]


def _mapped(path: str) -> mmap.mmap:
    """The file as memory; not by Arrow's own `memory_map`, which asks the system to read all of it ahead."""
    allow_many_files()  # each map keeps its file open
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


_cache = _Cache()


def open_run(folder: str, run: Run, schema: pa.Schema) -> OpenRun:
    """The run's rows; Unavailable if its file is missing or is not what it was, or has other columns."""
    path = os.path.join(folder, run.file)
    try:
        opened = _cache.get(path, run.offset, run.length)
    except FileNotFoundError as error:
        msg = "a file of the state is missing"
        raise Unavailable(msg, where=path, hint=_HINT) from error
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        if getattr(error, "errno", None) is not None:  # Arrow's own have none
            with disk_errors_told():
                raise
        msg = f"the run at byte {run.offset} cannot be read: {error}"
        raise Unavailable(msg, where=path, hint=_HINT) from error
    given = opened.schema
    if not given.equals(schema) and (given.names != schema.names or given.types != schema.types):
        msg = f"the run at byte {run.offset} has other columns: {_columns(given)}, not {_columns(schema)}"
        raise Unavailable(msg, where=path, hint=_HINT)
    return opened


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
