"""SequenceNumbers: one counter for the whole pipeline, so that cuts can be causal.

A file `sequence` in the log's folder, never synced: checksum (XXH3-64 of the rest), boot of the machine, last
number taken, 8 bytes each, little-endian. After a restart of the machine, or if it is harmed, counting goes on
far above the number from which it began before, which the store keeps as `log.sequence`, and above any number that
a frame on disk carries. So no number is given twice, though the frames that carried it may be lost.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

from xxhash import xxh3_64_intdigest

from headwater.files import Files
from headwater.lock import Lock
from headwater.store.store import Store

AFTER_A_RESTART = 1 << 32
_BEGINNING = "log.sequence"
_RECORD = struct.Struct("<QQQ")


class SequenceNumbers:
    """Gives out increasing numbers to all processes. `highest` finds the largest number in any frame."""

    def __init__(self, files: Files, folder: str, boot: int, store: Store, highest: Callable[[], int]) -> None:
        self._files = files
        self._boot = boot
        self._store = store
        self._highest = highest
        self.lock = Lock(os.path.join(folder, "sequence.lock"))
        self._handle = -1
        self._handle = files.open(os.path.join(folder, "sequence"), create=True)

    def take(self) -> int:
        """The next number. Its taker holds the lock of every partition where a frame will carry it."""
        with self.lock:
            number = self._last() + 1
            self._publish(number)
            return number

    def last(self) -> int:
        """The last number taken by anyone."""
        with self.lock:
            return self._last()

    def _last(self) -> int:
        data = self._files.read(self._handle, _RECORD.size, 0).ljust(_RECORD.size, b"\0")
        checksum, boot, number = _RECORD.unpack(data)
        if boot == self._boot and xxh3_64_intdigest(data[8:]) == checksum:
            return int(number)
        began = self._store.kept(_BEGINNING)
        highest = max(self._highest(), int(began or 0))
        number = highest + AFTER_A_RESTART if highest or began is not None else 0
        self._store.keep({_BEGINNING: str(number)})
        self._publish(number)
        return number

    def _publish(self, number: int) -> None:
        body = _RECORD.pack(0, self._boot, number)[8:]
        self._files.write(self._handle, [xxh3_64_intdigest(body).to_bytes(8, "little") + body], 0)

    def close(self) -> None:
        """Close its files. Safe to call twice; whoever still uses it gets an error, never another file."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            self._files.close(handle)
        self.lock.close()

    def __del__(self) -> None:
        self.close()
