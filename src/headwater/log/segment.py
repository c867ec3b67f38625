"""Segment: one file of a partition's log. Nothing outside this module knows how a segment stores its entries."""

from __future__ import annotations

import contextlib
import dataclasses
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from headwater import crashpoint
from headwater.change.columns import conformed
from headwater.errors import LogDamaged
from headwater.files import Files
from headwater.log import frame as frames
from headwater.log import segment_header
from headwater.log.entry import Entry, Mark
from headwater.log.segment_header import SegmentHeader

SUFFIX = ".segment"
_READ_AHEAD = 64 * 1024
_DAMAGE_HINT = "restore this file from a backup, or drop the topic; other partitions are not affected"


def file_name(base: int) -> str:
    """The name of the segment whose base is this offset."""
    return f"{base:020d}{SUFFIX}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch ready to be written: encoded and summed before any lock is taken."""

    frame: frames.Frame
    body: memoryview
    schema: pa.Schema

    @property
    def count(self) -> int:
        """How many records it has."""
        return self.frame.count

    @property
    def size(self) -> int:
        """How many bytes it will fill."""
        return self.frame.length

    def conformed(self, schema: pa.Schema) -> Prepared:
        """The same records with the columns that their topic has come to have."""
        batch = pa.ipc.read_record_batch(pa.py_buffer(self.body), self.schema)
        return prepare(conformed(batch, schema), producer=self.frame.producer)


def prepare(batch: pa.RecordBatch, *, producer: str | None = None) -> Prepared:
    """Encode a batch for `Segment.write`."""
    body = memoryview(batch.serialize())
    return Prepared(frames.describe(body, count=batch.num_rows, producer=producer), body, batch.schema)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What all frames of one append share, known only once the partition's lock is held."""

    sequence: int
    received_at: int
    producer_sequence: int = 0
    transaction: bytes | None = None


@dataclass(frozen=True, slots=True)
class Tail:
    """What a scan of a segment's end found: its last whole entry, where good bytes end, and what was synced."""

    last: Entry | None
    good: int
    synced: int
    producers: int
    reason: str | None


