"""Relation: what a name stands for, and which names there are."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.schema import Schema, parse
from headwater.store import Declaration, Store
from headwater.topics import Topic
from headwater.topics.record_view import log_schema

LOG = "__log"


@dataclass(frozen=True)
class Relation:
    """Rows under a name: those of an arrangement (views, tables), or records of a topic (streams, logs).

    `schema` has the declared columns; `columns` are those that readers get. `topic` is None for views. Two are of
    the same declaration exactly if their numbers are equal.
    """

    name: str
    kind: Literal["view", "table", "stream", "log"]
    number: int
    schema: Schema
    columns: pa.Schema
    key: tuple[str, ...] = ()
    topic: Topic | None = None

    @property
    def arrangement(self) -> str | None:
        """The name of the arrangement that has its rows; None if they are in the log."""
        return f"{self.kind[0]}{self.number}" if self.kind in {"view", "table"} else None


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
        base = self._store.find(folded.removesuffix(LOG)) if folded.endswith(LOG) else None
        return self._log_of(base.name) if base is not None and base.kind != "view" else None

    def is_current(self, relation: Relation) -> bool:
        """Whether the name still stands for this very relation."""
        found = self.find(relation.name)
        return found is not None and found.number == relation.number

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
        if known is None:
            schema = parse(stored.spec["schema"])
            key = tuple(schema.column(name).name for name in stored.spec["key"])
            known = Relation(stored.name, "view", stored.number, schema, schema.arrow, key)
            self._views[stored.number] = known
        return known

    def _of_topic(self, name: str) -> Relation:
        topic = self._topic(name)
        kind: Literal["table", "stream"] = "table" if topic.kind == "table" else "stream"
        return Relation(name, kind, topic.number, topic.schema, topic.schema.arrow, topic.key, topic)

    def _log_of(self, name: str) -> Relation:
        topic = self._topic(name)
        return Relation(name + LOG, "log", topic.number, topic.schema, log_schema(topic.schema), topic=topic)
