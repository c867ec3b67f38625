"""One line on stderr before anything that takes longer than a breath, so that a run is never silent."""

import sys
import time

_STARTED = time.monotonic()


def say(text: str) -> None:
    """Print *text* with the seconds since the benchmark began."""
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {text}", file=sys.stderr, flush=True)
