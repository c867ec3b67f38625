"""A log in one file of SQLite's: as simple as a log can be, and all that `Log` asks for.

It is not part of the product. It shows what another log needs, and that nothing but `backends` has to hear of it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pyarrow as pa

from headwater.change.columns import altered, conformed, schema_of, schema_text
from headwater.clock import Clock, SystemClock
from headwater.errors import HeadwaterError, LogDamaged, SequenceGap
from headwater.lock import Lock
from headwater.log import Cut, LogSlice, Parts, Records, TopicDropped, TopicLog, TopicSize
from headwater.log.cut import Place, choose
from headwater.log.entry import Entry, Mark
from headwater.log.producers import check_producer
from headwater.position import Position
from headwater.store import Store
from headwater.watch import Watch

_TABLES = """
CREATE TABLE IF NOT EXISTS partitions (topic INTEGER, partition INTEGER, start INTEGER, next INTEGER,
                                       PRIMARY KEY (topic, partition));
CREATE TABLE IF NOT EXISTS records (topic INTEGER, partition INTEGER, first INTEGER, behind INTEGER,
                                    sequence INTEGER, received_at INTEGER, rows BLOB,
                                    PRIMARY KEY (topic, partition, first));
CREATE TABLE IF NOT EXISTS producers (topic INTEGER, producer TEXT, sequence INTEGER, position TEXT,
                                      PRIMARY KEY (topic, producer, sequence));
