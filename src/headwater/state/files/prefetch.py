"""Prefetch: mapped pages that are touched before they are asked for.

A page of a mapped file costs more the first time that it is touched, also if it is in memory already, and rows that
are looked up lie on other pages each time: over 60 million rows, looking up 12,000 takes twice as long until most
pages were touched. So in a process that drives, a thread goes through what is mapped. It asks for nothing from
disk: where pages are not in memory, all is left as it is until they are needed.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import threading
import weakref
from queue import SimpleQueue

import numpy as np

from headwater.lock import forget_in_child
from headwater.state.files.mapped import MappedFile

_POPULATE_READ = 22
"""Linux's MADV_POPULATE_READ, which Python has no name for; systems that do not know it do nothing."""
_LEAST = 1 << 20
_STEP = 8 << 20


class Prefetch:
    """Prefetches files, one after the other. Safe for threads; a forked child does nothing until it begins too."""

    def __init__(self) -> None:
        self._system = ctypes.CDLL(None)  # calls through it let other threads go on
        self._waiting: SimpleQueue[weakref.ref[MappedFile]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        forget_in_child(self)

    def after_fork(self) -> None:
        """The child does not have the thread."""
        self._waiting, self._thread = SimpleQueue(), None

    def begin(self) -> None:
        """From now on prefetch what this process maps."""
        if self._thread is None and sys.platform == "linux":
            self._thread = threading.Thread(target=self._run, name="headwater-prefetch", daemon=True)
            self._thread.start()

    def soon(self, mapped: MappedFile) -> None:
        """Prefetch a file beside other work, if this process wants that, the file is not small, and it lives."""
        if self._thread is not None and mapped.size >= _LEAST:
            self._waiting.put(weakref.ref(mapped))

    def _run(self) -> None:
        while True:
            self.make(self._waiting.get())

    def make(self, reference: weakref.ref[MappedFile]) -> None:
        """Touch those stretches of a file that are in memory, while somebody has it mapped."""
        start = 0
        while (mapped := reference()) is not None and start < mapped.size:
            length = min(_STEP, mapped.size - start)
            stretch = ctypes.c_void_p(mapped.address + start), ctypes.c_size_t(length)
            pages = np.zeros(-(-length // mmap.PAGESIZE), np.uint8)
            asked = self._system.mincore(*stretch, ctypes.c_void_p(pages.ctypes.data))
            if asked == 0 and (pages & 1).all():
                self._system.madvise(*stretch, _POPULATE_READ)
            start += _STEP


prefetch = Prefetch()
