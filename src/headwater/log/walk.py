"""Walk: a partition's entries in order, over its segments, from an offset or a time on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headwater.errors import LogDamaged
from headwater.files import Files
from headwater.log import index
from headwater.log.entry import Entry, Mark
from headwater.log.segment import Segment
from headwater.log.segments import Segments


class Walk:
    """Finds the place to start with the help of the index, then goes from segment to segment.

    What was trimmed, also meanwhile and by others, is passed over; what is missing otherwise is `LogDamaged`.
    Safe for threads.
    """

    def __init__(self, files: Files, segments: Segments, start: Callable[[], int]) -> None:
        self._files = files
        self._segments = segments
        self._start = start

    def from_offset(self, offset: int, end: Mark) -> Iterator[Entry]:
        """The entries that hold this offset or come after it, up to a mark."""
        if end.segment > self._segments.bases()[-1]:
            self._segments.refresh()
        if offset < self._segments.first():
            self._check_beginning()
        segment = self._found(lambda: self._segments.holding(offset))
        hints = index.load(self._files, self._segments.folder, segment.base)
        for entry in self._entries(segment, self._trusted_byte(segment, index.before_offset(hints, offset)), end):
            if entry.end > offset or (entry.count == 0 and entry.offset >= offset):
                yield entry

    def from_time(self, received_at: int, end: Mark) -> Iterator[Entry]:
        """The entries that were received at that time or later, up to a mark."""
        segment = self._found(lambda: self._segments.received_before(received_at))
        hints = index.load(self._files, self._segments.folder, segment.base)
        for entry in self._entries(
            segment, self._trusted_byte(segment, index.before_time(hints, received_at)), end
        ):
            if entry.received_at >= received_at:
                yield entry

    def _found(self, base: Callable[[], int]) -> Segment:
        """The segment to start reading at; looked up again as long as others trim what we know of."""
        while True:
            first = self._segments.first()
            try:
                return self._segments.get(base())
            except LogDamaged:
                if first >= self._start():
                    raise
                self._segments.refresh()

    def _entries(self, segment: Segment, byte: int, end: Mark) -> Iterator[Entry]:
        """All entries from a place on, over the segments, up to a mark. What is trimmed meanwhile is skipped."""
        while segment.base < end.segment:
            try:
                after = self._segments.following(segment)
            except LogDamaged:
                if segment.base >= self._start():
                    raise
                self._segments.refresh()
                segment = self._found(self._segments.first)
                byte = segment.header.length
                continue
            yield from segment.entries(byte, after.header.previous_length)
            segment, byte = after, after.header.length
        if segment.base == end.segment:
            yield from segment.entries(byte, end.byte)

    def _check_beginning(self) -> None:
        """What lies before the first segment was trimmed, or else it is lost."""
        first, start = self._segments.refresh()[0], self._start()
        if first > start:
            msg = f"offsets {start} to {first} are missing"
            raise LogDamaged(
                msg, segment=self._segments.folder, byte=0, hint="restore these segments from a backup"
            )

    @staticmethod
    def _trusted_byte(segment: Segment, hint: index.Hint | None) -> int:
        """Where to start reading: at the hint if it tells the truth, else at the segment's beginning."""
        if hint is not None:
            try:
                found = next(segment.entries(hint.byte, segment.size()), None)
            except LogDamaged:
                found = None
            if found is not None and found.offset == hint.offset:
                return hint.byte
        return segment.header.length
