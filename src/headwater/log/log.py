"""The protocol that every log fulfils. `tests/contracts/log.py` is its specification."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.lock import Lock
from headwater.log.cut import Cut
from headwater.log.entry import Records
from headwater.log.slice import LogSlice
from headwater.position import Position
from headwater.watch import News


@dataclass(frozen=True, slots=True)
class TopicLog:
    """A topic as the log sees it. `number` tells it from an earlier topic of the same name.

    The schema is marked if the topic was altered (see `change.columns`). Records keep that with which they were
    written; they are read with whatever the topic has come to have.
    """

    name: str
    number: int
    schema: pa.Schema
    partitions: int = 1
    durable: bool = True


class TopicDropped(HeadwaterError):
    """Somebody dropped a topic while it was used, perhaps another process."""

    def __init__(self, topic: str) -> None:
        super().__init__("the topic was dropped", where=topic, hint="declare it again, if it is to be there")


@dataclass(frozen=True, slots=True)
class TopicSize:
    """What a topic takes up. `records` counts offsets from the first kept to the next, gaps included."""

    records: int
    bytes: int
    segments: int


Parts = Mapping[int, pa.RecordBatch]
"""Records by the partition they go to."""


class Transaction(Protocol):
    """Appends to several topics that are stored all or not at all. Used by one thread."""

    def append(self, topic: str, parts: Parts) -> None:
        """Add records; they may be far more than fits memory."""
        ...

    def keep(self, name: str, value: str) -> None:
        """Keep a value in the store with the commit: a source's offset, a consumer's."""
        ...

    def commit(self) -> Position:
        """Make everything visible at once and lasting, or raise and make nothing visible."""
        ...

    def abort(self) -> None:
        """Throw everything away; no error after `commit`."""
        ...


class Log(Protocol):
    """Topics of records in partitions. Safe for threads and for many processes at once.

    Within a partition offsets increase strictly and are never used twice; gaps are legal.
    """

    def declare(self, topic: TopicLog) -> None:
        """Make a topic known to this process, and make its partitions if they are new.

        The same one again, altered since, is known with its later schema from then on, and never with an earlier.
        """
        ...

    def number(self, topic: str) -> int:
        """The number under which a topic is known here now."""
        ...

    def append(
        self,
        topic: str,
        parts: Parts,
        *,
        producer: str | None = None,
        sequence: int | None = None,
        aside: tuple[str, Parts] | None = None,
    ) -> Position:
        """Store the parts all or not at all and return when they are as lasting as the topic promises.

        With a producer, the same sequence again stores nothing and returns the same position, and a skipped one is
        a `SequenceGap`. `aside` goes to another topic with them (dead letters). Parts of an earlier schema of the
        topic are stored as well: nothing but the columns that have gone since is lost of them.
        """
        ...

    def transaction(self) -> Transaction:
        """Begin a transaction."""
        ...

    def cut(self, topics: Sequence[str], *, after: Cut | None = None, target: int | None = None) -> Cut:
        """An exact, causal and lasting cut behind `after`, of about `target` rows; never splits a transaction."""
        ...

    def read(
        self, topic: str, partition: int, start: int, end: int | None = None, *, columns: pa.Schema | None = None
    ) -> Iterator[Records]:
        """The committed records from an offset on, in order, up to `end` or the first undecided one.

        They have `columns`, or those of the topic as it is known here. `DeclarationChanged`, to be tried again, if
        some of them are of a later schema.
        """
        ...

    def slices(self, topic: str, *, after: Cut, until: Cut, columns: pa.Schema | None = None) -> list[LogSlice]:
        """The committed records between two cuts, as slices for other processes; each partition's in order.

        They are read with `columns`, or those of the topic as it is known here.
        None is so large that a worker could not take it as a part of its work, unless a single append is.
        """
        ...

    def start(self, topic: str, partition: int) -> int:
        """The first offset that is still kept."""
        ...

    def offset_at(self, topic: str, partition: int, received_at: int) -> int:
        """The first offset received at that time or later; the end of the partition if there is none."""
        ...

    def watch(self, topics: Sequence[str]) -> News:
        """Watch topics from now on."""
        ...

    def locks(self) -> Iterable[tuple[str, Lock]]:
        """Every lock that a process may sit on so that nobody can append or cut, with what it guards; inner first.

        None where no process can keep others waiting.
        """
        ...

    def trim(self, topic: str, partition: int, before: int) -> int:
        """Forget records before an offset, as far as the storage allows; returns the first offset kept."""
        ...

    def size(self, topic: str) -> TopicSize:
        """What a topic takes up."""
        ...

    def verify(self, topic: str) -> None:
        """Read all of a topic; `LogDamaged` if anything that was stored is missing or changed."""
        ...

    def drop(self, topic: str) -> None:
        """Remove a topic with its records. Whoever still appends to it gets an error."""
        ...

    def close(self) -> None:
        """Give back what it holds; undecided transactions of this process are taken back."""
        ...
