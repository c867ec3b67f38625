"""Producers: what a partition remembers of idempotent appends."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

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
