"""Random topics and what happens to them."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.equivalence.queries import Relation
from tests.equivalence.values import ALL, ATOMIC, DDL, value

Row = dict[str, Any]
_KEY_KINDS = ("int", "string", "money", "fine", "date", "double", "wide", "timestamp", "binary", "boolean")
_ADDING = {"table": "upsert", "bag": "append", "stream": "append"}
_LOG_COLUMNS = (("_op", "string"), ("_partition", "int"), ("_offset", "int"), ("_received_at", "timestamp"))


@dataclass(frozen=True)
class Topic:
    """A stream, a table by key, or a bag (a table without one). Columns are named after their kinds."""

    name: str
    kind: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    partitions: int = 1

    @property
    def schema(self) -> str:
        """Its columns as DDL."""
        return ", ".join(
            f"{name} {DDL[kind]}{' NOT NULL' if name in self.required else ''}" for name, kind in self.columns
        )

    def relations(self) -> Iterator[Relation]:
        """The topic and its log as a query sees them."""
        rows = {"stream": 60, "table": 12, "bag": 40}[self.kind]
        yield Relation(self.name, self.columns, self.kind != "stream", rows, self.key)
        yield Relation(f"{self.name}__log", _LOG_COLUMNS + self.columns, False, 80)


@dataclass(frozen=True)
class Operation:
    """One call on a topic."""

    topic: str
    verb: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Transaction:
    """Operations that happen together."""

    operations: tuple[Operation, ...]


Step = Operation | Transaction


def topics(chance: random.Random) -> list[Topic]:
    """Two to four topics, one of them a keyed table and one a stream."""
    kinds = ["table", "stream", *chance.choices(["table", "stream", "bag", "bag"], k=chance.randint(0, 2))]
    names = ("alpha", "beta", "gamma", "delta")
    return [_topic(chance, name, kind) for name, kind in zip(names, kinds, strict=False)]


def _topic(chance: random.Random, name: str, kind: str) -> Topic:
    kinds = ["int", "string", *chance.choices(ALL, k=chance.randint(3, 6))]
    columns = [(f"{each}_{place}", each) for place, each in enumerate(kinds)]
    required = [column for column, each in columns if each in ATOMIC and chance.random() < 0.12]
    key: list[str] = []
    if kind == "table":
        chosen = chance.choices(_KEY_KINDS, k=chance.choice([1, 1, 2]))
        keys = [(f"key{place}_{each}", each) for place, each in enumerate(chosen)]
        key, columns = [column for column, _ in keys], keys + columns
    return Topic(name, kind, tuple(columns), tuple(key), tuple(required), chance.choice([1, 1, 2, 3]))


class Traffic:
    """What happens to the topics, with a memory of what they hold so that updates and deletes hit."""

    def __init__(self, chance: random.Random, topics: Sequence[Topic]) -> None:
        self.chance = chance
        self.topics = topics
        self._seen: dict[str, list[Row]] = {topic.name: [] for topic in topics}
        self._keys = {topic.name: self._pool(topic) for topic in topics}

    def _pool(self, topic: Topic) -> list[Row]:
        """The keys that a table ever uses; the first is hot."""
        kinds = dict(topic.columns)
        pool: dict[Hashable, Row] = {}
        for _ in range(40):
            key = {name: value(self.chance, kinds[name], nulls=0) for name in topic.key}
            pool.setdefault(repr(list(key.values())), key)  # keeps 0.0 and -0.0 as two ways to write one key
        return list(pool.values())[:14]

    def beginning(self, largest: int) -> list[Step]:
        """Something for most topics, so that few joins are empty; some stay empty for a while."""
        chosen = [topic for topic in self.topics if self.chance.random() < 0.8]
        return [
            Operation(topic.name, _ADDING[topic.kind], tuple(self._some_rows(topic, largest))) for topic in chosen
        ]

    def _some_rows(self, topic: Topic, largest: int) -> list[Row]:
        if topic.kind != "table":
            return self._new_rows(topic, largest)
        rows = [self.row(topic, self.key_of(topic)) for _ in range(self.chance.randint(1, largest))]
        self._seen[topic.name] += rows
        return rows

    def between_ticks(self, largest: int) -> list[Step]:
        """The steps of one tick: none now and then."""
        steps: list[Step] = []
        for _ in range(self.chance.choice([0, 1, 2, 2, 3, 4])):
            if self.chance.random() < 0.2:
                parts = [part for _ in range(self.chance.randint(1, 3)) for part in self._operations(largest)]
                steps.append(Transaction(tuple(parts)))
            else:
                steps += self._operations(largest)
        return steps

    def _operations(self, largest: int) -> list[Operation]:
        topic = self.chance.choice(self.topics)
        if topic.kind == "table":
            return self._on_table(topic, largest)
        if topic.kind == "bag" and self._seen[topic.name] and self.chance.random() < 0.4:
            return [Operation(topic.name, "delete", tuple(self._old_rows(topic)))]
        return [Operation(topic.name, "append", tuple(self._new_rows(topic, largest)))]

    # -- streams and bags

    def _new_rows(self, topic: Topic, largest: int) -> list[Row]:
        """New rows and repeated ones, some of them several times."""
        rows: list[Row] = []
        for _ in range(self.chance.randint(1, largest)):
            seen = self._seen[topic.name]
            row = self.chance.choice(seen) if seen and self.chance.random() < 0.25 else self.row(topic)
            rows += [row] * (self.chance.choice([2, 3]) if self.chance.random() < 0.15 else 1)
            self._seen[topic.name].append(row)
        return rows

    def _old_rows(self, topic: Topic) -> list[Row]:
        """Rows that are there, that were there, or that never were."""
        seen = self._seen[topic.name]
        count = len(seen) if self.chance.random() < 0.1 else self.chance.randint(1, 4)
        return [self.chance.choice(seen) if self.chance.random() < 0.9 else self.row(topic) for _ in range(count)]

    def row(self, topic: Topic, key: Row | None = None) -> Row:
        filled = set(topic.required) | set(topic.key)
        row = {name: value(self.chance, kind, nulls=0 if name in filled else 0.15) for name, kind in topic.columns}
        return {**row, **(key or {})}

    # -- tables

    def key_of(self, topic: Topic) -> Row:
        pool = self._keys[topic.name]
        return pool[0] if self.chance.random() < 0.3 else self.chance.choice(pool)

    def _on_table(self, topic: Topic, largest: int) -> list[Operation]:
        choice = self.chance.random()
        if choice < 0.15:
            return self._there_and_back(topic)
        if choice < 0.4:
            every = self.chance.random() < 0.1
            count = self.chance.randint(1, 3)
            keys = self._keys[topic.name] if every else [self.key_of(topic) for _ in range(count)]
            return [Operation(topic.name, "delete", tuple(keys))]
        return [Operation(topic.name, "upsert", tuple(self._some_rows(topic, largest)))]

    def _there_and_back(self, topic: Topic) -> list[Operation]:
        """A change that is taken back: by the old row, or by a delete and the row again."""
        seen = self._seen[topic.name]
        old = self.chance.choice(seen) if seen else self.row(topic, self.key_of(topic))
        key = {name: old[name] for name in topic.key}
        between = [
            Operation(topic.name, "upsert", (self.row(topic, key),)),
            Operation(topic.name, "delete", (key,)),
        ]
        again = Operation(topic.name, "upsert", (old,))
        return [again, self.chance.choice(between), again]
