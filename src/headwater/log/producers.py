"""Producers: what a partition remembers of idempotent appends."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from headwater.errors import HeadwaterError
from headwater.log.entry import Entry, Mark

REMEMBERED = 5


@dataclass(frozen=True, slots=True)
class Appended:
    """One batch of a producer in one partition. `after` is the byte behind it, in the active segment only."""

    sequence: int
    first: int
    end: int
    transaction: bytes | None
    after: Mark | None = None


def check_producer(topic: str, producer: str | None, sequence: int | None) -> None:
    """An error unless both are given, or neither, and are what can be remembered."""
    if (producer is None) != (sequence is None):
        msg = "an idempotent append needs a producer and a sequence"
        raise HeadwaterError(msg, where=topic, hint="give both, or neither")
    if producer is not None and not (
        isinstance(producer, str) and 0 < len(producer) <= 200 and producer.isprintable()
    ):
        msg = f"producer is {str(producer)[:50]!r}"
        raise HeadwaterError(msg, where=topic, hint="it is a name of 1 to 200 printable characters")
    if sequence is not None and (type(sequence) is not int or not -(2**63) <= sequence < 2**63):
        msg = f"sequence is {sequence!r}"
        raise HeadwaterError(msg, where=topic, hint="it is a whole number of at most 64 bits")


def _outlives(added: Appended, batch: Appended) -> bool:
    """Whether a batch is still worth remembering once another one was added.

    A sequence is written again only after the try before was taken back, so the new try takes its place.
    """
    return batch.sequence != added.sequence and batch.sequence > added.sequence - REMEMBERED


class Producers:
    """The last few sequences of each producer of a partition, and how far the log was read for them.

    A batch that spans several frames or partitions is a transaction and counts only once that is committed.
    Guarded by the partition's lock.
    """

    def __init__(self, snapshot: dict[str, list[Any]], read_to: Mark, generation: int) -> None:
        self.read_to = read_to
        self.generation = generation
        self._known: dict[str, list[Appended]] = {
            name: [Appended(s, first, end, bytes.fromhex(tx) if tx else None) for s, first, end, tx in batches]
            for name, batches in snapshot.items()
        }

    def learn(self, entries: Iterable[Entry]) -> None:
        """Take note of entries that follow what was read so far."""
        for entry in entries:
            self.read_to = entry.after
            if entry.producer is None:
                continue
            known = self._known.get(entry.producer, [])
            added = Appended(entry.producer_sequence, entry.offset, entry.end, entry.transaction, entry.after)
            if known and known[-1].sequence == added.sequence and known[-1].transaction == added.transaction:
                added = dataclasses.replace(added, first=known[-1].first)
            self._known[entry.producer] = [*filter(partial(_outlives, added), known), added]

    def batches(self, producer: str, committed: Callable[[bytes], bool]) -> list[Appended]:
        """The producer's remembered batches that are stored for good, oldest first."""
        batches = self._known.get(producer, [])
        return [batch for batch in batches if batch.transaction is None or committed(batch.transaction)]

    def snapshot(self) -> dict[str, list[Any]]:
        """What the next segment's header must carry."""
        return {
            name: [[b.sequence, b.first, b.end, b.transaction.hex() if b.transaction else None] for b in batches]
            for name, batches in self._known.items()
        }
