"""GroupCommit: appends that wait for the disk at the same time share one fsync, across threads and processes."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from headwater import crashpoint
from headwater.errors import LogDamaged, Unavailable
from headwater.files import Files
from headwater.lock import Lock
from headwater.log import index
from headwater.log.entry import Entry, Mark
from headwater.log.segment import Segment
from headwater.log.segments import Segments
from headwater.log.tail_file import Synced, TailFile, Written

_TRIES = 8
_GATHER = 0.0002
"""Seconds that an append in company waits for another one to share its sync with."""


class GroupCommit:
    """Makes a partition's written frames lasting.

    Whoever gets the sync lock syncs all that is written at that moment and publishes how far; those who waited
    for the lock meanwhile mostly find that their frame was among it. On a quick disk too few would: so an append
    that is not alone first gives the next one a moment. Lock order: partition, then sync.
    """

    def __init__(self, files: Files, segments: Segments, tail: TailFile, lock: Lock, partition_lock: Lock) -> None:
        self._files = files
        self._segments = segments
        self._tail = tail
        self._lock = lock
        self._partition_lock = partition_lock
        self._before: tuple[int, Mark] | None = None
        self._suspect: Mark | None = None

    def wait(self, entry: Entry, generation: int, *, take_back: bool = True) -> None:
        """Return when the entry is on disk; `Unavailable` if it is not and was taken back."""
        crashpoint.reach("append.before_sync")
        if self._in_company(entry) and self._is_last(entry):
            time.sleep(_GATHER)
        try:
            self.sync(entry.after, generation)
        except OSError as error:
            if not self._is_safe_anyway(entry, generation, take_back=take_back):
                raise _not_stored(self._segments.folder, error) from error
        if not self._is_kept(entry, generation):
            raise _not_stored(self._segments.folder, None)
        crashpoint.reach("append.synced")

    def _in_company(self, entry: Entry) -> bool:
        """Whether someone else, process or thread, wrote since this thread last did."""
        me = threading.get_ident()
        before, self._before = self._before, (me, entry.after)
        return before is not None and before != (me, entry.place)

    def _is_last(self, entry: Entry) -> bool:
        written, _ = self._tail.read()
        return written is not None and written.mark == entry.after

    def _reached(self, mark: Mark, generation: int) -> bool:
        synced = self._tail.read()[1]
        return synced.generation == generation and synced.mark >= mark

    def sync(self, mark: Mark, generation: int) -> None:
        """Sync up to a mark at least, in company. Raises the system's error if the disk fails."""
        if self._reached(mark, generation):
            return
        with self._lock:
            written, synced = self._tail.read()
            if synced.generation > generation or synced.mark.segment > mark.segment:
                return
            if synced.mark >= mark and synced.generation == generation:
                return
            if written is not None and written.generation != generation:
                return
            reached = written.mark if written is not None and written.segment == mark.segment else mark
            if self._segments.get(mark.segment).size() >= mark.byte:  # else it was taken back
                self._sync_segment(max(reached, mark), generation, synced)

    def seal(self, mark: Mark, generation: int) -> None:
        """Sync a segment to its end and say so; for the holder of the partition's lock."""
        with self._lock:
            self._sync_segment(mark, generation, self._tail.read()[1])

    def _sync_segment(self, mark: Mark, generation: int, synced: Synced) -> None:
        """The only place that syncs frames, under the sync lock.

        After an fsync that failed, the kernel takes the file's pages for clean, and the next fsync would succeed
        without writing them. So they are made dirty again: at once, for other processes, and before the next try.
        """
        segment = self._segments.get(mark.segment)
        if self._suspect is not None and self._suspect.segment == mark.segment:
            segment.rewrite(self._suspect.byte, mark.byte)
        try:
            segment.sync()
            self._suspect = None
            self._tail.publish_synced(Synced(generation, mark))
        except OSError:
            self._suspect = Mark(mark.segment, self._known(segment, synced))
            with suppress(OSError):
                segment.rewrite(self._suspect.byte, mark.byte)
            with suppress(OSError):
                if synced.is_known:
                    self._tail.publish_synced(synced)
            raise

    @staticmethod
    def _known(segment: Segment, synced: Synced) -> int:
        """Up to which byte a segment is known to be on disk."""
        return max(segment.header.length, synced.mark.byte if synced.mark.segment == segment.base else 0)

    def _is_kept(self, entry: Entry, generation: int) -> bool:
        """Whether an entry is on disk; after frames were taken back, whether it is among those that stayed."""
        for _ in range(_TRIES):
            if self._reached(entry.after, generation):
                return True
            written, synced = self._tail.read()
            generation = max(synced.generation, written.generation if written is not None else 0)
            if not self._is_there(entry):
                return False
            if synced.mark.segment > entry.after.segment:
                return True
            self.sync(entry.after, generation)
        raise _unclear(self._segments.folder)

    def _is_there(self, entry: Entry) -> bool:
        """Whether an entry still lies where it was written, synced or not."""
        try:
            segment = self._segments.get(entry.place.segment)
            if segment.size() < entry.after.byte:
                return False
            found = next(segment.entries(entry.place.byte, entry.after.byte), None)
        except LogDamaged:  # another frame lies across that place
            return False
        return found is not None and found.sequence == entry.sequence

    def _is_safe_anyway(self, entry: Entry, generation: int, *, take_back: bool) -> bool:
        """The disk refused: what is not known to be on it is taken back, so that it cannot seem to be stored.

        True if the entry may be on disk all the same, for someone else came in between: his sync went well, or he
        took things back. Records that were acknowledged without fsync stay.
        """
        with self._partition_lock, self._lock:
            written, synced = self._tail.read()
            if synced.generation != generation or synced.mark >= entry.after:
                return True  # for `_is_kept` to find out
            if written is None or not synced.is_known or written.segment != entry.after.segment:
                raise _unclear(self._segments.folder)
            if take_back:
                self._take_back(written, synced)
            return False

    def _take_back(self, written: Written, synced: Synced) -> None:
        """Cut off what is not known to be on disk; who waits for any of it sees the higher generation.

        Whoever is killed at it leaves the end unpublished: the next holder recovers and raises the generation.
        """
        segment = self._segments.get(written.segment)
        byte, generation = self._known(segment, synced), written.generation + 1
        reached = Synced(generation, Mark(written.segment, byte))
        self._tail.forget_written()
        segment.truncate(byte)
        with suppress(OSError):  # so that a power cut does not bring it back
            self._sync_segment(reached.mark, generation, reached)
        self._tail.publish_written(
            Written(
                boot=written.boot,
                generation=generation,
                segment=written.segment,
                byte=byte,
                next_offset=written.next_offset,
                sequence=written.sequence,
                received_at=written.received_at,
                indexed=index.truncate(self._files, self._segments.folder, written.segment, byte),
                producers=segment.scan(segment.header.length).producers,
            )
        )


def _not_stored(folder: str, error: OSError | None) -> Unavailable:
    cause = f": {error.strerror}" if error is not None else ""
    return Unavailable(
        f"the disk failed while a batch was being made lasting{cause}; the batch is not stored",
        where=folder,
        hint="check the disk, then append the batch again",
        retry=True,
    )


def _unclear(folder: str) -> Unavailable:
    return Unavailable(
        "the disk failed while a batch was being made lasting; it is not clear whether the batch is stored",
        where=folder,
        hint="check the disk and read the topic's end; with a producer and a sequence, append the batch again",
        retry=True,
    )
