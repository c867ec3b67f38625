"""What takes longer than two seconds says what it is doing."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

_PATIENCE = 2.0


@contextlib.contextmanager
def saying(what: str, *, after: float = _PATIENCE) -> Iterator[None]:
    """Say it on standard error if the block takes longer than so many seconds."""
    timer = threading.Timer(after, lambda: print(f"{what} …", file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