CREATE TABLE IF NOT EXISTS last (sequence INTEGER);
INSERT INTO last SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM last);
"""
_SLICE_BYTES = 8 << 20


@dataclass(frozen=True)
class OneFileSlice:
    """See `LogSlice`. Whole appends of one partition."""

    path: str
    topic: int
    partition: int
    first: int
    behind: int
    bytes: int
    columns: str

    def read(self) -> Iterator[Records]:
        """See `LogSlice.read`."""
        database = sqlite3.connect(self.path)
        try:
            yield from _read(database, self.topic, self.partition, self.first, self.behind, schema_of(self.columns))
        finally:
            database.close()


def _read(
    database: sqlite3.Connection, topic: int, partition: int, start: int, end: int, wanted: pa.Schema
) -> Iterator[Records]:
    at = start
    columns = "first, behind, sequence, received_at, rows"
    where = "topic = ? AND partition = ? AND behind > ? AND first < ?"
    query = f"SELECT {columns} FROM records WHERE {where} ORDER BY first LIMIT 1"
    while (found := database.execute(query, (topic, partition, at, end)).fetchone()) is not None:
        first, behind, sequence, received_at, data = found
        batch = conformed(pa.ipc.open_stream(data).read_next_batch(), wanted)
        skip = max(0, start - first)
        yield Records(
            partition, first + skip, received_at, sequence, batch.slice(skip, min(behind, end) - first - skip)
        )
        at = behind


class OneFileTransaction:
    """See `Transaction`. All of it is in memory until it is committed."""

    def __init__(self, log: OneFileLog) -> None:
        self._log = log
        self._waiting: dict[str, dict[int, list[pa.RecordBatch]]] | None = defaultdict(lambda: defaultdict(list))
        self._kept: dict[str, str] = {}

    def _open(self) -> dict[str, dict[int, list[pa.RecordBatch]]]:
        if self._waiting is None:
            raise HeadwaterError("this transaction has ended", where=self._log.path)
        return self._waiting

    def append(self, topic: str, parts: Parts) -> None:
        """See `Transaction.append`."""
        for partition, batch in parts.items():
            self._open()[topic][partition].append(batch)

    def keep(self, name: str, value: str) -> None:
        """See `Transaction.keep`."""
        self._kept[name] = value

    def commit(self) -> Position:
        """See `Transaction.commit`; but what is kept goes to another database, right after."""
        waiting, self._waiting = self._open(), None
        batches = [
            (topic, partition, batch)
            for topic, parts in waiting.items()
            for partition in parts
            for batch in parts[partition]
        ]
        positions = self._log.store(batches)
        self._log.metadata.keep(self._kept)
        found = Position.of("", {})
        for each in positions.values():
            found |= each
        return found

    def abort(self) -> None:
        """See `Transaction.abort`."""
        self._waiting = None


class OneFileLog:
    """See `Log`."""

    def __init__(self, path: str, store: Store, *, clock: Clock | None = None) -> None:
        self.path = os.path.abspath(path)
        self.metadata = store
        self._clock = clock or SystemClock()
        self._topics: dict[str, TopicLog] = {}
        self._local = threading.local()
        self._closed = False
        self._database.execute("PRAGMA journal_mode = WAL")
        with self._writing() as database:
            for statement in _TABLES.split(";"):
                database.execute(statement)

    @property
    def _database(self) -> sqlite3.Connection:
        if self._closed:
            raise HeadwaterError("the pipeline is closed", where=self.path, hint="open it again")
        if not hasattr(self._local, "database"):
            self._local.database = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        found: sqlite3.Connection = self._local.database
        return found

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            yield database
        except BaseException:
            database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")

    # -- topics

    def declare(self, topic: TopicLog) -> None:
        """See `Log.declare`."""
        known = self._topics.get(topic.name)
        if known is None or known.number != topic.number:
            with self._writing() as database:
                places = [(topic.number, partition) for partition in range(topic.partitions)]
                database.executemany("INSERT OR IGNORE INTO partitions VALUES (?, ?, 0, 0)", places)
            self._topics[topic.name] = topic
        elif altered(topic.schema) > altered(known.schema):
            self._topics[topic.name] = topic

    def number(self, topic: str) -> int:
        """See `Log.number`."""
        return self._topic(topic).number

    def _topic(self, name: str) -> TopicLog:
        if name not in self._topics:
            msg = f"there is no topic called {name}"
            raise HeadwaterError(msg, where=self.path)
        return self._topics[name]

    def _bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """The first offset that is kept, and the next one."""
        declared = self._topic(topic)
        query = "SELECT start, next FROM partitions WHERE topic = ? AND partition = ?"
        found: tuple[int, int] | None = self._database.execute(query, (declared.number, partition)).fetchone()
        if found is None:
            if partition < declared.partitions:
                raise TopicDropped(topic)
            msg = f"{topic} has no partition {partition}"
            raise HeadwaterError(msg, where=self.path)
        return found

    # -- appending

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
        batches = [(topic, partition, batch) for partition, batch in parts.items()]
        batches += [(aside[0], partition, batch) for partition, batch in aside[1].items()] if aside else []
        once = None if producer is None or sequence is None else (topic, producer, sequence)
        return self.store(batches, once).get(topic, Position.of(topic, {}))

    def store(
        self, batches: Sequence[tuple[str, int, pa.RecordBatch]], once: tuple[str, str, int] | None = None
    ) -> dict[str, Position]:
        """Store batches at one instant, of a producer's sequence only once; up to where each topic was written."""
        with self._writing() as database:
            if once is not None and (before := self._stored_before(*once)) is not None:
                return {once[0]: before}
            (number,) = database.execute("UPDATE last SET sequence = sequence + 1 RETURNING sequence").fetchone()
            now, ends = self._clock.now(), defaultdict[str, dict[int, int]](dict)
            for topic, partition, batch in batches:
                _, first = self._bounds(topic, partition)
                place, behind = (self.number(topic), partition), first + batch.num_rows
                schema = self._topic(topic).schema
                if not batch.schema.equals(schema) and altered(batch.schema) >= altered(schema):
                    msg = f"these records do not have the columns of {topic}"
                    raise HeadwaterError(msg, where=self.path)
                if batch.num_rows:
                    row = (*place, first, behind, number, now, _written(batch))
                    database.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", row)
                    database.execute(
                        "UPDATE partitions SET next = ? WHERE topic = ? AND partition = ?", (behind, *place)
                    )
                ends[topic][partition] = behind
            found = {topic: Position.of(topic, of_one) for topic, of_one in ends.items()}
            if once is not None:
                topic, producer, sequence = once
                position = str(found.get(topic, Position.of(topic, {})))
                known = (self.number(topic), producer, sequence, position)
                database.execute("INSERT INTO producers VALUES (?, ?, ?, ?)", known)
            return found

    def _stored_before(self, topic: str, producer: str, sequence: int) -> Position | None:
        query = "SELECT sequence, position FROM producers WHERE topic = ? AND producer = ? ORDER BY sequence"
        known = dict(self._database.execute(query, (self.number(topic), producer)).fetchall())
        if sequence in known:
            return Position.parse(known[sequence]) if known[sequence] else Position.of(topic, {})
        if known and sequence != max(known) + 1:
            msg = f"sequence {sequence} after {max(known)}"
            raise SequenceGap(msg, where=topic)
        return None

    def transaction(self) -> OneFileTransaction:
        """See `Log.transaction`."""
        return OneFileTransaction(self)

    # -- reading

    def cut(self, topics: Sequence[str], *, after: Cut | None = None, target: int | None = None) -> Cut:
        """See `Log.cut`. What can be read was committed, and lasts."""
        after = after or Cut()
        database = self._database
        database.execute("BEGIN")  # so that all partitions are seen at one instant
        try:
            (sequence,) = database.execute("SELECT sequence FROM last").fetchone()
            entries: dict[Place, list[Entry]] = {
                (topic, partition): self._entries(topic, partition, after.end(topic, partition))
                for topic in topics
                for partition in range(self._topic(topic).partitions)
            }
        finally:
            database.execute("COMMIT")
        return choose(entries, after=after, sequence=sequence, target=target, decision=lambda _: True)[0]

    def _entries(self, topic: str, partition: int, start: int, end: int = 1 << 62) -> list[Entry]:
        self._bounds(topic, partition)
        columns = "first, behind, sequence, received_at, length(rows)"
        where = "topic = ? AND partition = ? AND first >= ? AND behind <= ?"
        found = self._database.execute(
            f"SELECT {columns} FROM records WHERE {where} ORDER BY first",
            (self.number(topic), partition, start, end),
        )
        return [
            Entry(first, behind - first, sequence, received_at, None, 0, None, Mark(0, 0), Mark(0, size))
            for first, behind, sequence, received_at, size in found
        ]

    def read(
        self, topic: str, partition: int, start: int, end: int | None = None, *, columns: pa.Schema | None = None
    ) -> Iterator[Records]:
        """See `Log.read`."""
        self._bounds(topic, partition)
        behind, wanted = 1 << 62 if end is None else end, columns or self._topic(topic).schema
        yield from _read(self._database, self.number(topic), partition, start, behind, wanted)

    def slices(self, topic: str, *, after: Cut, until: Cut, columns: pa.Schema | None = None) -> list[LogSlice]:
        """See `Log.slices`."""
        wanted = schema_text(columns or self._topic(topic).schema)
        found: list[LogSlice] = []
        for partition in range(self._topic(topic).partitions):
            bounds = after.end(topic, partition), until.end(topic, partition)
            first = behind = size = -1
            for each in self._entries(topic, partition, *bounds):
                if first < 0:
                    first, size = each.offset, 0
                behind, size = each.end, size + each.bytes
                if size >= _SLICE_BYTES:
                    found.append(
                        OneFileSlice(self.path, self.number(topic), partition, first, behind, size, wanted)
                    )
                    first = -1
            if first >= 0:
                found.append(OneFileSlice(self.path, self.number(topic), partition, first, behind, size, wanted))
        return found

    def start(self, topic: str, partition: int) -> int:
        """See `Log.start`."""
        return self._bounds(topic, partition)[0]

    def offset_at(self, topic: str, partition: int, received_at: int) -> int:
        """See `Log.offset_at`."""
        entries = self._entries(topic, partition, 0)
        later = (each.offset for each in entries if each.received_at >= received_at)
        return next(later, self._bounds(topic, partition)[1])

    def watch(self, topics: Sequence[str]) -> Watch:
        """See `Log.watch`. Whatever is written is news."""
        return Watch([f"{self.path}-wal"])

    # -- keeping house

    def locks(self) -> Sequence[tuple[str, Lock]]:
        """See `Log.locks`. SQLite's own end with whoever holds them."""
        return ()

    def trim(self, topic: str, partition: int, before: int) -> int:
        """See `Log.trim`."""
        place = (self.number(topic), partition)
        with self._writing() as database:
            start, behind = self._bounds(topic, partition)
            kept = [each.offset for each in self._entries(topic, partition, 0) if each.end > before]
            first = max(start, kept[0] if kept else behind)
            database.execute("DELETE FROM records WHERE topic = ? AND partition = ? AND first < ?", (*place, first))
            database.execute("UPDATE partitions SET start = ? WHERE topic = ? AND partition = ?", (first, *place))
        return first

    def size(self, topic: str) -> TopicSize:
        """See `Log.size`."""
        bounds = [self._bounds(topic, partition) for partition in range(self._topic(topic).partitions)]
        query = "SELECT coalesce(sum(length(rows)), 0) FROM records WHERE topic = ?"
        (size,) = self._database.execute(query, (self.number(topic),)).fetchone()
        return TopicSize(sum(behind - start for start, behind in bounds), size, 1)

    def verify(self, topic: str) -> None:
        """See `Log.verify`. Whether rows are missing; that none has changed is SQLite's to tell."""
        for partition in range(self._topic(topic).partitions):
            at, behind = self._bounds(topic, partition)
            for records in self.read(topic, partition, at):
                if records.offset != at:
                    raise LogDamaged("records are missing", segment=self.path, byte=0)
                at = records.end
            if at != behind:
                raise LogDamaged("records are missing", segment=self.path, byte=0)

    def drop(self, topic: str) -> None:
        """See `Log.drop`."""
        number = self.number(topic)
        with self._writing() as database:
            for table in ("partitions", "records", "producers"):
                database.execute(f"DELETE FROM {table} WHERE topic = ?", (number,))
        del self._topics[topic]

    def close(self) -> None:
        """See `Log.close`."""
        if hasattr(self._local, "database"):
            self._local.database.close()
            del self._local.database
        self._closed = True


def _written(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def open_one_file_log(url: str, folder: str, store: Store, clock: Clock) -> OneFileLog:
    """As it is registered for URLs like `one-file:///data/shop.log`."""
    return OneFileLog(urlsplit(url).path, store, clock=clock)
