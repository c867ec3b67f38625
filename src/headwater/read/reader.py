"""Reader: everything that can be asked of a pipeline without driving it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pyarrow as pa

from headwater.catalog.relation import Relation
from headwater.catalog.relations import Relations
from headwater.clock import Clock, SystemClock
from headwater.errors import HeadwaterError, NotReached, Unavailable, VersionExpired
from headwater.liveness import Liveness
from headwater.log import Log
from headwater.position import Position
from headwater.read.changes import Changes
from headwater.read.contents import Contents
from headwater.read.cursor import Cursor, checked_cursor
from headwater.read.lookup import Key
from headwater.read.query import QueryEngine
from headwater.read.version import Version, Versions
from headwater.state.files import StateFiles
from headwater.store import Faults, LessThanNone, Store
from headwater.topics import Topic

Result = TypeVar("Result")


class Reader:
    """Reads views, tables, streams and `<topic>__log`, from any process, while others append and tick.

    Names are case-insensitive. Without `as_of`, a call reads the newest committed tick, or nothing at all before
    the first; with it, exactly that tick: `VersionExpired` if it is no longer kept or the view was filled later,
    `HeadwaterError` if it never was. A view that no tick has filled yet is `NotReached`. `after` waits until a
    tick has everything below a position, for `timeout` seconds, else `NotReached`; with `as_of`, that tick must
    have it.

    Safe for threads. In a closed pipeline every call is a `HeadwaterError`.
    """

    def __init__(
        self,
        store: Store,
        log: Log,
        files: StateFiles,
        liveness: Liveness,
        folder: str,
        topic: Callable[[str], Topic],
        *,
        timezone: str = "UTC",
        clock: Clock | None = None,
    ) -> None:
        self._timezone = timezone
        self._clock = clock or SystemClock()
        self._relations = Relations(store, topic)
        self._versions = Versions(store, liveness, folder)
        self._contents = Contents(log, files)
        self._store = store
        self._faults = Faults(store)
        self._engine = QueryEngine(timezone)

    def read(
        self, name: str, *, as_of: int | None = None, after: Position | str | None = None, timeout: float = 30.0
    ) -> pa.Table:
        """All rows of a relation, in no promised order; a row that is in twice is given twice."""
        position = self._awaited(self._relations.get(name), as_of, after, timeout)
        rows = self._contents.rows
        return self._at(as_of, [name], lambda version, found: rows(found[name], version), position)

    def lookup(
        self,
        name: str,
        key: object,
        *,
        as_of: int | None = None,
        after: Position | str | None = None,
        timeout: float = 30.0,
    ) -> pa.Table:
        """The rows of a view or table that have this key, in a time that does not depend on its size.

        `key`: a plain value if the declared key is one column, a tuple, or a dict with its columns.
        """
        relation = self._relations.get(name)
        if relation.arrangement is None:
            msg = f"a {relation.kind} cannot be looked up by key"
            raise HeadwaterError(
                msg, where=relation.name, hint="use read() or query(), or a view with a key over it"
            )
        if as_of is None:
            Key(relation, key, self._timezone)  # what is wrong with it is told before anything is waited for
        position = self._awaited(relation, as_of, after, timeout)

        def rows(version: Version, found: Mapping[str, Relation]) -> pa.Table:
            return Key(found[name], key, self._timezone).rows(self._contents, found[name], version)

        return self._at(as_of, [name], rows, position)

    def changes(self, name: str, *, since: int = 0, follow: bool = False, cursor: str | None = None) -> Changes:
        """What each tick changed: one or more tables per tick, with `_tick` and `_weight` before the columns.

        `since=0` begins with the oldest kept version as insertions; `since=n` gives what came after tick n, and
        is `VersionExpired` if some of that is gone. With `follow` it goes on for ever, waiting for ticks. With a
        `cursor` that has begun it goes on behind what was acknowledged by it, whatever `since` is. See `Changes`.
        """
        relation, named = self._relations.get(name), checked_cursor(cursor)
        place = None if named is None else Cursor(self._store.cursors, named, relation, self._clock.now)
        return Changes(
            relation,
            self._store,
            self._versions,
            self._contents,
            self._relations,
            since,
            follow=follow,
            cursor=place,
        )

    def query(self, sql: str, *, as_of: int | None = None) -> pa.Table:
        """The answer to one SELECT in DuckDB's SQL over any relations, all at the same version."""
        statement = self._engine.parse(sql)
        names = [name for name in statement.names if self._relations.find(name) is not None]
        rows = self._contents.rows
        tables = self._at(
            as_of, names, lambda version, found: {name: rows(each, version) for name, each in found.items()}
        )
        return self._engine.answer(statement, tables, self._relations.unknown)

    def _awaited(
        self, relation: Relation, as_of: int | None, after: Position | str | None, timeout: float
    ) -> Position | None:
        """The position to be covered, once the newest version covers it."""
        if after is None:
            return None
        if isinstance(timeout, bool) or not isinstance(timeout, int | float):
            msg = f"timeout is {timeout!r}"
            raise HeadwaterError(msg, hint="give a number of seconds")
        position = after if isinstance(after, Position) else Position.parse(after)
        for topic, partition, _ in position.ends:
            self._check_place(topic, partition)
        if as_of is None:
            self._versions.wait(
                lambda version: version.covers(position) and _is_decided(version, relation), str(position), timeout
            )
        return position

    def _check_place(self, topic: str, partition: int) -> None:
        found = self._relations.get(topic)
        if found.topic is None or found.kind == "log" or partition >= found.topic.partitions:
            msg = f"there is no partition {partition} of a topic {topic} to wait for"
            raise HeadwaterError(msg, hint="give a position that an append returned")

    def _at(
        self,
        as_of: int | None,
        names: Sequence[str],
        action: Callable[[Version, Mapping[str, Relation]], Result],
        position: Position | None = None,
    ) -> Result:
        """Do something with a version, again with the next one if it was swept away in that moment.

        The action gets what the names meant at that version.
        """
        while True:
            with self._versions.held(as_of) as version:
                found = {name: self._relations.get(name).at(version.number) for name in names}
                self._check_has(version, list(found.values()), as_of, position)
                try:
                    return action(version, found)
                except LessThanNone as error:
                    for relation in found.values():
                        if relation.kind == "view" and relation.name == error.where:
                            self._faults.tell(relation.number, f"{error.what}: this is a fault of Headwater")
                    raise
                except Unavailable:
                    self._versions.forget()  # some of it may have been built again since it was known
                    if self._versions.at(version.number) == version and version.number in self._versions.numbers():
                        raise

    def _check_has(
        self, version: Version, relations: Sequence[Relation], as_of: int | None, position: Position | None
    ) -> None:
        """An error if a version does not have what is asked for, or not as it is asked."""
        exact = as_of is not None or position is not None or len(relations) > 1
        for relation in relations:
            stopped = version.stopped(relation)
            if stopped is not None and exact and stopped.since < version.number:
                raise stopped.error(relation.name)
            self._check_filled(relation, version, as_of)
        if position is not None and not version.covers(position):
            msg = f"tick {version.number} does not have {position}"
            raise NotReached(msg, hint="read a later one", retry=False)

    def _check_filled(self, relation: Relation, version: Version, as_of: int | None) -> None:
        if version.number == 0 or version.has(relation):
            return
        oldest = self._versions.oldest(relation)
        if as_of is None or oldest is None:
            raise self._versions.unfilled(relation)
        msg = f"it was filled after tick {as_of}, or built again"
        raise VersionExpired(msg, oldest=oldest, where=relation.name, hint=f"its oldest version is {oldest}")


def _is_decided(version: Version, relation: Relation) -> bool:
    """Whether a view has rows at a version, or stands still there."""
    now = relation.at(version.number)
    return version.has(now) or version.stopped(now) is not None
