"""Run: a log that is used and whose promises are written into a ledger; and what to do with one after a crash."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from headwater import crashpoint
from headwater.errors import HeadwaterError, SequenceGap
from headwater.log import Cut, EmbeddedLog
from headwater.store import LeaseRecord, TickRecord
from headwater.testing import ManualClock
from tests.crash.ledger import Ledger, Operation, Place, Promises, Tick, batch_of, visible
from tests.crash.recording_files import RecordingFiles, RecordingStore


class Run:
    """One folder with a log and a store on recording files. `log` is the first of the logs that are opened on it.

    Every call notes in the ledger what was tried, and what came of it. A `HeadwaterError` is noted and kept in
    `errors` if `may_fail`, else raised; `certain` says whether an error means that nothing is stored.
    """

    def __init__(
        self,
        root: str,
        ledger: Ledger,
        *,
        files: RecordingFiles | None = None,
        boot: int = 1,
        segment_bytes: int = 1 << 20,
        may_fail: bool = False,
        certain: bool = True,
    ) -> None:
        self.root = root
        self.ledger = ledger
        self.boot = boot
        self.may_fail = may_fail
        self.certain = certain
        self.errors: list[HeadwaterError] = []
        self.files = files or RecordingFiles()
        self.files.adopt(root)
        self.clock = ManualClock()
        self._segment_bytes = segment_bytes
        self.logs: list[EmbeddedLog] = []
        self._log: EmbeddedLog | None = None
        self.store = RecordingStore(os.path.join(root, "headwater.db"), self.files)

    @property
    def log(self) -> EmbeddedLog:
        if self._log is None:
            self._log = self.open()
        return self._log

    def open(self) -> EmbeddedLog:
        """Another log on the same folder, as another process would have it."""
        log = EmbeddedLog(
            os.path.join(self.root, "log"),
            self.store,
            files=self.files,
            clock=self.clock,
            boot=self.boot,
            segment_bytes=self._segment_bytes,
        )
        self.logs.append(log)
        for topic in self.ledger.topics:
            log.declare(topic)
        return log

    def now(self) -> int:
        return len(self.files.events)

    # -- using it

    def append(
        self,
        topic: str,
        counts: Mapping[int, int],
        *,
        producer: str | None = None,
        sequence: int | None = None,
        log: EmbeddedLog | None = None,
    ) -> Operation:
        """Append so many new rows to each partition."""
        rows = self._rows({(topic, partition): count for partition, count in counts.items()})
        name = f"append {len(self.ledger.operations)}"
        operation = Operation(name, rows, self.boot, self.now(), producer=producer, sequence=sequence)
        self.ledger.operations.append(operation)
        return self.try_append(operation, topic, log=log)

    def try_append(self, operation: Operation, topic: str, *, log: EmbeddedLog | None = None) -> Operation:
        """Append an operation's rows, for the first time or again."""
        parts = {partition: batch_of(rows) for (_, partition), rows in operation.rows.items()}
        at = self.ledger.operations.index(operation)
        try:
            log = log or self.log
            position = log.append(topic, parts, producer=operation.producer, sequence=operation.sequence)
        except HeadwaterError as error:
            tried = self._failed(operation, error)
        else:
            tried = self._acknowledged(operation, position=position)
        meanwhile = self.ledger.operations[at]
        if meanwhile is not operation and meanwhile.acknowledged is not None:
            return meanwhile
        self.ledger.operations[at] = tried
        return tried

    def transaction(self, counts: Mapping[Place, int], *, log: EmbeddedLog | None = None) -> Operation:
        """Append to several places at once, in two steps each, and keep a value."""
        name = f"transaction {len(self.ledger.operations)}"
        operation = Operation(name, self._rows(counts), self.boot, self.now(), keeps=True)
        at = len(self.ledger.operations)
        self.ledger.operations.append(operation)
        try:
            transaction = (log or self.log).transaction()
            for half in (0, 1):
                for (topic, partition), rows in operation.rows.items():
                    if rows[half::2]:
                        transaction.append(topic, {partition: batch_of(rows[half::2])})
            transaction.keep(name, "kept")
            position = transaction.commit()
        except HeadwaterError as error:
            self.ledger.operations[at] = self._failed(operation, error)
        else:
            halves = {place: rows[0::2] + rows[1::2] for place, rows in operation.rows.items()}
            operation = dataclasses.replace(operation, rows=halves)
            self.ledger.operations[at] = self._acknowledged(operation, position=position)
        return self.ledger.operations[at]

    def _rows(self, counts: Mapping[Place, int]) -> dict[Place, tuple[int, ...]]:
        rows: dict[Place, tuple[int, ...]] = {}
        for place, count in counts.items():
            rows[place] = tuple(range(self.ledger.next_row, self.ledger.next_row + count))
            self.ledger.next_row += count
        return rows

    def _acknowledged(self, operation: Operation, **changes: object) -> Operation:
        changed: Operation = dataclasses.replace(operation, acknowledged=self.now(), refused=False, **changes)  # type: ignore[arg-type]
        return changed

    def _failed(self, operation: Operation, error: HeadwaterError) -> Operation:
        if not self.may_fail:
            raise error
        self.errors.append(error)
        return dataclasses.replace(operation, refused=self.certain)

    def read(self, *, log: EmbeddedLog | None = None) -> None:
        """Read everything, and note what was seen."""
        try:
            for place in self.ledger.places():
                for records in (log or self.log).read(*place, 0):
                    self.ledger.sequences.append((self.now(), records.sequence))
                    for i, row in enumerate(records.batch.column("id").to_pylist()):
                        self.ledger.seen.append((self.now(), place, records.offset + i, row))
        except HeadwaterError as error:
            self._note(error)

    def tick(self, *, log: EmbeddedLog | None = None) -> None:
        """Cut, and commit the cut as a tick."""
        log = log or self.log
        topics = [topic.name for topic in self.ledger.topics]
        last = self.store.last_tick()
        try:
            cut = log.cut(topics, after=Cut.from_dict(last.cut) if last else None)
            content = visible(log, cut.ends)
            epoch = self.store.lease().epoch or self.store.raise_epoch(_NOBODY.holder, seen=0)
            number = last.number + 1 if last else 1
            self.store.commit(TickRecord(number, self.clock.now(), cut.as_dict()), epoch=epoch)
        except HeadwaterError as error:
            self._note(error)
            return
        below = {p: [(offset, row) for offset, row in content[p] if offset < end] for p, end in cut.ends.items()}
        self.ledger.ticks.append(Tick(self.now(), cut, below))
        self.ledger.sequences.append((self.now(), cut.sequence))

    def trim(self, place: Place, before: int) -> None:
        self.ledger.trims.append((self.now(), place, before))
        try:
            self.log.trim(*place, before)
        except HeadwaterError as error:
            self._note(error)

    def _note(self, error: HeadwaterError) -> None:
        if not self.may_fail:
            raise error
        self.errors.append(error)

    # -- afterwards

    def use_each_log(self) -> None:
        """One append to each place by each log that is open."""
        for log in [log for log in self.logs if len(log._topics) == len(self.ledger.topics)]:
            for topic, partition in self.ledger.places():
                self.append(topic, {partition: 1}, log=log)

    def check(self, log: EmbeddedLog | None = None) -> Promises:
        """Hold what a log shows against the ledger."""
        promises = Promises(self.ledger, log or self.log, self.store)
        promises.check()
        return promises

    def go_on(self) -> None:
        """What a user does after a crash: look, repeat what was not acknowledged, append more, tick."""
        before = self.check()
        self.read()
        for operation in list(self.ledger.operations):
            if operation.producer is not None:
                self._repeat(operation)
        last = self.ledger.highest_sequence()
        used = {place: max([-1, *(offset for offset, _ in found)]) for place, found in before.visible.items()}
        for _, place, offset, _ in self.ledger.seen:
            used[place] = max(used[place], offset)
        for topic, partition in self.ledger.places():
            added = self.append(topic, {partition: 2})
            ((_, offset), _) = added.offsets().values()
            assert offset > used[topic, partition], f"offset {offset} of {topic} {partition} was used before"
        after = self.check()
        for topic, partition in self.ledger.places():
            newest = list(self.log.read(topic, partition, used[topic, partition] + 1))[-1]
            assert newest.sequence > last, f"the sequence went down from {last} to {newest.sequence}"
            assert after.visible[topic, partition][-1][1] == newest.batch.column("id")[-1].as_py()
        self.tick()
        self.check()
        for topic_log in self.ledger.topics:
            self.log.verify(topic_log.name)

    def _repeat(self, operation: Operation) -> None:
        """An idempotent append again: the same position if it was acknowledged; stored once in any case."""
        ((topic, _), *_) = operation.rows
        try:
            repeated = self.try_append(operation, topic)
        except SequenceGap:
            # It was refused, the producer went on, and now its place is taken: not stored, and not said to be.
            assert operation.acknowledged is None
            return
        if operation.position is not None and self._is_kept(operation):
            assert repeated.position == operation.position, f"{operation.name} moved to {repeated.position}"

    def _is_kept(self, operation: Operation) -> bool:
        return all(offset >= self.log.start(*place) for place, offset in operation.offsets().values())

    def abandon(self) -> None:
        """Leave everything as a killed process would: nothing is written, only the locks are free."""
        crashpoint.arm(None)
        for log in self.logs:
            if log._owner._lock is not None:
                log._owner._lock.close()
            for partition in log._partitions.values():
                partition.close()
        self.logs.clear()
        self.store.close()

    def close(self) -> None:
        for log in self.logs:
            log.close()
        self.logs.clear()
        self._log = None
        self.store.close()


_NOBODY = LeaseRecord(0, {"host": "nowhere", "boot": 0, "pid": 1, "started": 0})
