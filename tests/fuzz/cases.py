"""A case: the tables, a few queries as views of one pipeline, the traffic, and the path of evaluation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.equivalence.traffic import Step, Topic
from tests.fuzz.queries import make_query
from tests.fuzz.schema import TOPICS
from tests.fuzz.traffic import make_traffic
from tests.fuzz.tree import Query

TOGETHER = 10


@dataclass(frozen=True)
class View:
    """A query by its number. `since` is the number of the tick before which it is declared."""

    number: int
    query: Query
    since: int = 0

    @property
    def name(self) -> str:
        return f"v{self.number}"


@dataclass(frozen=True)
class Case:
    """Views over tables, and what happens to the tables before each tick."""

    seed: int
    path: str
    views: tuple[View, ...]
    ticks: tuple[tuple[Step, ...], ...]
    topics: tuple[Topic, ...] = TOPICS

    @property
    def query(self) -> Query:
        """The only query."""
        (view,) = self.views
        return view.query

    def only(self, number: int) -> Case:
        """The same case with one view."""
        return replace(self, views=tuple(view for view in self.views if view.number == number))

    def with_query(self, query: Query) -> Case:
        """The same case with another query in place of its only one."""
        return replace(self, views=(replace(self.views[0], query=query),))


def make_case(seed: int, path: str, *, ticks: int = 4, views: int = TOGETHER) -> Case:
    """The case of a seed. Every fifth view is declared late, over tables that hold something already."""
    made = tuple(View(n, make_query(seed, n), since=1 if n % 5 == 4 else 0) for n in range(views))
    return Case(seed, path, made, make_traffic(seed, ticks))
