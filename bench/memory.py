"""The memory of this process and all that it started: what is its own, apart from mapped files."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType

_EVERY = 0.5


class Peak:
    """Watches the anonymous memory of a process and its descendants while the block runs; `bytes` is the most."""

    def __init__(self, root: int | None = None) -> None:
        self.bytes = 0
        self._root = root or os.getpid()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_EVERY):
            self.bytes = max(self.bytes, anonymous(self._root))


def anonymous(root: int) -> int:
    """The bytes of memory that belong to no file, of a process and all that descend from it."""
    parents, own = {}, {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue  # ended in this moment
        number = int(status.parent.name)
        parents[number] = int(fields["PPid"])
        own[number] = int(fields.get("RssAnon", "0 kB").split()[0]) * 1024
    found = {root}
    while more := {number for number, parent in parents.items() if parent in found} - found:
        found |= more
    return sum(own.get(number, 0) for number in found)