class Segment:
    """An open segment file.

    While it may still be truncated it is read with pread; once `sealed(length)` was called, through a memory
    map. Appends and truncation are for the holder of the partition's lock; reading is free for all threads.
    """

    def __init__(self, files: Files, path: str, handle: int, header: SegmentHeader) -> None:
        self.path = path
        self.header = header
        self._files = files
        self._handle = handle
        self._map: pa.Buffer | None = None

    @classmethod
    def create(cls, files: Files, folder: str, header: SegmentHeader) -> Segment:
        """Make a segment that is on disk, name and all, when this returns."""
        path = os.path.join(folder, file_name(header.base))
        fresh = path + ".new"
        data = segment_header.encode(header)
        handle = files.open(fresh, create=True)
        try:
            files.truncate(handle, 0)
            files.write(handle, [data], 0)
            files.sync(handle)
            crashpoint.reach("roll.created")
            files.rename(fresh, path)
            crashpoint.reach("roll.renamed")
            files.sync_folder(folder)
        except BaseException:
            files.close(handle)
            raise
        return cls(files, path, handle, dataclasses.replace(header, length=len(data)))

    @classmethod
    def open(cls, files: Files, folder: str, base: int) -> Segment:
        """Open an existing segment; `LogDamaged` if it is missing or its header is harmed."""
        path = os.path.join(folder, file_name(base))
        try:
            handle = files.open(path)
        except FileNotFoundError:
            msg = f"the segment that begins at offset {base} is missing"
            raise LogDamaged(msg, segment=path, byte=0, hint=_DAMAGE_HINT) from None
        try:
            start = files.read(handle, 4096, 0)
            length = min(segment_header.length_of(start), files.size(handle))
            header = segment_header.decode(start if length <= 4096 else files.read(handle, length, 0))
            if header.base != base:
                raise segment_header.BadHeader("the segment's header belongs to another file")
        except segment_header.BadHeader as error:
            files.close(handle)
            raise LogDamaged(str(error), segment=path, byte=0, hint=_DAMAGE_HINT) from error
        return cls(files, path, handle, header)

    @property
    def base(self) -> int:
        """No record in it has a smaller offset."""
        return self.header.base

    def size(self) -> int:
        """The file's length now."""
        return self._files.size(self._handle)

    # -- writing, under the partition's lock

    def write(self, byte: int, offset: int, synced: int, prepared: Prepared, stamp: Stamp) -> Entry:
        """Write a batch as a frame at `byte`; on any error the file is cut back to there."""
        frame = dataclasses.replace(
            prepared.frame,
            offset=offset,
            sequence=stamp.sequence,
            received_at=stamp.received_at,
            synced=synced,
            producer_sequence=stamp.producer_sequence,
            transaction=stamp.transaction,
        )
        padding = bytes(frame.length - frame.head_length - frame.body_length)
        try:
            self._write_all([frames.encode_head(frame), prepared.body, *([padding] if padding else [])], byte)
        except BaseException:
            with contextlib.suppress(OSError):
                self._files.truncate(self._handle, byte)
            raise
        return self._entry(frame, byte)

    def _write_all(self, buffers: list[bytes | memoryview], byte: int) -> None:
        if crashpoint.is_armed("append.half_written"):
            whole = b"".join(buffers)
            self._files.write(self._handle, [whole[: len(whole) // 2]], byte)
        crashpoint.reach("append.half_written")
        self._files.write(self._handle, buffers, byte)

    def truncate(self, byte: int) -> None:
        """Cut the file; only ever after the last synced byte."""
        self._files.truncate(self._handle, byte)

    def sync(self) -> None:
        """Return when all of its bytes are on disk."""
        self._files.sync(self._handle)

    def begin_sync(self, start: int, end: int) -> None:
        """Have bytes put on disk in the background."""
        self._files.begin_sync(self._handle, start, end - start)

    def rewrite(self, start: int, end: int) -> None:
        """Write bytes over themselves: after a failed fsync the kernel may hold them for clean."""
        self._files.write(self._handle, [self._files.read(self._handle, end - start, start)], start)

    # -- reading

    def sealed(self, length: int) -> None:
        """Say that the file will never change again and that it has `length` bytes."""
        if self._map is not None:
            return
        if self.size() < length:
            msg = f"the sealed segment has {self.size()} bytes of {length}"
            raise LogDamaged(msg, segment=self.path, byte=self.size(), hint=_DAMAGE_HINT)
        # by the open file, not by its path: another process may have trimmed it meanwhile
        self._map = pa.py_buffer(mmap.mmap(self._handle, length, access=mmap.ACCESS_READ))

    def entries(self, byte: int, end: int) -> Iterator[Entry]:
        """The entries from one byte to another, both at a frame's edge; anything else there is `LogDamaged`."""
        buffer, start = b"", byte
        while byte < end:
            if self._map is not None:
                head = memoryview(self._map)[byte : byte + _READ_AHEAD]
            else:
                if byte + 512 > start + len(buffer):
                    buffer, start = self._files.read(self._handle, min(_READ_AHEAD, end - byte), byte), byte
                head = memoryview(buffer)[byte - start :]
            try:
                frame = self._decode(head, byte)
            except frames.BadFrame as error:
                raise LogDamaged(str(error), segment=self.path, byte=byte, hint=_DAMAGE_HINT) from error
            if byte + frame.length > end:
                msg = "a frame reaches over the end of what was written"
                raise LogDamaged(msg, segment=self.path, byte=byte, hint=_DAMAGE_HINT)
            yield self._entry(frame, byte)
            byte += frame.length

    def _decode(self, head: memoryview, byte: int) -> frames.Frame:
        try:
            return frames.decode_head(head)
        except frames.IncompleteHead as error:
            return frames.decode_head(self._files.read(self._handle, error.needed, byte))

    def _entry(self, frame: frames.Frame, byte: int) -> Entry:
        return Entry(
            offset=frame.offset,
            count=frame.count,
            sequence=frame.sequence,
            received_at=frame.received_at,
            producer=frame.producer,
            producer_sequence=frame.producer_sequence,
            transaction=frame.transaction,
            place=Mark(self.base, byte),
            after=Mark(self.base, byte + frame.length),
        )

    def batch(self, entry: Entry) -> pa.RecordBatch:
        """An entry's records; `LogDamaged` if they are not what was written."""
        start, length = entry.place.byte, entry.after.byte - entry.place.byte
        if self._map is not None:
            whole = self._map.slice(start, length)
        else:
            whole = pa.py_buffer(self._files.read(self._handle, length, start))
        try:
            frame = frames.decode_head(memoryview(whole))
            body = whole.slice(frame.head_length, frame.body_length)
            if not frames.body_is_whole(frame, memoryview(body)):
                raise frames.BadFrame("the records do not match their checksum")
            return pa.ipc.read_record_batch(body, self.header.schema)
        except (frames.BadFrame, pa.ArrowException) as error:
            raise LogDamaged(str(error), segment=self.path, byte=start, hint=_DAMAGE_HINT) from error

    # -- recovery, under the partition's lock

    def scan(self, byte: int) -> Tail:
        """Check every frame from `byte` on, bodies too, and tell where good bytes end."""
        last, synced, producers, size = None, 0, 0, self.size()
        reason: str | None = None
        while byte < size:
            try:
                frame = self._whole_frame(byte)
                self._check_follows(frame, last)
            except frames.BadFrame as error:
                reason = str(error)
                synced = max(synced, self._synced_beyond(byte, size))
                break
            last = self._entry(frame, byte)
            synced = max(synced, frame.synced)
            producers += frame.producer is not None
            byte += frame.length
        return Tail(last, byte, synced, producers, reason)

    def _check_follows(self, frame: frames.Frame, last: Entry | None) -> None:
        """A frame that was cut off can be back after a power cut, behind one that was written in its stead."""
        end, sequence = (last.end, last.sequence) if last else (self.base, self.header.sequence)
        if frame.offset < end or frame.sequence < sequence:
            raise frames.BadFrame("a frame that was cut off before lies here")

    def _whole_frame(self, byte: int) -> frames.Frame:
        frame = self._decode(memoryview(self._files.read(self._handle, 512, byte)), byte)
        body = self._files.read(self._handle, frame.body_length, byte + frame.head_length)
        if not frames.body_is_whole(frame, body):
            raise frames.BadFrame("the records do not match their checksum")
        if byte + frame.length > self.size():
            raise frames.BadFrame("the frame is cut off")
        return frame

    def _synced_beyond(self, byte: int, size: int) -> int:
        """The furthest synced point that any readable frame behind a damaged place tells of."""
        synced = 0
        for start in range(byte - byte % frames.ALIGNMENT + frames.ALIGNMENT, size, 1 << 20):
            block = self._files.read(self._handle, (1 << 20) + 4096, start)
            found = block.find(frames.MAGIC)
            while found >= 0:
                place = found - 8
                if place >= 0 and place % frames.ALIGNMENT == 0:
                    with contextlib.suppress(frames.BadFrame):
                        synced = max(synced, frames.decode_head(block[place : place + 4096]).synced)
                found = block.find(frames.MAGIC, found + 4)
        return synced

    def __del__(self) -> None:
        """Close the file. Batches read through the map stay valid."""
        self._files.close(self._handle)
