"""Partition: an append-only sequence of records in segment files, shared by many processes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pyarrow as pa

from headwater import crashpoint
from headwater.change.columns import altered
from headwater.clock import Clock
from headwater.errors import HeadwaterError, LogDamaged, Unavailable
from headwater.files import Files, advice
from headwater.lock import Lock, forget_in_child
from headwater.log import index
from headwater.log.beginnings import place_of
from headwater.log.entry import Entry, Mark
from headwater.log.group_commit import GroupCommit
from headwater.log.producers import Producers
from headwater.log.recovery import recover
from headwater.log.segment import Prepared, Segment, Stamp
from headwater.log.segment_header import SegmentHeader
from headwater.log.segments import Segments
from headwater.log.tail_file import Synced, TailFile, Written
from headwater.log.walk import Walk

_PATIENCE = 5.0
_WRITE_BACK = 4 << 20


class Partition:
    """One partition of one topic.

    Writing goes: `with partition.held(): entry = partition.write(…)`, then `partition.sync(entry)`. The lock is
    between processes and is given back when its holder dies; whoever gets it next sees from the tail file and
    the segment's length whether the last holder finished, and if not, recovers. Reading needs no lock and
    stops at the last byte known to be on disk (for `durable=False`: at the last whole frame), so that nobody
    sees a record that a power cut could take back.
    """

    def __init__(
        self,
        files: Files,
        clock: Clock,
        folder: str,
        *,
        start: Callable[[], int],
        boot: int,
        durable: bool,
        segment_bytes: int,
    ) -> None:
        self.folder = folder
        self.durable = durable
        self.lock = Lock(os.path.join(folder, "lock"))
        self._files = files
        self._clock = clock
        self._start = start
        self._boot = boot
        self._segment_bytes = segment_bytes
        self._segments = Segments(files, folder, start)
        self._walk = Walk(files, self._segments, start)
        self._tail = TailFile(files, os.path.join(folder, "tail"))
        self._sync_lock = Lock(os.path.join(folder, "sync.lock"))
        self._commit = GroupCommit(files, self._segments, self._tail, self._sync_lock, self.lock)
        self._written: Written | None = None
        self._producers: Producers | None = None
        forget_in_child(self)

    def after_fork(self) -> None:
        """What another thread of the parent was about to change is read again."""
        self._written = None
        self._producers = None

    @classmethod
    def create(cls, files: Files, folder: str, schema: pa.Schema, *, boot: int, created_at: int) -> None:
        """Make a partition's folder, first segment and tail file, lastingly; no harm if they are there."""
        files.make_folder(folder)
        with Lock(os.path.join(folder, "lock")):
            segments = Segments(files, folder)
            if segments.refresh():
                files.sync_folder(folder)
                return
            tail = TailFile(files, os.path.join(folder, "tail"))
            try:
                segment = segments.create_first(schema, created_at)
                start = Mark(0, segment.header.length)
                tail.publish_synced(Synced(0, start))
                tail.publish_written(Written(boot, 0, 0, start.byte, 0, 0, 0, 0, 0))
                tail.sync()
                files.sync_folder(folder)
            finally:
                tail.close()

    @property
    def place(self) -> str:
        """The number of its topic and its own, as decisions name it."""
        return place_of(self.folder)

    @property
    def tail_path(self) -> str:
        """The file that changes whenever there is news for readers."""
        return self._tail.path

    @property
    def locks(self) -> tuple[Lock, Lock]:
        """The sync lock, and the partition's own, under which the first is taken too."""
        return self._sync_lock, self.lock

    # -- writing

    @contextmanager
    def held(self) -> Iterator[Written]:
        """Hold the partition's lock, with its end known and whole."""
        self.check_exists()
        with self.lock:
            crashpoint.reach("append.locked")
            if self.lock.is_removed():
                raise self._gone()
            self._written = self._trusted() or self._recover()
            try:
                yield self._written
            finally:
                self._written = None

    def _trusted(self) -> Written | None:
        """The published end, if it is from this boot and the segment ends just there."""
        written, _ = self._tail.read()
        if written is None or written.boot != self._boot:
            return None
        size = self._segments.get(written.segment).size()
        if size < written.byte:
            msg = f"the file has {size} bytes, but {written.byte} were written"
            raise LogDamaged(msg, segment=self._segments.get(written.segment).path, byte=size)
        return written if size == written.byte else None

    def _recover(self) -> Written:
        if not self._segments.refresh():
            raise self._gone()
        written = recover(self._files, self._segments, self._tail, boot=self._boot, durable=self.durable)
        self._tail.publish_written(written)
        self._producers = None
        return written

    def check_exists(self) -> None:
        """An error if another process dropped the topic."""
        if not os.path.isdir(self.folder):
            raise self._gone()

    def _gone(self) -> HeadwaterError:
        if not os.path.isdir(self.folder):
            return HeadwaterError("the topic was dropped", where=self.folder)
        return LogDamaged("all segments of the partition are missing", segment=self.folder, byte=0)

    def write(self, prepared: Prepared, stamp: Stamp) -> Entry:
        """Append one batch behind the last; only inside `held`. Readers see it once it is synced.

        All frames of a segment have one schema. A batch of a later one than the active segment's begins another
        segment; one of an earlier, from whoever does not know yet that the topic was altered, is conformed to it.
        """
        written = self._end()
        segment = self._segments.get(written.segment)
        later = altered(prepared.schema) - altered(segment.header.schema)
        if later < 0:
            prepared = prepared.conformed(segment.header.schema)
        is_full = written.byte > segment.header.length and written.byte + prepared.size > self._segment_bytes
        if later > 0 or is_full:
            segment, written = self._roll(segment, written, prepared.schema if later > 0 else segment.header.schema)
        if stamp.received_at < written.received_at:
            stamp = dataclasses.replace(stamp, received_at=written.received_at)
        try:
            entry = segment.write(written.byte, written.next_offset, self._synced_in(written), prepared, stamp)
            crashpoint.reach("append.written")
            self._publish(written, entry)
        except OSError as error:
            with suppress(OSError):  # and synced, so that a power cut does not bring the frame back
                segment.truncate(written.byte)
                self._commit.seal(written.mark, written.generation)
            raise _cannot_write(segment, error) from error
        crashpoint.reach("append.published")
        if not self.durable:
            self._write_back(segment, entry)
        return entry

    @staticmethod
    def _write_back(segment: Segment, entry: Entry) -> None:
        """Nobody waits for the disk here, but the segment's end will: keep little for it to wait for."""
        start, end = (mark.byte // _WRITE_BACK * _WRITE_BACK for mark in (entry.place, entry.after))
        if start < end:
            segment.begin_sync(start, end)

    def _end(self) -> Written:
        if self._written is None:
            msg = "a partition is written only while its lock is held"
            raise RuntimeError(msg)
        return self._written

    def _synced_in(self, written: Written) -> int:
        synced = self._tail.read()[1].mark
        return synced.byte if synced.segment == written.segment else 0

    def _publish(self, written: Written, entry: Entry) -> None:
        indexed = written.indexed
        if entry.place.byte - indexed >= index.SPACING:
            with suppress(OSError):
                index.add(self._files, self.folder, entry)
            indexed = entry.place.byte
        self._written = Written(
            boot=written.boot,
            generation=written.generation,
            segment=written.segment,
            byte=entry.after.byte,
            next_offset=entry.end,
            sequence=entry.sequence,
            received_at=entry.received_at,
            indexed=indexed,
            producers=written.producers + (entry.producer is not None),
        )
        self._tail.publish_written(self._written)

    def _roll(self, segment: Segment, written: Written, schema: pa.Schema) -> tuple[Segment, Written]:
        """Seal the active segment and begin the next; an offset is left out if both would have the same name.

        Should this fail half-way, no end is published: whoever comes next looks at the folder and recovers.
        """
        base = max(written.next_offset, segment.base + 1)
        try:
            producers = self.producers()
            self._commit.seal(written.mark, written.generation)
            crashpoint.reach("roll.sealed")
            self._tail.forget_written()
            header = SegmentHeader(
                ordinal=segment.header.ordinal + 1,
                base=base,
                created_at=self._clock.now(),
                previous=segment.base,
                previous_length=written.byte,
                sequence=written.sequence,
                received_at=written.received_at,
                schema=schema,
                producers=producers.snapshot(),
            )
            fresh = self._segments.create(header)
        except OSError as error:
            raise _cannot_write(segment, error) from error
        self._written = dataclasses.replace(
            written, segment=base, byte=fresh.header.length, next_offset=base, indexed=0, producers=0
        )
        self._tail.publish_written(self._written)
        return fresh, self._written

    def producers(self) -> Producers:
        """What is known of idempotent producers up to the end; only inside `held`."""
        written = self._end()
        known = self._producers
        segment = self._segments.get(written.segment)
        if known is None or known.generation != written.generation or known.read_to.segment != written.segment:
            start = Mark(segment.base, segment.header.length)
            known = Producers(segment.header.producers, start, written.generation)
        if known.read_to.byte < written.byte:
            if written.producers:
                known.learn(segment.entries(known.read_to.byte, written.byte))
            known.read_to = written.mark
        self._producers = known
        return known

    def sync(self, entry: Entry, generation: int) -> None:
        """Return when an entry is on disk."""
        self._commit.wait(entry, generation, take_back=self.durable)

    def schema(self) -> pa.Schema:
        """The schema of what is written now; only inside `held`."""
        return self._segments.get(self._end().segment).header.schema

    def announce(self) -> None:
        """Wake readers: a transaction that has records here was decided, whether or not they can be told now."""
        with suppress(OSError):
            self._tail.publish_news()

    # -- reading

    def end(self) -> Mark:
        """How far anyone may read now."""
        written, synced = self._tail.read()
        if written is None or written.boot != self._boot:
            with self.held():
                pass
            written, synced = self._tail.read()
        if written is None:
            raise self._gone()
        if not self.durable:
            return written.mark
        if synced.mark >= written.mark and synced.generation == written.generation:
            return written.mark
        return self.sync_to(written)

    def sync_before(self, mark: Mark) -> None:
        """Make what was written up to a mark lasting; only inside `held`, so that none of it can be taken back."""
        self._sync(mark, self._end().generation)

    def sync_to(self, written: Written) -> Mark:
        """Make what is written lasting, and return how far that goes."""
        self._sync(written.mark, written.generation)
        return min(written.mark, self._tail.read()[1].mark)

    def _sync(self, mark: Mark, generation: int) -> None:
        try:
            self._commit.sync(mark, generation)
        except OSError as error:
            msg = f"the disk failed while records were being made lasting: {error.strerror}"
            raise Unavailable(msg, where=self.folder, hint=advice(error), retry=True) from error

    def is_trimmed(self) -> bool:
        """Whether its first records are gone for good."""
        return self._start() > 0

    def entries(self, offset: int, end: Mark) -> Iterator[Entry]:
        """The entries that hold this offset or come after it, up to a mark."""
        if not self._segments.bases():
            raise self._gone()
        return self._walk.from_offset(offset, end)

    def offset_at(self, received_at: int) -> int:
        """The first offset whose record was received at that time or later; the next offset if none was."""
        for entry in self._walk.from_time(received_at, self.end()):
            return entry.offset
        return self.next_offset()

    def batch(self, entry: Entry) -> pa.RecordBatch | None:
        """An entry's records; None if they were trimmed since the entry was found."""
        try:
            return self._segments.get(entry.place.segment).batch(entry)
        except LogDamaged:
            if entry.place.segment >= self._start():
                raise
            return None

    # -- keeping house

    def trim(self, offset: int, record: Callable[[int], None]) -> int:
        """Remove the segments that lie wholly before an offset; `record` notes the new start first."""
        with self.held() as written:
            bases = self._segments.refresh()
            keep = max([bases[0], *(base for base in bases if base <= min(offset, written.segment))])
            record(keep)
            crashpoint.reach("trim.recorded")
            self._segments.remove_before(keep)
        return keep

    def verify(self) -> None:
        """Read everything; `LogDamaged` if any byte that was on disk is missing or changed."""
        self._segments.refresh()
        for entry in self.entries(0, self.end()):
            self.batch(entry)

    def usage(self) -> tuple[int, int]:
        """Bytes and number of segments."""
        with self.held():  # so that nobody trims meanwhile
            bases = self._segments.refresh()
            return sum(self._segments.get(base).size() for base in bases), len(bases)

    def next_offset(self) -> int:
        """The offset that the next record will get."""
        with self.held() as written:
            return written.next_offset

    def close(self) -> None:
        """Close all files, after whoever in this process is writing just now."""
        self.lock.close(wait=_PATIENCE)
        self._segments.forget()
        self._tail.close()
        self._sync_lock.close()


def _cannot_write(segment: Segment, error: OSError) -> Unavailable:
    return Unavailable(
        f"the batch could not be written: {error.strerror}; nothing of it is stored",
        where=segment.path,
        hint=f"{advice(error)}, then append the batch again",
        retry=True,
    )
