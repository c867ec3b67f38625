"""Spill: the records of an open transaction, in memory while they are few and in files when they are many."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from headwater.files import Files

IN_MEMORY = 32 * 1024 * 1024
FRAME_BYTES = 16 * 1024 * 1024
Place = tuple[str, int]


class _Stream(NamedTuple):
    """Batches of one schema in a file."""

    path: str
    schema: pa.Schema
    writer: pa.RecordBatchStreamWriter


class Spill:
    """Batches by topic and partition, in the order they came. Never holds more than `limit` bytes in memory."""

    def __init__(self, files: Files, folder: str, *, limit: int = IN_MEMORY) -> None:
        self._files = files
        self._folder = folder
        self._limit = limit
        self._held: dict[Place, list[pa.RecordBatch]] = {}
        self._bytes = 0
        self._streams: dict[Place, list[_Stream]] = {}

    def add(self, topic: str, partition: int, batch: pa.RecordBatch) -> None:
        """Add records behind those of the same place."""
        self._held.setdefault((topic, partition), []).append(batch)
        self._bytes += batch.nbytes
        if self._bytes > self._limit:
            self._write_out()

    def _write_out(self) -> None:
        self._files.make_folder(self._folder)
        for place, batches in self._held.items():
            for batch in batches:
                self._stream(place, batch.schema).writer.write_batch(batch)
        self._held.clear()
        self._bytes = 0

    def _stream(self, place: Place, schema: pa.Schema) -> _Stream:
        """Where batches of a place go: to another file from when its topic was altered on."""
        streams = self._streams.setdefault(place, [])
        if not streams or not streams[-1].schema.equals(schema, check_metadata=True):
            path = os.path.join(self._folder, f"{place[0]}.{place[1]}.{len(streams)}.arrows")
            streams.append(_Stream(path, schema, pa.ipc.new_stream(path, schema)))
        return streams[-1]

    def places(self) -> list[Place]:
        """Every topic and partition that has records."""
        return sorted({*self._held, *self._streams})

    def batches(self, place: Place) -> Iterator[pa.RecordBatch]:
        """The records of one place, in batches of a good size for a frame; after this nothing may be added."""
        return in_frames(self._all(place))

    def _all(self, place: Place) -> Iterator[pa.RecordBatch]:
        for stream in self._streams.get(place, ()):
            stream.writer.close()
            with pa.memory_map(stream.path) as mapped, pa.ipc.open_stream(mapped) as reader:
                yield from reader
        yield from self._held.get(place, ())

    def close(self) -> None:
        """Throw everything away."""
        for stream in chain.from_iterable(self._streams.values()):
            stream.writer.close()
            self._files.remove(stream.path)
        if self._streams:
            os.rmdir(self._folder)
        self._streams.clear()
        self._held.clear()


def in_frames(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same records in batches of about `FRAME_BYTES`: small ones of one schema joined, large ones split."""
    joined: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        for piece, its_bytes in _split(batch):
            is_other = bool(joined) and not piece.schema.equals(joined[0].schema, check_metadata=True)
            if joined and (is_other or size + its_bytes > FRAME_BYTES):
                yield _join(joined)
                joined, size = [], 0
            joined.append(piece)
            size += its_bytes
    if joined:
        yield _join(joined)


def _split(batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Pieces with their bytes, which take a while to count."""
    size = batch.nbytes
    if size <= FRAME_BYTES:
        yield batch, size
        return
    rows = max(1, -(-batch.num_rows // -(-size // FRAME_BYTES)))
    for start in range(0, batch.num_rows, rows):
        piece = batch.slice(start, rows)
        yield piece, piece.nbytes


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
