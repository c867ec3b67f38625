"""Extent: a stretch of committed records that any process can read by itself, without the store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headwater.files import Files
from headwater.log.entry import Entry, Records
from headwater.log.segment import Segment, file_name

EXTENT_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes of one segment that hold nothing but committed entries of one partition."""

    folder: str
    partition: int
    segment: int
    start: int
    end: int

    @property
    def path(self) -> str:
        """The segment's file."""
        return os.path.join(self.folder, file_name(self.segment))


def joined(folder: str, partition: int, entries: Iterable[Entry]) -> Iterator[Extent]:
    """The entries as few extents, none much larger than `EXTENT_BYTES`."""
    current: Extent | None = None
    for entry in entries:
        if (
            current is not None
            and (current.segment, current.end) == (entry.place.segment, entry.place.byte)
            and current.end - current.start < EXTENT_BYTES
        ):
            current = Extent(folder, partition, current.segment, current.start, entry.after.byte)
            continue
        if current is not None:
            yield current
        current = Extent(folder, partition, entry.place.segment, entry.place.byte, entry.after.byte)
    if current is not None:
        yield current


def read(extent: Extent) -> Iterator[Records]:
    """The records of an extent; `LogDamaged` if they are not what was written."""
    segment = Segment.open(Files(), extent.folder, extent.segment)
    for entry in segment.entries(extent.start, extent.end):
        if entry.count:
            yield Records(extent.partition, entry.offset, entry.received_at, entry.sequence, segment.batch(entry))
