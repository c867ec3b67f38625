"""Checksums of a run: one for each block of its bytes, so that a lookup checks what it touches and no more.

A block has 64 KiB, the last one what is left. Their checksums (XXH3-64) are a table behind the run, and the run's
entry in the store has the checksum of that table: so a file is bound to what was committed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from xxhash import xxh3_64, xxh3_64_intdigest

BLOCK = 1 << 16
_SHIFT = 16
_AT_ONCE = 1 << 20
"""What is no larger is checked as a whole."""


def table_length(length: int) -> int:
    """How many bytes the checksums of so many bytes take."""
    return -(-length // BLOCK) * 8


class Summing:
    """The checksums of bytes that are written one behind the other."""

    def __init__(self) -> None:
        self._sums: list[int] = []
        self._digest = xxh3_64()
        self._left = BLOCK

    def add(self, data: memoryview) -> None:
        """Take more bytes."""
        while len(data):
            part = data[: self._left]
            self._digest.update(part)
            self._left -= len(part)
            if not self._left:
                self._end_block()
            data = data[len(part) :]

    def _end_block(self) -> None:
        self._sums.append(self._digest.intdigest())
        self._digest.reset()
        self._left = BLOCK

    def table(self) -> bytes:
        """The checksums of all blocks, once everything was added."""
        if self._left < BLOCK:
            self._end_block()
        return struct.pack(f"<{len(self._sums)}Q", *self._sums)


Tell = Callable[[str, int], Exception]
"""Makes the error for what is wrong at a byte of a run."""


class Blocks:
    """The bytes of a run, each block compared with its checksum once, before it is used. Safe for threads.

    The error that `tell` makes is raised if one is not what was written. `is_whole` once every block was compared.
    """

    def __init__(self, data: memoryview, table: memoryview, checksum: int, tell: Tell) -> None:
        if xxh3_64_intdigest(table) != checksum:
            raise tell("the checksums behind the run are not those that were written", len(data))
        self._data = data
        self._tell = tell
        self._sums = struct.unpack(f"<{len(table) // 8}Q", table)
        self._waiting = bytearray(b"\1" * len(self._sums))
        self.is_whole = False
        if len(data) <= _AT_ONCE:
            self.check(0, len(data))

    def check(self, start: int, end: int) -> None:
        """Compare the blocks that have bytes from `start` up to `end`."""
        first, last = start >> _SHIFT, -(-end >> _SHIFT)
        number = self._waiting.find(1, first, last)
        if number < 0:
            return
        while number >= 0:
            place = number << _SHIFT
            if xxh3_64_intdigest(self._data[place : place + BLOCK]) != self._sums[number]:
                size = min(BLOCK, len(self._data) - place)
                raise self._tell(f"these {size} bytes are not what was written", place)
            self._waiting[number] = 0
            number = self._waiting.find(1, number + 1, last)
        self.is_whole = self.is_whole or self._waiting.find(1) < 0
