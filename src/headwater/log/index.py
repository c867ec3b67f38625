"""Index: a sparse list of a segment's entries by offset, by time and by sequence.

A file `<base>.index` beside the segment, one record of 40 bytes for about every 256 KiB of the segment,
little-endian: checksum (XXH3-64 of the rest), offset, time of receipt, pipeline-wide sequence, byte. It is only
ever a hint: it is not synced, it ends at the first record that does not match its checksum, and without it the
segment is read from its start.
"""

from __future__ import annotations

import bisect
import os
import struct
from dataclasses import dataclass

from xxhash import xxh3_64_intdigest

from headwater.files import Files
from headwater.log.entry import Entry

SPACING = 256 * 1024
_RECORD = struct.Struct("<QQqQQ")


@dataclass(frozen=True, slots=True)
class Hint:
    """An entry that the index names."""

    offset: int
    received_at: int
    sequence: int
    byte: int


def _path(folder: str, base: int) -> str:
    return os.path.join(folder, f"{base:020d}.index")


def add(files: Files, folder: str, entry: Entry) -> None:
    """Note an entry; under the partition's lock."""
    body = _RECORD.pack(0, entry.offset, entry.received_at, entry.sequence, entry.place.byte)[8:]
    handle = files.open(_path(folder, entry.place.segment), create=True)
    try:
        end = files.size(handle) // _RECORD.size * _RECORD.size
        files.write(handle, [xxh3_64_intdigest(body).to_bytes(8, "little") + body], end)
    finally:
        files.close(handle)


def truncate(files: Files, folder: str, base: int, byte: int) -> int:
    """Forget what lies at or after a byte; returns the last byte that is still indexed (0: none)."""
    hints = [hint for hint in load(files, folder, base) if hint.byte < byte]
    path = _path(folder, base)
    if files.exists(path):
        handle = files.open(path)
        try:
            files.truncate(handle, len(hints) * _RECORD.size)
        finally:
            files.close(handle)
    return hints[-1].byte if hints else 0


def load(files: Files, folder: str, base: int) -> list[Hint]:
    """The hints in order, up to the first that is harmed or out of order."""
    path = _path(folder, base)
    if not files.exists(path):
        return []
    handle = files.open(path)
    try:
        data = files.read(handle, files.size(handle), 0)
    finally:
        files.close(handle)
    hints: list[Hint] = []
    for start in range(0, len(data) - _RECORD.size + 1, _RECORD.size):
        checksum, *fields = _RECORD.unpack_from(data, start)
        hint = Hint(*fields)
        if xxh3_64_intdigest(data[start + 8 : start + _RECORD.size]) != checksum:
            break
        if hints and hint.byte <= hints[-1].byte:
            break
        hints.append(hint)
    return hints


def before_offset(hints: list[Hint], offset: int) -> Hint | None:
    """The last hinted entry that begins at or before the offset."""
    found = bisect.bisect_right(hints, offset, key=lambda hint: hint.offset)
    return hints[found - 1] if found else None


def before_time(hints: list[Hint], received_at: int) -> Hint | None:
    """The last hinted entry that was received before the time."""
    found = bisect.bisect_left(hints, received_at, key=lambda hint: hint.received_at)
    return hints[found - 1] if found else None


def remove(files: Files, folder: str, base: int) -> None:
    """Take the index away with its segment."""
    files.remove(_path(folder, base))
