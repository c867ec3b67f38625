"""Seeds that once found a difference, with the path on which they did. They are always run."""

from __future__ import annotations

KEPT: tuple[tuple[int, str], ...] = (
    (100, "small"),  # sums of decimals
    (121, "large"),  # a union of structs that may be null and may not
    (20261126, "small"),  # an empty chunk before others
    (20261201, "large"),  # a null struct with a field that may not be null
    (20261162, "small"),  # equal aggregates that Spark joins into one subquery
)
