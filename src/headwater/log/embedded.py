"""EmbeddedLog: the log as files in a local folder, shared by processes without a server."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial

import pyarrow as pa

from headwater.change.columns import altered, conformed
from headwater.clock import Clock, SystemClock
from headwater.errors import HeadwaterError, LogDamaged, Unavailable
from headwater.files import Files, allow_many_files, disk_errors_told
from headwater.format import LOG
from headwater.lock import Lock
from headwater.log import decisions as deciding
from headwater.log import drops
from headwater.log.beginnings import beginnings, forget
from headwater.log.commit import Commit
from headwater.log.cut import Cut, Place, choose
from headwater.log.decisions import Decisions, Owner
from headwater.log.entry import Entry, Records
from headwater.log.extent import joined
from headwater.log.log import Parts, TopicLog, TopicSize
from headwater.log.partition import Partition
from headwater.log.producers import check_producer
from headwater.log.segment import prepare
from headwater.log.segments import Segments
from headwater.log.sequence import SequenceNumbers
from headwater.log.slice import LogSlice
from headwater.log.spill import Spill, in_frames
from headwater.log.transaction import EmbeddedTransaction
from headwater.position import Position
from headwater.process import boot_id
from headwater.store.store import Store
from headwater.watch import Watch

_ANY = (1 << 63) - 1
SEGMENT_BYTES = 64 * 1024 * 1024


class EmbeddedLog:
    """See `Log` for the contract. Layout: `<topic>.<number>/<partition>/`, `owners/`, `spill/`, `sequence`.

    `boot` tells one start of the machine from the next; what was not synced is trusted only within one.
    """

    @disk_errors_told()
    def __init__(
        self,
        folder: str,
        store: Store,
        *,
        files: Files | None = None,
        clock: Clock | None = None,
        boot: int | None = None,
        segment_bytes: int | None = None,
    ) -> None:
        self.folder = os.path.abspath(folder)
        self.files = files or Files()
        self._store = store
        self._clock = clock or SystemClock()
        self._boot = boot_id() if boot is None else boot
        self._segment_bytes = segment_bytes or _segment_bytes()
        self._owners = os.path.join(self.folder, "owners")
        allow_many_files()
        self.files.make_folder(self.folder)
        LOG.mark(self.files, self.folder)
        self._decisions = Decisions(self.files, store, self._clock, self._owners)
        deciding.sweep(self._owners, os.path.join(self.folder, "spill"))
        drops.sweep(self.files, self.folder)
        self._owner = Owner(self._owners)
        self._numbers = SequenceNumbers(self.files, self.folder, self._boot, store, self._highest_sequence)
        self._topics: dict[str, TopicLog] = {}
        self._closed = False
        self._partitions: dict[Place, Partition] = {}

    # -- topics

    def _topic_folder(self, topic: TopicLog) -> str:
        return os.path.join(self.folder, f"{topic.name}.{topic.number}")

    @disk_errors_told()
    def declare(self, topic: TopicLog) -> None:
        """See `Log.declare`. A partition that was made once and is gone is not made again."""
        before = self._topics.get(topic.name)
        if before is not None and before.number == topic.number:
            if altered(topic.schema) > altered(before.schema):
                self._topics[topic.name] = topic
            return
        made = self._store.starts(topic.number)
        for partition in range(topic.partitions):
            folder = os.path.join(self._topic_folder(topic), str(partition))
            if partition not in made:
                Partition.create(self.files, folder, topic.schema, boot=self._boot, created_at=self._clock.now())
                self._sync_folders(topic)
                self._store.set_start(topic.number, partition, 0)
            elif not self.files.exists(folder):
                raise LogDamaged("the partition's folder is missing", segment=folder, byte=0)
            self._partitions[topic.name, partition] = Partition(
                self.files,
                self._clock,
                folder,
                start=partial(self._start, topic.number, partition),
                boot=self._boot,
                durable=topic.durable,
                segment_bytes=self._segment_bytes,
            )
        self._topics[topic.name] = topic

    def _sync_folders(self, topic: TopicLog) -> None:
        """Make the names of folders lasting: whoever made them may have been killed before, or still be at it."""
        for folder in (self._topic_folder(topic), self.folder, os.path.dirname(self.folder)):
            self.files.sync_folder(folder)

    def _topic(self, name: str) -> TopicLog:
        topic = self._topics.get(name)
        if self._closed:
            raise HeadwaterError("the pipeline is closed", where=self.folder, hint="open it again")
        if topic is None:
            msg = f"there is no topic called {name}"
            raise HeadwaterError(msg, where=self.folder, hint="declare it first")
        return topic

    def partition(self, topic: str, partition: int) -> Partition:
        """One partition of a declared topic."""
        found = self._partitions.get((self._topic(topic).name, partition))
        if found is None:
            msg = f"{topic} has no partition {partition}"
            raise HeadwaterError(msg, where=self.folder)
        return found

    def locks(self) -> Iterator[tuple[str, Lock]]:
        """See `Log.locks`."""
        yield "the sequence numbers", self._numbers.lock
        for (topic, number), partition in list(self._partitions.items()):
            for lock in partition.locks:
                yield f"{topic}, partition {number}", lock

    def _drops_told(self, names: Collection[str]) -> AbstractContextManager[None]:
        return drops.drops_told(self.files, {name: self._topic_folder(self._topic(name)) for name in names})

    def _of(self, topic: str) -> dict[int, Partition]:
        return {number: self.partition(topic, number) for number in range(self._topic(topic).partitions)}

    def _highest_sequence(self) -> int:
        """The largest sequence in any readable frame. Takes no lock: its caller holds some."""
        highest = 0
        for name in self.files.list(self.folder):
            topic = os.path.join(self.folder, name)
            if "." not in name or not os.path.isdir(topic):
                continue
            for partition in self.files.list(topic):
                highest = max(highest, _last_sequence(self.files, os.path.join(topic, partition)))
        return highest

    # -- appending

    @disk_errors_told()
    def append(
        self,
        topic: str,
        parts: Parts,
        *,
        producer: str | None = None,
        sequence: int | None = None,
        aside: tuple[str, Parts] | None = None,
    ) -> Position:
        """See `Log.append`."""
        check_producer(topic, producer, sequence)
        with self._drops_told([topic] if aside is None else [topic, aside[0]]):
            return self._append(topic, parts, producer, sequence, aside)

    def _append(
        self,
        topic: str,
        parts: Parts,
        producer: str | None,
        sequence: int | None,
        aside: tuple[str, Parts] | None,
    ) -> Position:
        self._check_schema(topic, parts)
        batches = {(topic, number): batch for number, batch in parts.items()}
        if aside is not None:
            batches |= {(aside[0], number): batch for number, batch in aside[1].items()}
        targets = {
            place: (self.partition(*place), [prepare(piece, producer=producer) for piece in in_frames([batch])])
            for place, batch in batches.items()
        }
        commit = self._commit()
        if producer is None or sequence is None:
            return commit.store(targets, topic) if targets else Position.of(topic, {})
        names = [topic] if aside is None else [topic, aside[0]]
        involved = {(name, number): part for name in names for number, part in self._of(name).items()}
        return commit.store_once(targets, involved, topic=topic, producer=producer, sequence=sequence)

    def transaction(self) -> EmbeddedTransaction:
        """See `Log.transaction`."""
        identity = self._owner.new_transaction()
        spill = Spill(self.files, os.path.join(self.folder, "spill", identity.hex()))
        commit = self._commit()
        return EmbeddedTransaction(identity, spill, commit, self.partition, self._check_schema, self._drops_told)

    def _check_schema(self, topic: str, parts: Parts) -> None:
        """A frame of another schema would make the segment unreadable."""
        schema = self._topic(topic).schema
        if not all(b.schema.equals(schema) or altered(b.schema) < altered(schema) for b in parts.values()):
            msg = f"these records do not have the columns of {topic}"
            raise HeadwaterError(msg, where=self.folder, hint="the topic was declared anew: declare it here too")

    def number(self, topic: str) -> int:
        """See `Log.number`."""
        return self._topic(topic).number

    def _commit(self) -> Commit:
        return Commit(self._numbers, self._decisions, self._owner, self._store, self._clock)

    # -- reading

    @disk_errors_told()
    def cut(self, topics: Sequence[str], *, after: Cut | None = None, target: int | None = None) -> Cut:
        """See `Log.cut`.

        The number is read first; then each partition's lock is passed once, so that whoever took a number up to it
        has finished writing. What is taken is synced before the cut is returned.
        """
        with self._drops_told(topics):
            return self._cut(topics, after or Cut(), target)

    def _cut(self, topics: Sequence[str], after: Cut, target: int | None) -> Cut:
        sequence = self._numbers.last()
        partitions = {(topic, number): each for topic in topics for number, each in self._of(topic).items()}
        ends = {}
        for place, partition in partitions.items():
            with partition.held() as written:
                ends[place] = written
        entries: Mapping[Place, Iterator[Entry]] = {
            place: partitions[place].entries(after.end(*place), written.mark)
            for place, written in ends.items()
            if written.next_offset > after.end(*place)  # else an idle tick walks from the last hint to the end
        }
        cut, last = choose(entries, after=after, sequence=sequence, target=target, decision=self._decisions.get)
        for place, entry in last.items():
            if partitions[place].sync_to(ends[place]) < entry.after:
                msg = "the disk failed, and records were taken back while they were being cut"
                raise Unavailable(msg, where=partitions[place].folder, retry=True)
        return cut

    def read(
        self, topic: str, partition: int, start: int, end: int | None = None, *, columns: pa.Schema | None = None
    ) -> Iterator[Records]:
        """See `Log.read`."""
        with disk_errors_told(), self._drops_told([topic]):
            schema = columns or self._topic(topic).schema
            source = self.partition(topic, partition)
            for entry in self._committed(source, start, end):
                batch = source.batch(entry) if entry.count else None
                if batch is not None:
                    yield _records(partition, entry, conformed(batch, schema), start, end)

    def _committed(self, partition: Partition, start: int, end: int | None) -> Iterator[Entry]:
        """The entries that count, up to an offset or the first undecided one."""
        for entry in partition.entries(start, partition.end()):
            if end is not None and entry.offset >= end:
                return
            fate = self._decisions.get(entry.transaction) if entry.transaction else True
            if fate is None:
                return
            if fate:
                yield entry

    @disk_errors_told()
    def slices(self, topic: str, *, after: Cut, until: Cut, columns: pa.Schema | None = None) -> list[LogSlice]:
        """See `Log.slices`."""
        found: list[LogSlice] = []
        schema = columns or self._topic(topic).schema
        with self._drops_told([topic]):
            for number, partition in self._of(topic).items():
                start, end = after.end(topic, number), until.end(topic, number)
                found += joined(partition.folder, number, schema, self._committed(partition, start, end))
        return found

    def start(self, topic: str, partition: int) -> int:
        """See `Log.start`."""
        return self._start(self._topic(topic).number, partition)

    def _start(self, topic: int, partition: int) -> int:
        return self._store.starts(topic).get(partition, 0)

    @disk_errors_told()
    def offset_at(self, topic: str, partition: int, received_at: int) -> int:
        """See `Log.offset_at`."""
        with self._drops_told([topic]):
            return self.partition(topic, partition).offset_at(received_at)

    def watch(self, topics: Sequence[str]) -> Watch:
        """See `Log.watch`."""
        return Watch([partition.tail_path for topic in topics for partition in self._of(topic).values()])

    # -- keeping house

    @disk_errors_told()
    def trim(self, topic: str, partition: int, before: int) -> int:
        """See `Log.trim`. Works by whole segments; the active one stays."""
        number = self._topic(topic).number
        with self._drops_told([topic]):
            kept = self.partition(topic, partition).trim(
                before, lambda first: self._store.set_start(number, partition, first)
            )
        known = beginnings(self.files, self.folder, self._store.starts)
        forget(self._store, known, until=max(each.sequence for each in known.values()))
        return kept

    @disk_errors_told()
    def size(self, topic: str) -> TopicSize:
        """See `Log.size`."""
        records = used = segments = 0
        with self._drops_told([topic]):
            for number, partition in self._of(topic).items():
                records += partition.next_offset() - self.start(topic, number)
                taken, count = partition.usage()
                used += taken
                segments += count
        return TopicSize(records, used, segments)

    @disk_errors_told()
    def verify(self, topic: str) -> None:
        """See `Log.verify`."""
        with self._drops_told([topic]):
            for partition in self._of(topic).values():
                partition.verify()

    @disk_errors_told()
    def drop(self, topic: str) -> None:
        """See `Log.drop`."""
        folder, partitions = self._topic_folder(self._topic(topic)), self._of(topic)
        drops.drop_folder(self.files, folder, partitions.values())
        del self._topics[topic]
        for number, partition in partitions.items():
            del self._partitions[topic, number]
            partition.close()
        forget(self._store, beginnings(self.files, self.folder, self._store.starts), until=_ANY)

    def close(self) -> None:
        """See `Log.close`."""
        if self._closed:
            return
        self._closed = True
        self._owner.give_up()
        for partition in self._partitions.values():
            partition.close()
        self._partitions.clear()
        self._topics.clear()
        self._numbers.close()


def _segment_bytes() -> int:
    """How large a segment grows: what the environment says, or else the usual."""
    text = os.environ.get("HEADWATER_SEGMENT_BYTES", str(SEGMENT_BYTES))
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        msg = f"HEADWATER_SEGMENT_BYTES is {text!r}"
        raise HeadwaterError(msg, hint="set it to a whole number of bytes above 0, or not at all")
    return int(text)


def _records(partition: int, entry: Entry, batch: pa.RecordBatch, start: int, end: int | None) -> Records:
    """An entry's records, without those outside the asked range."""
    skip = max(0, start - entry.offset)
    keep = entry.count - skip if end is None else min(entry.end, end) - entry.offset - skip
    if skip or keep < entry.count:
        batch = batch.slice(skip, keep)
    return Records(partition, entry.offset + skip, entry.received_at, entry.sequence, batch)


def _last_sequence(files: Files, folder: str) -> int:
    segments = Segments(files, folder)
    try:
        bases = segments.refresh()
        if not bases:
            return 0
        segment = segments.get(bases[-1])
        last = segment.scan(segment.header.length).last
        return last.sequence if last else segment.header.sequence
    except LogDamaged:
        return 0
