"""What happens to the four tables between the ticks, wholly determined by a seed.

Inserts, updates and deletes that mostly hit, duplicates, transactions, empty ticks, and keys that come back within
a tick are those of the other campaign; here some of the latter come back as other rows.
"""

from __future__ import annotations

import random

from tests.equivalence.deep.schema import ITEMS, TOPICS
from tests.equivalence.traffic import Operation, Step, Traffic

_LARGEST = 6


def make_traffic(seed: int, ticks: int) -> tuple[tuple[Step, ...], ...]:
    """The steps before each tick. With more ticks it begins the same."""
    chance = random.Random(f"{seed}:traffic")
    traffic = Traffic(chance, TOPICS)
    made: list[list[Step]] = [[]] if chance.random() < 0.2 else []
    made.append(traffic.beginning(2 * _LARGEST) + traffic.beginning(2 * _LARGEST))
    while len(made) < ticks:
        made.append([] if chance.random() < 0.08 else _some(chance, traffic))
    return tuple(tuple(steps) for steps in made[:ticks])


def _some(chance: random.Random, traffic: Traffic) -> list[Step]:
    steps = traffic.between_ticks(_LARGEST)
    if chance.random() < 0.25:
        steps += _vanished_and_returned(chance, traffic)
    return steps


def _vanished_and_returned(chance: random.Random, traffic: Traffic) -> list[Step]:
    """A key that goes and comes back as another row, in one tick."""
    row = traffic.row(ITEMS, traffic.key_of(ITEMS))
    key = {name: row[name] for name in ITEMS.key}
    return [Operation(ITEMS.name, "delete", (key,)), Operation(ITEMS.name, "upsert", (row,))]
