"""Work done ahead by a few threads: what Arrow and numpy do, they do side by side."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_THREADS = 2
_LESS = 10
"""Linux's niceness of threads that give way."""
_FEW = 16
"""So few things are done before another thread has begun."""


def give_way() -> None:
    """Let this thread, and those that it starts, have little of a processor that others want too.

    Where a thread cannot have a priority of its own, or has less already, nothing changes.
    """
    if sys.platform == "linux":
        me = os.PRIO_PROCESS, threading.get_native_id()
        with suppress(OSError):
            os.setpriority(*me, max(_LESS, os.getpriority(*me)))


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The results in the order of the items, of which no more than a few are worked on or wait to be taken."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="headwater-state") as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > _THREADS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def at_once(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The results in the order of the items: every second is worked on by another thread, if they are many."""
    if len(items) < _FEW:
        return [work(item) for item in items]
    with ThreadPoolExecutor(1, thread_name_prefix="headwater-state") as pool:
        others = pool.submit(lambda: [work(item) for item in items[1::2]])
        mine = [work(item) for item in items[::2]]
        theirs = iter(others.result())
    return [each for one in mine for each in (one, *islice(theirs, 1))]
