"""A run: sorted rows that never change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

LOWEST = -(1 << 63)
HIGHEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of a file: consolidated rows sorted by `_hash` (signed), as one or more Arrow IPC streams.

    `file` is relative to the state folder, and the streams are its `length` bytes from `offset`, a multiple of 64.
    Only rows with `low` <= `_hash` <= `high` count, so that a merge can go through the hashes piece by piece,
    narrowing its inputs, and a bucket is just a range of hashes. `rows` and, roughly, `bytes` say how much counts:
    what it takes in memory, not on disk, since that is what work with it costs.
    `whole` is the number of rows of all pieces together, if this is a piece, else its own: it decides with which
    runs to merge. `checksum` is that of the checksums of its bytes, which lie behind them; None if an older version
    wrote it without any. `weight` is the sum of the weights of what counts, None if that is not known: then the run
    was narrowed, or is of an older version.
    """

    file: str
    offset: int
    length: int
    rows: int
    bytes: int
    low: int = LOWEST
    high: int = HIGHEST
    whole: int = 0
    checksum: int | None = None
    weight: int | None = None

    def __post_init__(self) -> None:
        if not self.whole:
            object.__setattr__(self, "whole", self.rows)

    def __hash__(self) -> int:
        """Of what tells runs apart: they are looked for among others often."""
        return hash((self.file, self.offset, self.low))

    def narrowed(self, low: int, high: int, rows: int) -> Run:
        """What is left of it in a smaller range of hashes, which has so many rows."""
        left = self.bytes * rows // max(self.rows, 1)
        weight = self.weight if rows == self.rows else None
        low, high = max(self.low, low), min(self.high, high)
        return replace(self, low=low, high=high, rows=rows, bytes=left, weight=weight)

    def as_dict(self) -> dict[str, Any]:
        """The run as plain data, without what most runs have alike: a tick writes hundreds."""
        made: dict[str, Any] = {"file": self.file, "offset": self.offset, "length": self.length}
        made |= {"rows": self.rows, "bytes": self.bytes}
        if (self.low, self.high) != (LOWEST, HIGHEST):
            made |= {"low": self.low, "high": self.high}
        if self.whole != self.rows:
            made["whole"] = self.whole
        return made | {"checksum": self.checksum, "weight": self.weight}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Run:
        """The run that `as_dict` described."""
        return cls(**data)
