"""Seeds that once found a difference, with the path on which they did. They are always run."""

from __future__ import annotations

KEPT: tuple[tuple[int, str], ...] = ()
