"""Segments: the files of one partition, in order, with a few of them open."""

from __future__ import annotations

import bisect
import os
import threading
from collections import OrderedDict
from collections.abc import Callable

import pyarrow as pa

from headwater.errors import LogDamaged
from headwater.files import Files
from headwater.lock import forget_in_child
from headwater.log import index
from headwater.log.segment import SUFFIX, Segment, file_name
from headwater.log.segment_header import SegmentHeader

_OPEN = 32


class Segments:
    """Knows which segments a partition has and opens them.

    The folder is listed when it is opened and when a segment that should follow is not known yet, never on an
    ordinary append. A segment that leaves the cache is closed when its last user lets go. Segments before `start`
    were trimmed: a power cut may bring some of them back, and they do not count. Safe for threads.
    """

    def __init__(self, files: Files, folder: str, start: Callable[[], int] = lambda: 0) -> None:
        self.folder = folder
        self._files = files
        self._start = start
        self._bases: list[int] = []
        self._open: OrderedDict[int, Segment] = OrderedDict()
        self._threads = threading.RLock()
        forget_in_child(self)

    def after_fork(self) -> None:
        """Another thread of the parent may have held it."""
        self._threads = threading.RLock()

    def refresh(self) -> list[int]:
        """List the folder anew; returns all bases in order."""
        start = self._start()
        bases = [base for base in self._listed() if base >= start]
        with self._threads:
            self._bases = bases
            for base in set(self._open).difference(bases):
                del self._open[base]
        return bases

    def _listed(self) -> list[int]:
        names = self._files.list(self.folder)
        return sorted(int(name.removesuffix(SUFFIX)) for name in names if name.endswith(SUFFIX))

    def bases(self) -> list[int]:
        """All bases as last listed."""
        with self._threads:
            return list(self._bases) or self.refresh()

    def get(self, base: int) -> Segment:
        """An open segment; the least used ones are closed."""
        with self._threads:
            segment = self._open.get(base)
            if segment is None:
                segment = self._open[base] = Segment.open(self._files, self.folder, base)
                while len(self._open) > _OPEN:
                    self._open.popitem(last=False)
            self._open.move_to_end(base)
            return segment

    def first(self) -> int:
        """The oldest base."""
        return self.bases()[0]

    def holding(self, offset: int) -> int:
        """The base of the segment in which an offset would lie; the oldest if it lies before all."""
        bases = self.bases()
        return bases[max(0, bisect.bisect_right(bases, offset) - 1)]

    def received_before(self, received_at: int) -> int:
        """The base of the last segment before which nothing was received at that time or later."""
        bases = self.bases()
        found = bisect.bisect_left(bases[1:], received_at, key=lambda base: self.get(base).header.received_at)
        return bases[found]

    def following(self, segment: Segment) -> Segment:
        """The segment behind a sealed one; `LogDamaged` if the chain is broken there."""
        with self._threads:
            at = bisect.bisect_right(self._bases, segment.base)
            bases = self._bases if at < len(self._bases) else self.refresh()
            at = bisect.bisect_right(bases, segment.base)
            if at == len(bases):
                msg = f"the segment behind {file_name(segment.base)} is missing"
                raise LogDamaged(msg, segment=segment.path, byte=segment.size())
            after = self.get(bases[at])
            if after.header.previous != segment.base or after.header.ordinal != segment.header.ordinal + 1:
                msg = (
                    f"segments are missing: {file_name(after.header.previous)} should come before this one, "
                    f"so offsets {segment.base} to {after.base} are not all there"
                )
                raise LogDamaged(msg, segment=after.path, byte=0)
            segment.sealed(after.header.previous_length)
            return after

    def create_first(self, schema: pa.Schema, created_at: int) -> Segment:
        """Make the first segment of a new partition."""
        return self.create(SegmentHeader(0, 0, created_at, 0, 0, 0, 0, schema))

    def create(self, header: SegmentHeader) -> Segment:
        """Make a segment behind all others; under the partition's lock."""
        segment = Segment.create(self._files, self.folder, header)
        with self._threads:
            if self._bases:
                self._bases = [*(base for base in self._bases if base < header.base), header.base]
            self._open[header.base] = segment
        return segment

    def remove_before(self, keep: int) -> None:
        """Take all segments before this one away, with their indexes; under the partition's lock."""
        with self._threads:
            for base in [base for base in self._open if base < keep]:
                del self._open[base]
            self._bases = [base for base in self._bases if base >= keep]
        for base in self._listed():
            if base < keep:
                self._files.remove(os.path.join(self.folder, file_name(base)))
                index.remove(self._files, self.folder, base)
        self._files.sync_folder(self.folder)

    def forget(self) -> None:
        """Let go of all open segments; each closes when its last reader does."""
        with self._threads:
            self._open.clear()
