"""Entries of the store that are read again and again, and seldom change: opened once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Opened(Generic[Value]):
    """What rows were when they were last asked for, by all that they hold. Safe for threads."""

    def __init__(self) -> None:
        self._known: Mapping[Hashable, Value] = {}

    def all(self, rows: Mapping[Hashable, Callable[[], Value]]) -> list[Value]:
        """The value of each row, made only if that very row was not among those of the last time."""
        known = self._known
        made = {row: known[row] if row in known else make() for row, make in rows.items()}
        self._known = made
        return list(made.values())
