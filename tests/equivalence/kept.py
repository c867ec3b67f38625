"""Cases that once failed, by grammar, seed and path. They are always run."""

from __future__ import annotations

KEPT: tuple[tuple[str, int, str], ...] = (
    ("wide", 100, "small"),  # sums of decimals
    ("wide", 121, "large"),  # a union of structs that may be null and may not
    ("wide", 20261126, "small"),  # an empty chunk before others
    ("wide", 20261201, "large"),  # a null struct with a field that may not be null
    ("wide", 20261162, "small"),  # equal aggregates that Spark joins into one subquery
)
