"""Backlog: how far cursors are behind, and how far they may be."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from headwater.state.files import StateFiles
from headwater.state.manifest import files_of
from headwater.store import CursorRecord, Store

_SECOND = 1_000_000
_DAY = 86_400
_GIGABYTE = 10**9
_WARNED = 0.8
"""Of the limits; from there on it is told that a cursor will be given up."""
_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a cursor may be behind before it is given up: in time, or in bytes of files that are kept for it."""

    seconds: float = 7 * _DAY
    bytes: int = 10 * _GIGABYTE


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a cursor is behind: since how long there is something that it has not taken in, and how much."""

    cursor: CursorRecord
    seconds: float
    bytes: int
    limits: Limits

    @property
    def is_too_far(self) -> bool:
        """Whether it is to be given up."""
        return self._share > 1

    @property
    def warning(self) -> str:
        """That it was given up, or soon will be; empty otherwise."""
        if self.cursor.given_up:
            return f"it was given up: {self.cursor.given_up}"
        return f"{self}; it is given up behind {self._limit}" if self._share >= _WARNED else ""

    @property
    def _share(self) -> float:
        return max(self.seconds / self.limits.seconds, self.bytes / self.limits.bytes)

    @property
    def _limit(self) -> str:
        return f"{self.limits.seconds / _DAY:g} days or {self.limits.bytes / _GIGABYTE:g} GB"

    def __str__(self) -> str:
        return f"it is {self.seconds / _DAY:.2f} days and {self.bytes / _GIGABYTE:.2f} GB behind"


class Backlog:
    """Measures what cursors are behind; what it has measured never changes, so it is remembered. For one thread.

    Bytes are those of the files with what a cursor has not taken in, which it keeps from being removed.
    """

    def __init__(self, store: Store, files: StateFiles, limits: Limits | None = None) -> None:
        self._store = store
        self._files = files
        self._limits = limits or Limits()
        self._measured: dict[str, _Measured] = {}

    def lags(self, now: int) -> list[Lag]:
        """All cursors, by name."""
        return [self._lag(cursor, now) for cursor in self._store.cursors.all()]

    def _lag(self, cursor: CursorRecord, now: int) -> Lag:
        if cursor.given_up:
            return Lag(cursor, 0.0, 0, self._limits)
        seconds = 0.0 if cursor.behind is None else max(0.0, (now - cursor.behind) / _SECOND)
        size = sum(self._behind(arrangement, cursor.tick) for arrangement in cursor.changes)
        return Lag(cursor, seconds, size, self._limits)

    def _behind(self, arrangement: str, tick: int) -> int:
        measured = self._measured.get(arrangement)
        if measured is None or tick < measured.since:
            measured = self._measured[arrangement] = _Measured(tick, [], [0])
        for number, detail in self._store.details(arrangement, after=measured.last, until=_ALL):
            measured.ticks.append(number)
            measured.totals.append(measured.totals[-1] + self._size(detail))
        return measured.totals[-1] - measured.totals[bisect_right(measured.ticks, tick)]

    def _size(self, detail: Mapping[str, Any]) -> int:
        size = 0
        for file in set(files_of(detail)):
            with suppress(FileNotFoundError):
                size += self._files.size(file)
        return size


@dataclass(slots=True)
class _Measured:
    """The ticks that changed an arrangement after one of them, and the bytes of all up to each."""

    since: int
    ticks: list[int]
    totals: list[int]

    @property
    def last(self) -> int:
        return self.ticks[-1] if self.ticks else self.since
