"""Commit: how batches get into partitions so that all of them are stored or none."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from headwater import crashpoint
from headwater.clock import Clock
from headwater.errors import HeadwaterError, SequenceGap, Unavailable
from headwater.log.cut import Place
from headwater.log.decisions import Decisions, Owner
from headwater.log.entry import Entry
from headwater.log.partition import Partition
from headwater.log.producers import REMEMBERED, Appended
from headwater.log.segment import Prepared, Stamp, prepare
from headwater.log.sequence import SequenceNumbers
from headwater.position import Position
from headwater.store.store import Store

Targets = Mapping[Place, tuple[Partition, Iterable[Prepared]]]
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class _Stored:
    """The last entry that was written to a partition."""

    partition: Partition
    entry: Entry
    generation: int


class Commit:
    """Writes to partitions whose locks it takes in one order, under one sequence number.

    A single batch for a single partition is one frame, and a frame is whole or absent. Anything more is a
    transaction: its frames count only once the store says so.
    """

    def __init__(
        self, numbers: SequenceNumbers, decisions: Decisions, owner: Owner, store: Store, clock: Clock
    ) -> None:
        self._numbers = numbers
        self._decisions = decisions
        self._owner = owner
        self._store = store
        self._clock = clock

    def store(self, targets: Targets, topic: str) -> Position:
        """Append batches, atomically; the position is that in the topic."""
        identity = None if _is_one_frame(targets) else self._owner.new_transaction()
        with _all_held([partition for partition, _ in targets.values()]) as generations:
            stored = self._write(targets, generations, identity)
        return _within(topic, self._finish(stored, identity))

    def store_once(
        self, targets: Targets, involved: Mapping[Place, Partition], *, topic: str, producer: str, sequence: int
    ) -> Position:
        """Append a producer's batch unless it is stored already.

        All partitions of the topic are held, because together they know the producer's last sequence.
        """
        with _all_held(list(involved.values())) as generations:
            if all(name != topic for name, _ in targets):  # also without a record, the topic knows the sequence
                first = min(place for place in involved if place[0] == topic)
                targets = {**targets, first: (involved[first], [_nothing(involved[first], producer)])}
            identity = None if _is_one_frame(targets) else self._owner.new_transaction()
            known = {
                place: partition.producers().batches(producer, self._committed)
                for place, partition in involved.items()
            }
            last = max((batch.sequence for batches in known.values() for batch in batches), default=None)
            self._make_last_lasting(involved, known, last)
            if last is not None and sequence <= last:
                return self._position_of(involved, known, topic, producer, sequence)
            if last is not None and sequence != last + 1:
                msg = f"producer {producer!r} sent sequence {sequence} after {last}"
                raise SequenceGap(msg, where=topic, hint=f"send {last + 1} first; it is not stored")
            stored = self._write(targets, generations, identity, sequence=sequence)
        return _within(topic, self._finish(stored, identity))

    def store_transaction(self, identity: bytes, targets: Targets, kept: Mapping[str, str]) -> Position:
        """Append everything of an explicit transaction and decide it."""
        with _all_held([partition for partition, _ in targets.values()]) as generations:
            stored = self._write(targets, generations, identity)
        return self._finish(stored, identity, kept=kept, explicit=True)

    # -- writing

    def _write(
        self,
        targets: Targets,
        generations: Mapping[Partition, int],
        identity: bytes | None,
        *,
        sequence: int = 0,
    ) -> dict[Place, _Stored]:
        stored: dict[Place, _Stored] = {}
        stamp = Stamp(self._numbers.take(), self._clock.now(), sequence, identity)
        try:
            for place, (partition, batches) in targets.items():
                for prepared in batches:
                    entry = partition.write(prepared, stamp)
                    stored[place] = _Stored(partition, entry, generations[partition])
        except BaseException:
            if identity is not None:
                self.take_back(identity)
            raise
        return stored

    def _finish(
        self,
        stored: Mapping[Place, _Stored],
        identity: bytes | None,
        *,
        kept: Mapping[str, str] | None = None,
        explicit: bool = False,
    ) -> Position:
        """Make what was written lasting, then decide; outside all locks."""
        try:
            if identity is not None:
                crashpoint.reach("transaction.written")
            for one in stored.values():
                if one.partition.durable or explicit:
                    one.partition.sync(one.entry, one.generation)
            if identity is not None:
                crashpoint.reach("transaction.synced")
                self._decide(identity, kept or {}, stored.values(), explicit=explicit)
        except BaseException:
            if identity is not None:
                self.take_back(identity)
            raise
        if identity is not None:
            for one in stored.values():
                one.partition.announce()
        return Position(tuple(sorted((topic, number, one.entry.end) for (topic, number), one in stored.items())))

    def _decide(
        self, identity: bytes, kept: Mapping[str, str], stored: Collection[_Stored], *, explicit: bool
    ) -> None:
        committed = self._store.decide(
            identity,
            committed=True,
            at=self._clock.now(),
            kept=kept,
            durable=explicit or any(one.partition.durable for one in stored),
            sequence=max((one.entry.sequence for one in stored), default=0),
            places=[one.partition.place for one in stored],
        )
        crashpoint.reach("transaction.decided")
        self._decisions.note(identity, committed=committed)
        if not committed:
            msg = "the transaction was taken back by another process, which took this one for dead"
            raise HeadwaterError(msg, hint="do it again", retry=True)

    def take_back(self, identity: bytes) -> None:
        """Decide against a transaction; if even that fails, leave it to whoever meets it."""
        try:
            self._decisions.note(
                identity, committed=self._store.decide(identity, committed=False, at=self._clock.now())
            )
        except HeadwaterError:
            self._owner.give_up()

    # -- producers

    def _committed(self, transaction: bytes) -> bool:
        """Wait for another process's decision; it needs none of the locks that are held here."""
        deadline = time.monotonic() + _PATIENCE
        while (fate := self._decisions.get(transaction)) is None:
            if time.monotonic() > deadline:
                msg = "the same producer has a batch under way in another process"
                raise Unavailable(msg, retry=True, hint="wait for it, or stop that process")
            time.sleep(0.001)
        return fate

    def _make_last_lasting(
        self, involved: Mapping[Place, Partition], known: Mapping[Place, list[Appended]], last: int | None
    ) -> None:
        """Sync the producer's last batch if nobody has: what is said of it, and what follows it, relies on it.

        Its own append may still wait for the disk, or its process may have been killed before it synced.
        """
        for place, batches in known.items():
            if batches and batches[-1].sequence == last and batches[-1].after and involved[place].durable:
                involved[place].sync_before(batches[-1].after)

    def _position_of(
        self,
        involved: Mapping[Place, Partition],
        known: Mapping[Place, list[Appended]],
        topic: str,
        producer: str,
        sequence: int,
    ) -> Position:
        """Where a batch was stored: from memory, else from the log, else a place that its successors begin at.

        The last only if it may have been trimmed: one that was refused and never sent again is not called stored.
        """
        ends: dict[int, int] = {}
        remembered = [(place, b.end) for place, batches in known.items() for b in batches if b.sequence == sequence]
        last = max(batch.sequence for batches in known.values() for batch in batches)
        if remembered and sequence > last - REMEMBERED:  # each partition forgets by its own batches
            return Position.of(topic, {number: end for (name, number), end in remembered if name == topic})
        for (name, number), partition in involved.items():
            for entry in partition.entries(0, partition.end()) if name == topic else ():
                same = entry.producer == producer and entry.producer_sequence == sequence
                if same and (entry.transaction is None or self._committed(entry.transaction)):
                    ends[number] = entry.end
        if ends:
            return Position.of(topic, ends)
        if not any(partition.is_trimmed() for (name, _), partition in involved.items() if name == topic):
            msg = f"producer {producer!r} sent sequence {sequence}, which was never stored, after a later one"
            raise SequenceGap(msg, where=topic, hint="append the batch again with the producer's next sequence")
        return Position.of(
            topic, {p: batches[0].first for (t, p), batches in known.items() if t == topic and batches}
        )


def _is_one_frame(targets: Targets) -> bool:
    return len(targets) == 1 and all(isinstance(b, list) and len(b) == 1 for _, b in targets.values())


def _within(topic: str, position: Position) -> Position:
    return Position(tuple(end for end in position.ends if end[0] == topic))


def _nothing(partition: Partition, producer: str) -> Prepared:
    """No records, to store a sequence with."""
    return prepare(pa.RecordBatch.from_pylist([], schema=partition.schema()), producer=producer)


class _all_held:  # noqa: N801  reads as a phrase: with _all_held(partitions)
    """Hold several partitions' locks, taken in the order of their folders so that nobody waits in a circle."""

    def __init__(self, partitions: list[Partition]) -> None:
        self._partitions = sorted(set(partitions), key=lambda partition: partition.folder)
        self._stack = ExitStack()

    def __enter__(self) -> dict[Partition, int]:
        with ExitStack() as stack:
            generations = {p: stack.enter_context(p.held()).generation for p in self._partitions}
            self._stack = stack.pop_all()
        return generations

    def __exit__(self, *error: object) -> None:
        self._stack.close()
