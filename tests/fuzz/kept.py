"""Cases that once failed, as seed, number of the query and path. They are always run, with four ticks."""

from __future__ import annotations

KEPT: tuple[tuple[int, int, str], ...] = ()
