"""GroupCommit: appends that wait for the disk at the same time share one fsync, across threads and processes."""

from __future__ import annotations

from headwater import crashpoint
from headwater.errors import Unavailable
from headwater.files import Files
from headwater.lock import Lock
from headwater.log import index
from headwater.log.entry import Entry, Mark
from headwater.log.segments import Segments
from headwater.log.tail_file import Synced, TailFile, Written


class GroupCommit:
    """Makes a partition's written frames lasting.

    Whoever gets the sync lock syncs all that is written at that moment and publishes how far; those who waited
    for the lock meanwhile mostly find that their frame was among it. Lock order: partition, then sync.
    """

    def __init__(self, files: Files, segments: Segments, tail: TailFile, lock: Lock, partition_lock: Lock) -> None:
        self._files = files
        self._segments = segments
        self._tail = tail
        self._lock = lock
        self._partition_lock = partition_lock

    def wait(self, entry: Entry, generation: int, *, take_back: bool = True) -> None:
        """Return when the entry is on disk; `Unavailable` if it is not and was taken back."""
        crashpoint.reach("append.before_sync")
        if not self._reached(entry.after, generation):
            try:
                self.sync(entry.after, generation)
            except OSError as error:
                self._failed(entry.after, generation, take_back=take_back)
                raise _not_stored(self._segments.folder, error) from error
            if self._tail.read()[1].generation != generation and not self._still_there(entry):
                raise _not_stored(self._segments.folder, None)
        crashpoint.reach("append.synced")

    def _reached(self, mark: Mark, generation: int) -> bool:
        synced = self._tail.read()[1]
        return synced.generation == generation and synced.mark >= mark

    def sync(self, mark: Mark, generation: int) -> None:
        """Sync up to a mark at least, in company. Raises the system's error if the disk fails."""
        with self._lock:
            written, synced = self._tail.read()
            if synced.mark >= mark and synced.generation == generation:
                return
            if synced.mark.segment > mark.segment:
                return
            if written is not None and written.generation != generation:
                return
            self._segments.get(mark.segment).sync()
            reached = written.mark if written is not None and written.segment == mark.segment else mark
            self._tail.publish_synced(Synced(generation, max(reached, mark)))

    def seal(self, mark: Mark, generation: int) -> None:
        """Sync a segment to its end and say so; for the holder of the partition's lock."""
        with self._lock:
            self._segments.get(mark.segment).sync()
            self._tail.publish_synced(Synced(generation, mark))

    def _still_there(self, entry: Entry) -> bool:
        """After frames were taken back by someone: whether this one is still where it was written."""
        written, _ = self._tail.read()
        if written is None or written.mark < entry.after:
            return False
        segment = self._segments.get(entry.place.segment)
        found = next(segment.entries(entry.place.byte, entry.after.byte), None)
        return found is not None and found.sequence == entry.sequence

    def _failed(self, mark: Mark, generation: int, *, take_back: bool) -> None:
        """The disk refused: what is not known to be on it is taken back, so that it cannot seem to be stored.

        Records that were acknowledged without fsync stay; their pages are written again, for the kernel may
        take them for clean after the error.
        """
        with self._partition_lock, self._lock:
            written, synced = self._tail.read()
            if written is None or written.generation != generation or synced.mark >= mark:
                return
            if written.segment != mark.segment:
                return
            segment = self._segments.get(mark.segment)
            known = synced.mark.byte if synced.mark.segment == mark.segment else segment.header.length
            if not take_back:
                segment.rewrite(known, written.byte)
                return
            self._take_back(written, known)

    def _take_back(self, written: Written, byte: int) -> None:
        segment = self._segments.get(written.segment)
        generation = written.generation + 1
        segment.truncate(byte)
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
        self._tail.publish_synced(Synced(generation, Mark(written.segment, byte)))


def _not_stored(folder: str, error: OSError | None) -> Unavailable:
    cause = f": {error.strerror}" if error is not None else ""
    return Unavailable(
        f"the disk failed while a batch was being made lasting{cause}; the batch is not stored",
        where=folder,
        hint="check the disk, then append the batch again",
        retry=True,
    )
