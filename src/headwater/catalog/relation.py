"""Relation: what a name stands for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import pyarrow as pa

from headwater.catalog.names import LOG, letters_of, state_of, view_state
from headwater.catalog.view import DEAD_LETTER, EarlierView, ViewDeclaration
from headwater.change.keys import hashed_schema
from headwater.schema import Schema
from headwater.topics import Topic
from headwater.topics.alterations import NEVER_ALTERED, Alterations
from headwater.topics.declaration import DEAD_LETTERS, LETTER
from headwater.topics.record_view import log_schema


@dataclass(frozen=True)
class Relation:
    """Rows under a name: those of an arrangement (views and what they set aside, tables), or records of a topic.

    `schema` has the declared columns; `columns` are those that readers get. `topic` is None for views. Two are of
    the same declaration exactly if their numbers are equal. A view that replaced another has its name from the
    tick `since` on; until then it meant `before`. One that `sets_aside` has `letters` with the rows that it cannot
    evaluate. Without a key, its rows are kept `by` some columns.

    `records` are the columns of a topic's records, in the log and read from there, when it had become what
    `alterations` say; None for views.
    """

    name: str
    kind: Literal["view", "letters", "table", "stream", "log"]
    number: int
    schema: Schema
    columns: pa.Schema
    key: tuple[str, ...] = ()
    topic: Topic | None = None
    since: int = 0
    before: Relation | None = None
    sets_aside: bool = False
    by: tuple[str, ...] = ()
    records: pa.Schema | None = None
    alterations: Alterations = NEVER_ALTERED

    @classmethod
    def of_view(cls, view: ViewDeclaration) -> Relation:
        """A declared view, and those that it replaced."""
        return _of_view(view.name, view)

    @classmethod
    def of_topic(cls, topic: Topic) -> Relation:
        """A stream or table."""
        kind: Literal["table", "stream"] = "table" if topic.kind == "table" else "stream"
        return cls(topic.name, kind, topic.number, topic.schema, topic.schema.arrow, topic.key)._of(topic)

    @classmethod
    def of_log(cls, topic: Topic) -> Relation:
        """A topic as it was recorded."""
        name, columns = topic.name + LOG, log_schema(topic.schema)
        return cls(name, "log", topic.number, topic.schema, columns)._of(topic)

    def _of(self, topic: Topic) -> Relation:
        declared = topic.declaration
        return replace(self, topic=topic, records=declared.stored_schema, alterations=declared.alterations)

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns of its rows as they are kept, all nullable; marked if it is a table that was altered."""
        if self.kind == "table" and self.records is not None and self.alterations.number:
            return pa.schema(list(self.records)[1:], self.records.metadata)
        return pa.schema([pa.field(each.name, each.type) for each in self.columns])

    def seen(self, number: int) -> Schema:
        """The columns of a topic that were there when it had been altered so often."""
        return Schema(self.alterations.seen(self.schema, number)) if self.alterations.number else self.schema

    def at(self, tick: int) -> Relation:
        """What the name meant at a tick."""
        return self.before.at(tick) if self.before is not None and tick < self.since else self

    def spans(self, after: int, until: int) -> list[tuple[Relation, int, int]]:
        """What the name meant in the ticks with `after < tick <= until`: each relation, and such bounds for it."""
        earlier = [] if self.before is None else self.before.spans(after, min(until, self.since - 1))
        after = max(after, self.since - 1)
        return [*earlier, (self, after, until)] if after < until else earlier

    @cached_property
    def owner(self) -> str:
        """The name under which what it keeps, or would keep, is its own; a log has none but its topic's."""
        if self.kind in {"view", "letters"}:
            return view_state(self.number)
        return state_of(self.topic.kind if self.topic is not None else self.kind, self.number)

    @cached_property
    def arrangement(self) -> str | None:
        """The name of the arrangement that has its rows; None if they are in the log."""
        if self.kind == "letters":
            return letters_of(self.owner)
        return self.owner if self.kind in {"view", "table"} else None

    @cached_property
    def arranged(self) -> pa.Schema:
        """The columns of the arrangement of its rows."""
        return hashed_schema(self.stored)

    def has_columns_of(self, other: Relation) -> bool:
        """Whether the names and types of the columns are the same, whatever may be null."""
        mine, theirs = self.columns, other.columns
        return bool(mine.names == theirs.names and mine.types == theirs.types)

    @property
    def ever_set_aside(self) -> bool:
        """Whether it, or one that it replaced, sets rows aside."""
        return self.sets_aside or (self.before is not None and self.before.ever_set_aside)

    @cached_property
    def letters(self) -> Relation:
        """What a view sets aside."""
        before = self.before.letters if self.before is not None else None
        name = self.name + DEAD_LETTERS
        return Relation(name, "letters", self.number, LETTER, LETTER.arrow, (), None, self.since, before)


def _of_view(name: str, view: ViewDeclaration | EarlierView) -> Relation:
    before = _of_view(name, view.before) if view.before is not None else None
    return Relation(
        name,
        "view",
        view.number,
        view.schema,
        view.schema.arrow,
        tuple(view.schema.column(each).name for each in view.key),
        None,
        view.since,
        before,
        view.on_error == DEAD_LETTER,
        view.by,
    )
