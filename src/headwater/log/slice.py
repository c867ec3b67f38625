"""LogSlice: a stretch of a topic that travels as plain data, and that any process can read by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from headwater.log.entry import Records


class LogSlice(Protocol):
    """Committed records of one partition, one behind the other. `tests/contracts/log.py` is its specification.

    It is a dataclass of numbers and texts, so that it can be sent to workers: who has it can read it without the
    log that it came from and without the store, on any machine that reaches what the log is kept in.
    """

    @property
    def partition(self) -> int:
        """The partition that its records belong to."""
        ...

    @property
    def bytes(self) -> int:
        """About how many bytes its records take, more than 0."""
        ...

    def read(self) -> Iterator[Records]:
        """The records in the order of their offsets; `LogDamaged` if they are not what was written."""
        ...
