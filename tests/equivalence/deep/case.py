"""Deep cases: a few queries of any composition over four tables, and what happens to these before each tick."""

from __future__ import annotations

from tests.equivalence.cases import Case, View
from tests.equivalence.deep.queries import make_query
from tests.equivalence.deep.schema import TOPICS
from tests.equivalence.deep.traffic import make_traffic

TOGETHER = 10


def deep_case(seed: int, path: str, *, ticks: int = 4, views: int = TOGETHER) -> Case:
    """The case of a seed. Every fifth view is declared late, over tables that hold something already."""
    late = min(1, ticks - 1)
    made = tuple(View(f"v{n}", make_query(seed, n), since=late if n % 5 == 4 else 0) for n in range(views))
    return Case("deep", seed, path, TOPICS, made, make_traffic(seed, ticks))
