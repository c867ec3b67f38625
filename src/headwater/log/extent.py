"""Extent: the slice of a topic as the embedded log has it, a stretch of a segment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from headwater.change.columns import conformed, schema_of, schema_text
from headwater.files import Files
from headwater.log.entry import Entry, Records
from headwater.log.segment import Segment, file_name

EXTENT_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Extent:
    """See `LogSlice`. Bytes of one segment that hold nothing but committed entries of one partition.

    Records have `columns`, a schema as text, whatever they had when they were written.
    """

    folder: str
    partition: int
    segment: int
    start: int
    end: int
    columns: str

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
                batch = conformed(segment.batch(entry), schema_of(self.columns))
                yield Records(self.partition, entry.offset, entry.received_at, entry.sequence, batch)


def joined(folder: str, partition: int, columns: pa.Schema, entries: Iterable[Entry]) -> Iterator[Extent]:
    """The entries as few extents, none much larger than `EXTENT_BYTES`, to be read with some columns."""
    current: Extent | None = None
    text = schema_text(columns)
    for entry in entries:
        if (
            current is not None
            and (current.segment, current.end) == (entry.place.segment, entry.place.byte)
            and current.bytes < EXTENT_BYTES
        ):
            current = replace(current, end=entry.after.byte)
            continue
        if current is not None:
            yield current
        current = Extent(folder, partition, entry.place.segment, entry.place.byte, entry.after.byte, text)
    if current is not None:
        yield current
