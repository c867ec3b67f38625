"""A case: one pipeline with several views and what happens to it, wholly determined by its grammar and seed.

Two grammars make cases. `wide` ones have random topics and views over views; `deep` ones have one deeply composed
query for each view, over four tables that are always the same.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Protocol

from tests.equivalence.traffic import Step, Topic

PATHS = ("small", "large")


class Query(Protocol):
    """Something that can be written as SQL."""

    def sql(self) -> str:
        """The SQL."""
        ...


@dataclass(frozen=True)
class Text:
    """A query of which only the text is known."""

    text: str

    def sql(self) -> str:
        """The text."""
        return self.text


@dataclass(frozen=True)
class View:
    """A view and what it reads, declared before tick `since`.

    It may be dropped before tick `dropped` and declared again before tick `again`.
    """

    name: str
    query: Query
    reads: frozenset[str] = frozenset()
    since: int = 0
    dropped: int | None = None
    again: int | None = None

    def is_there(self, tick: int) -> bool:
        """Whether it is declared in a tick."""
        gone = self.dropped is not None and self.dropped <= tick and (self.again is None or tick < self.again)
        return self.since <= tick and not gone


@dataclass(frozen=True)
class Case:
    """Topics, views, and what happens between the ticks. `max_rows` is None for the default.

    The pipeline is opened anew before tick `reopened`; if it `restarts`, every tick is in a process of its own,
    which declares everything again in another order.
    """

    grammar: str
    seed: int
    path: str
    topics: tuple[Topic, ...]
    views: tuple[View, ...]
    ticks: tuple[tuple[Step, ...], ...]
    timezone: str = "UTC"
    max_rows: int | None = None
    reopened: int | None = None
    restarts: bool = False

    @property
    def query(self) -> Query:
        """The only query."""
        (view,) = self.views
        return view.query

    def only(self, name: str) -> Case:
        """The same case with one view and what it reads."""
        needed = {name}
        for view in reversed(self.views):
            if view.name in needed:
                needed |= view.reads
        return replace(self, views=tuple(view for view in self.views if view.name in needed))

    def with_query(self, query: Query) -> Case:
        """The same case with another query in place of its only one."""
        return replace(self, views=(replace(self.views[0], query=query),))

    def with_lives(self) -> Case:
        """The same case in which some views that nobody reads are dropped, and most of them declared again."""
        chance = random.Random(f"{self.seed}:lives")
        read = {name for view in self.views for name in view.reads}
        return replace(
            self, views=tuple(view if view.name in read else self._mortal(chance, view) for view in self.views)
        )

    def _mortal(self, chance: random.Random, view: View) -> View:
        last = len(self.ticks) - 1
        if view.since >= last or chance.random() > 0.25:
            return view
        dropped = chance.randint(view.since + 1, last)
        again = chance.randint(dropped, last) if chance.random() < 0.7 else None
        return replace(view, dropped=dropped, again=again)


def in_any_order(chance: random.Random, views: Collection[View]) -> list[View]:
    """The views in a random order in which each comes after those that it reads."""
    names = {view.name for view in views}
    waiting = chance.sample(list(views), k=len(views))
    made: list[View] = []
    while waiting:
        done = {view.name for view in made}
        ready = next(view for view in waiting if view.reads & names <= done)
        waiting.remove(ready)
        made.append(ready)
    return made
