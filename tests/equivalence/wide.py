"""Wide cases: random topics, and random views over them and over one another, with random traffic."""

from __future__ import annotations

import random

from tests.equivalence.cases import Case, Text, View
from tests.equivalence.queries import Queries, Query, Relation
from tests.equivalence.traffic import Topic, Traffic, topics

ZONES = ("UTC", "UTC", "Europe/Oslo", "America/New_York")


def wide_case(seed: int, path: str) -> Case:
    """The case of a seed."""
    chance = random.Random(seed)
    declared = topics(chance)
    max_rows = chance.choices([None, 1, 7], [85, 5, 10])[0]
    count = chance.randint(3, 4) if max_rows == 1 else chance.randint(6, 12)
    traffic = Traffic(chance, declared)
    largest = 3 if max_rows == 1 else 7
    beginning = traffic.beginning(2 * largest)
    later = [traffic.between_ticks(largest) for _ in range(count - 1)]
    return Case(
        "wide",
        seed,
        path,
        timezone=chance.choice(ZONES),
        max_rows=max_rows,
        topics=tuple(declared),
        views=tuple(_views(chance, declared, count)),
        ticks=tuple(tuple(steps) for steps in chance.choice([[beginning, *later], [[], beginning, *later[1:]]])),
        reopened=chance.randrange(1, count) if chance.random() < 0.15 else None,
    )


def _views(chance: random.Random, declared: list[Topic], count: int) -> list[View]:
    plain = [relation for topic in declared for relation in topic.relations()]
    logs = [relation for relation in plain if relation.name.endswith("__log")]
    tables = [relation for relation in plain if relation not in logs]
    queries = Queries(chance, tables)
    views: list[View] = []
    made: list[Relation] = []
    for number in range(chance.randint(5, 8)):
        seen = chance.sample(made, k=min(len(made), chance.choice([0, 1, 2])))
        queries.relations = tables + seen + ([chance.choice(logs)] if chance.random() < 0.25 else [])
        query = queries.view()
        name = f"v{number}"
        reads = frozenset(relation.name for relation in queries.relations if f"{relation.name} " in query.sql)
        earliest = max([view.since for view in views if view.name in reads], default=0)
        late = chance.randrange(count) if chance.random() < 0.2 else 0
        views.append(View(name, Text(query.sql), reads, max(earliest, late)))
        if not _is_too_much(query):
            made.append(Relation(name, query.columns, query.retracts, query.rows))
    return views


def _is_too_much(query: Query) -> bool:
    return query.rows > 300
