"""Cut: up to where, in every partition, a tick reads the log."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from headwater.log.entry import Entry

Place = tuple[str, int]
CUT_BYTES = 1 << 30
"""A cut with a target takes no more bytes either, unless one append has more: rows may be of any size."""


@dataclass(frozen=True, slots=True)
class Cut:
    """All records below `ends`, which are exactly those whose sequence is at most `sequence`.

    `rows` counts the committed records since the cut before.
    """

    sequence: int = 0
    ends: Mapping[Place, int] = field(default_factory=dict)
    rows: int = 0

    def end(self, topic: str, partition: int) -> int:
        """The offset after the last record of a partition that belongs to the cut."""
        return self.ends.get((topic, partition), 0)

    def as_dict(self) -> dict[str, Any]:
        """The cut as JSON-ready data."""
        ends: dict[str, dict[str, int]] = {}
        for (topic, partition), end in sorted(self.ends.items()):
            ends.setdefault(topic, {})[str(partition)] = end
        return {"sequence": self.sequence, "rows": self.rows, "ends": ends}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Cut:
        """Read what `as_dict` gave."""
        ends = {(t, int(p)): end for t, partitions in data["ends"].items() for p, end in partitions.items()}
        return cls(data["sequence"], ends, data["rows"])


def choose(
    entries: Mapping[Place, Iterable[Entry]],
    *,
    after: Cut,
    sequence: int,
    target: int | None,
    decision: Callable[[bytes], bool | None],
    most_bytes: int = CUT_BYTES,
) -> tuple[Cut, dict[Place, Entry]]:
    """Take entries in the order of their sequence, up to `sequence`, an open transaction, or so many rows or bytes.

    All entries of one append or transaction carry the same sequence, so taking whole sequences splits none. At
    least one is taken if there is any. Returns the cut and the last entry taken of each partition.
    """
    ends, rows, size, reached = dict(after.ends), 0, 0, max(after.sequence, sequence)
    last: dict[Place, Entry] = {}
    for number, group in groupby(_merged(entries), key=lambda pair: pair[1].sequence):
        step = list(group)
        if number > sequence:
            break
        fates = [decision(entry.transaction) if entry.transaction else True for _, entry in step]
        added = sum(entry.count for (_, entry), fate in zip(step, fates, strict=True) if fate)
        larger = sum(entry.bytes for (_, entry), fate in zip(step, fates, strict=True) if fate)
        is_full = target is not None and (rows + added > target or size + larger > most_bytes)
        if None in fates or (rows and is_full):
            reached = number - 1
            break
        rows += added
        size += larger
        for place, entry in step:
            ends[place] = entry.end
            last[place] = entry
        if target is not None and rows >= target:
            reached = number
            break
    return Cut(reached, ends, rows), last


def _merged(entries: Mapping[Place, Iterable[Entry]]) -> Iterator[tuple[Place, Entry]]:
    def labelled(place: Place, of_one: Iterable[Entry]) -> Iterator[tuple[Place, Entry]]:
        for entry in of_one:
            yield place, entry

    streams = [labelled(place, of_one) for place, of_one in entries.items()]
    return heapq.merge(*streams, key=lambda pair: pair[1].sequence)
