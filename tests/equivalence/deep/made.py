"""A query with what is known of it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.equivalence.deep.tree import Query


@dataclass(frozen=True)
class Made:
    """A query, its columns with their kinds, and about how many rows it has."""

    node: Query
    columns: tuple[tuple[str, str], ...]
    rows: int
