"""Extent: the slice of a topic as the embedded log has it, a stretch of a segment."""

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
    """See `LogSlice`. Bytes of one segment that hold nothing but committed entries of one partition."""

    folder: str
    partition: int
    segment: int
    start: int
    end: int

    @property
    def path(self) -> str:
        """The segment's file."""
        return os.path.join(self.folder, file_name(self.segment))

    @property
    def bytes(self) -> int:
        """See `LogSlice.bytes`."""
        return self.end - self.start

    def read(self) -> Iterator[Records]:
        """See `LogSlice.read`."""
        segment = Segment.open(Files(), self.folder, self.segment)
        for entry in segment.entries(self.start, self.end):
            if entry.count:
                yield Records(self.partition, entry.offset, entry.received_at, entry.sequence, segment.batch(entry))


def joined(folder: str, partition: int, entries: Iterable[Entry]) -> Iterator[Extent]:
    """The entries as few extents, none much larger than `EXTENT_BYTES`."""
    current: Extent | None = None
    for entry in entries:
        if (
            current is not None
            and (current.segment, current.end) == (entry.place.segment, entry.place.byte)
            and current.bytes < EXTENT_BYTES
        ):
            current = Extent(folder, partition, current.segment, current.start, entry.after.byte)
            continue
        if current is not None:
            yield current
        current = Extent(folder, partition, entry.place.segment, entry.place.byte, entry.after.byte)
    if current is not None:
        yield current
