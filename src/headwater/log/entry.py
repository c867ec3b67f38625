"""Entry: one appended batch as the log knows it, whatever kind of segment holds it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in a partition: the segment's first offset and a byte in it. Marks compare in log order."""

    segment: int
    byte: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What was appended at once to one partition. `place` belongs to the segment that holds it."""

    offset: int
    count: int
    sequence: int
    received_at: int
    producer: str | None
    producer_sequence: int
    transaction: bytes | None
    place: Mark
    after: Mark

    @property
    def end(self) -> int:
        """The offset after its last record."""
        return self.offset + self.count

    @property
    def bytes(self) -> int:
        """How many bytes it takes in its segment."""
        return self.after.byte - self.place.byte


@dataclass(frozen=True, slots=True)
class Records:
    """A run of records of one partition, as readers get them. Offsets count up from `offset`."""

    partition: int
    offset: int
    received_at: int
    sequence: int
    batch: pa.RecordBatch

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.offset + int(self.batch.num_rows)
