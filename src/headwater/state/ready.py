"""Mapped pages that are made ready before they are asked for.

A page of a mapped file costs more the first time that it is touched, also if it is in memory already, and rows that
are looked up lie on other pages each time: over 60 million rows, looking up 12,000 takes twice as long until most
pages were touched. So a thread goes through what a driver maps. It reads nothing from disk: pages that are not in
memory are left for when they are needed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np

_POPULATE_READ = 22
"""Linux's MADV_POPULATE_READ, which Python has no name for."""
_LEAST = 1 << 20
_STEP = 8 << 20

_pool: ThreadPoolExecutor | None = None


def keep_ready() -> None:
    """From now on make ready what this process maps."""
    global _pool  # noqa: PLW0603  one for the process, as the cache of runs is
    if _pool is None and sys.platform == "linux":
        _pool = ThreadPoolExecutor(1, thread_name_prefix="headwater-ready")


def _forget_in_child() -> None:
    """A forked child has no such thread."""
    global _pool  # noqa: PLW0603
    _pool = None


os.register_at_fork(after_in_child=_forget_in_child)


def soon(mapped: mmap.mmap) -> None:
    """Make a file's pages ready, beside other work, if this process wants that and the file is not small."""
    if _pool is not None and len(mapped) >= _LEAST:
        _pool.submit(_make_ready, weakref.ref(mapped))


def _make_ready(reference: weakref.ref[mmap.mmap]) -> None:
    start = 0
    while (mapped := reference()) is not None and start < len(mapped):
        length = min(_STEP, len(mapped) - start)
        if _in_memory(mapped, start, length):
            with suppress(OSError, ValueError):  # an older system, or it was closed: it is a little slower
                mapped.madvise(_POPULATE_READ, start, length)
        start += _STEP


def _in_memory(mapped: mmap.mmap, start: int, length: int) -> bool:
    """Whether all of a stretch is in memory."""
    pages = np.zeros(-(-length // mmap.PAGESIZE), np.uint8)
    address = np.frombuffer(mapped, np.uint8).ctypes.data + start
    asked = ctypes.CDLL(None).mincore(
        ctypes.c_void_p(address), ctypes.c_size_t(length), ctypes.c_void_p(pages.ctypes.data)
    )
    return asked == 0 and bool((pages & 1).all())
