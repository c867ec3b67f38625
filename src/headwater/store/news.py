"""What tells those who wait for a tick, in whatever process, that it is committed."""

from __future__ import annotations

import os
from contextlib import suppress

from headwater.watch import Watch


class TickNews:
    """A file that changes with each tick; only the change matters. Safe for threads and processes.

    It is never synced, and whoever writes it waits for nobody.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        if not os.path.exists(path):
            with suppress(OSError), open(path, "ab"):  # without it, who waits looks now and then
                pass

    def announce(self, tick: int) -> None:
        """Wake who waits. The tick is committed, whether or not they can be told."""
        with suppress(OSError), open(self._path, "r+b", buffering=0) as file:
            file.write(f"{tick:020d}".encode())

    def watch(self) -> Watch:
        """News from now on."""
        return Watch([self._path])
