"""Relation: what a name stands for, and which names there are."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.schema import Schema, parse
from headwater.store import Declaration, Store
from headwater.topics import Topic
from headwater.topics.declaration import DEAD_LETTERS, LETTER
from headwater.topics.record_view import log_schema

LOG = "__log"
DEAD_LETTER = "dead_letter"


@dataclass(frozen=True)
class Relation:
    """Rows under a name: those of an arrangement (views and what they set aside, tables), or records of a topic.

    `schema` has the declared columns; `columns` are those that readers get. `topic` is None for views. Two are of
    the same declaration exactly if their numbers are equal. A view that replaced another has its name from the
    tick `since` on; until then it meant `before`. One that `sets_aside` has `letters` with the rows that it cannot
    evaluate. Without a key, its rows are kept `by` some columns.
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

    def at(self, tick: int) -> Relation:
        """What the name meant at a tick."""
        return self.before.at(tick) if self.before is not None and tick < self.since else self

    def spans(self, after: int, until: int) -> list[tuple[Relation, int, int]]:
        """What the name meant in the ticks with `after < tick <= until`: each relation, and such bounds for it."""
        earlier = [] if self.before is None else self.before.spans(after, min(until, self.since - 1))
        after = max(after, self.since - 1)
        return [*earlier, (self, after, until)] if after < until else earlier

    @property
    def arrangement(self) -> str | None:
        """The name of the arrangement that has its rows; None if they are in the log."""
        if self.kind == "letters":
            return f"v{self.number}/letters"
        return f"{self.kind[0]}{self.number}" if self.kind in {"view", "table"} else None

    def has_columns_of(self, other: Relation) -> bool:
        """Whether the names and types of the columns are the same, whatever may be null."""
        mine, theirs = self.columns, other.columns
        return bool(mine.names == theirs.names and mine.types == theirs.types)

    @property
    def ever_set_aside(self) -> bool:
        """Whether it, or one that it replaced, sets rows aside."""
        return self.sets_aside or (self.before is not None and self.before.ever_set_aside)

    @property
    def letters(self) -> Relation:
        """What a view sets aside."""
        before = self.before.letters if self.before is not None else None
        name = self.name + DEAD_LETTERS
        return Relation(name, "letters", self.number, LETTER, LETTER.arrow, (), None, self.since, before)


def view_relation(name: str, number: int, spec: Mapping[str, Any]) -> Relation:
    """The relation of a declared view, and of those that it replaced."""
    schema = parse(spec["schema"])
    key = tuple(schema.column(each).name for each in spec["key"])
    earlier = spec.get("before")
    before = view_relation(name, earlier["number"], earlier) if earlier else None
    since, sets_aside = spec.get("since", 0), spec.get("on_error") == DEAD_LETTER
    by = tuple(spec.get("by", ()))
    return Relation(name, "view", number, schema, schema.arrow, key, None, since, before, sets_aside, by)


class Relations:
    """The relations that any process declared. Safe for threads."""

    def __init__(self, store: Store, topic: Callable[[str], Topic]) -> None:
        self._store = store
        self._topic = topic
        self._views: dict[int, Relation] = {}

    def get(self, name: object) -> Relation:
        """The relation of a name in any case; an error that lists the names if there is none."""
        found = self.find(name) if isinstance(name, str) else None
        if found is None:
            raise self.unknown(name)
        return found

    def find(self, name: str) -> Relation | None:
        """The relation of a name in any case, if there is one."""
        folded = name.lower()
        stored = self._store.find(folded)
        if stored is not None:
            return self._view(stored) if stored.kind == "view" else self._of_topic(folded)
        for suffix in (LOG, DEAD_LETTERS):
            base = self._store.find(folded.removesuffix(suffix)) if folded.endswith(suffix) else None
            if base is not None and suffix == LOG and base.kind != "view":
                return self._log_of(base.name)
            if base is not None and suffix == DEAD_LETTERS and base.kind == "view":
                view = self._view(base)
                return view.letters if view.ever_set_aside else None
        return None

    def unknown(self, name: object) -> HeadwaterError:
        """The error for a name that does not exist."""
        names = list(self._store.declarations())
        close = difflib.get_close_matches(str(name).lower(), names, n=1)
        advice = f"did you mean {close[0]}? " if close else ""
        listed = f"there are {', '.join(names)}, and {LOG} of every topic" if names else "nothing is declared yet"
        msg = f"there is no view, table or stream called {name!r}"
        return HeadwaterError(msg, hint=advice + listed)

    def _view(self, stored: Declaration) -> Relation:
        known = self._views.get(stored.number)
        if known is None or known.name != stored.name:  # a candidate that has become the view
            known = self._views[stored.number] = view_relation(stored.name, stored.number, stored.spec)
        return known

    def _of_topic(self, name: str) -> Relation:
        topic = self._topic(name)
        kind: Literal["table", "stream"] = "table" if topic.kind == "table" else "stream"
        return Relation(name, kind, topic.number, topic.schema, topic.schema.arrow, topic.key, topic)

    def _log_of(self, name: str) -> Relation:
        topic = self._topic(name)
        return Relation(name + LOG, "log", topic.number, topic.schema, log_schema(topic.schema), topic=topic)
