"""Pipeline: topics, views and everything that happens to them, in one folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from headwater import backends
from headwater.catalog.relations import Relations
from headwater.catalog.status import Status
from headwater.clock import Clock
from headwater.errors import LogDamaged, Unavailable
from headwater.lock import forget_in_child
from headwater.log import TopicDropped, TopicLog
from headwater.pipeline import arguments
from headwater.pipeline.altering import alter, check_columns
from headwater.pipeline.arguments import checked_flag, checked_seconds
from headwater.pipeline.declaring import declare_view, replaced_by_itself
from headwater.pipeline.dropping import drop
from headwater.pipeline.explain import explain
from headwater.pipeline.foundation import Asked, open_foundation
from headwater.pipeline.functions import checked_udf
from headwater.pipeline.leasing import take_over, to_drive
from headwater.pipeline.replacing import replace as replace_view
from headwater.pipeline.status import status
from headwater.pipeline.views import View, checked_view, known_view
from headwater.position import Position
from headwater.spark.session.settings import checked_settings
from headwater.store import Declaration, Lease
from headwater.tick.loop import run as run_ticks
from headwater.topics import Stream, Table, TopicDeclaration, TopicTransaction
from headwater.topics.declaration import Kind, topic_name

if TYPE_CHECKING:
    from headwater.pipeline.spark_parts import SparkParts
    from headwater.tick.driver import Driver
    from headwater.tick.report import Tick

_of_the_parent: list[object] = []
"""What a forked child must neither use nor end: kept, so that it is not."""


class Pipeline:
    """A pipeline in a folder; many processes may open the same one. Safe for threads.

    Opening it makes the folder if it is missing. Only ticking needs the lease: appending and reading are free for
    every process at any time.

    A new pipeline is in UTC unless `timezone` says otherwise; it stays in its zone, and opening it with another is
    `DeclarationChanged`. So it is with `log`, and with a `path` that is a URL: like `store`, they choose parts that
    `headwater.backends` knows, instead of those in the folder. A store elsewhere is to be named each time.

    `spark` are settings of Spark's. Those of them that an answer may depend on are kept with the pipeline, for all
    who open it without `spark`; with others all views are built again. The rest is for starting Spark.
    """

    def __init__(
        self,
        name: str,
        path: str | os.PathLike[str] | None = None,
        *,
        log: str | None = None,
        store: str | None = None,
        master: str | None = None,
        max_rows: int = 2_000_000,
        retain_ticks: int = 100,
        retain_for: str = "1 hour",
        timezone: str | None = None,
        clock: Clock | None = None,
        spark: Mapping[str, object] | None = None,
    ) -> None:
        self.name = arguments.checked_name(name)
        self.path, state = arguments.checked_path(path, name)
        self.settings = checked_settings(spark)
        zone = None if timezone is None else arguments.checked_timezone(timezone)
        self.clock = arguments.checked_clock(clock)
        self.master = arguments.checked_master(master)
        self.max_rows = arguments.checked_count("max_rows", max_rows)
        self.retain_ticks = arguments.checked_count("retain_ticks", retain_ticks)
        self.retain_for = arguments.checked_duration(retain_for)
        backends.check(log=log, store=store, state=state)
        arguments.make_folder(self.path)
        opened = open_foundation(self.path, Asked(name, zone, log, store, state), self.clock)
        self.timezone = opened.timezone
        self._store, self._log, self._liveness = opened.store, opened.log, opened.liveness
        self.state_files, self._scratch = opened.state_files, opened.scratch
        self._lease = Lease(self._store, self._liveness, self.path)
        self._relations = Relations(self._store, self._topic)
        self._reader = opened.reader(self._topic)
        self._udfs: dict[str, Any] = {}
        self._parts: SparkParts | None = None
        self._topics: dict[str, Stream | Table] = {}
        self._threads = threading.RLock()
        forget_in_child(self)

    def after_fork(self) -> None:
        """Another thread of the parent may have held it; Spark and the driver's threads are the parent's."""
        self._threads = threading.RLock()
        _of_the_parent.append(self._parts)
        self._parts = None

    # -- declaring

    def stream(
        self,
        name: str,
        schema: str,
        *,
        key: str | Sequence[str] | None = None,
        partitions: int = 1,
        event_time: str | None = None,
        lateness: str | None = None,
        on_error: str = "refuse",
        durability: str = "fsync",
    ) -> Stream:
        """Declare a topic of events. The same again is fine; another schema or promise is `DeclarationChanged`."""
        declaration = TopicDeclaration.check(
            name,
            "stream",
            schema,
            key=key,
            partitions=partitions,
            event_time=event_time,
            lateness=lateness,
            on_error=on_error,
            durability=durability,
        )
        return cast("Stream", self._declare(declaration))

    def table(
        self,
        name: str,
        schema: str,
        *,
        key: str | Sequence[str] | None = None,
        partitions: int = 1,
        on_error: str = "refuse",
        durability: str = "fsync",
    ) -> Table:
        """Declare a topic of rows that change: by key, or, without one, a multiset."""
        declaration = TopicDeclaration.check(
            name, "table", schema, key=key, partitions=partitions, on_error=on_error, durability=durability
        )
        return cast("Table", self._declare(declaration))

    def _declare(self, declaration: TopicDeclaration) -> Stream | Table:
        with self._threads:
            topic = self._declare_one(declaration)
            if declaration.on_error == "dead_letter":
                self._declare_one(declaration.dead_letters())
            return topic

    def _declare_one(self, declaration: TopicDeclaration) -> Stream | Table:
        spec = declaration.as_dict()
        before = self._store.find(declaration.name)
        if before is not None and before.kind == declaration.kind:
            known = TopicDeclaration.from_dict(before.name, declaration.kind, before.spec)
            is_known = known.promises == declaration.promises
            if is_known and declaration.defaults.items() <= known.defaults.items():
                spec = dict(before.spec)
            else:
                check_columns(known, declaration)
                spec = replace(declaration, alterations=known.alterations).as_dict()
        return self._attach(self._store.declare(declaration.name, declaration.kind, spec))

    def _attached(self, stored: Declaration) -> Stream | Table | None:
        """A topic that is open as the store knows it, if it is; for any thread, also while others plan."""
        known = self._topics.get(stored.name)
        if known is None or known.number != stored.number:
            return None
        return known if known.declaration.alterations.number >= TopicDeclaration.altered_in(stored.spec) else None

    def _attach(self, stored: Declaration) -> Stream | Table:
        """Open a topic that the store knows, unless that very one is open."""
        if (known := self._attached(stored)) is not None:
            return known
        declaration = TopicDeclaration.from_dict(stored.name, cast("Kind", stored.kind), stored.spec)
        schema, durable = declaration.stored_schema, declaration.durability == "fsync"
        try:
            self._log.declare(TopicLog(stored.name, stored.number, schema, declaration.partitions, durable=durable))
        except (LogDamaged, Unavailable) as error:
            if self._is_declared(stored):
                raise
            raise TopicDropped(stored.name) from error
        if not self._is_declared(stored):
            self._log.drop(stored.name)  # made again of what another process had dropped just before
            raise TopicDropped(stored.name)
        make = Stream if declaration.kind == "stream" else Table
        topic = self._topics[stored.name] = make(
            declaration, stored.number, self._log, self.timezone, self._open_letters, self._topic
        )
        return topic

    def _is_declared(self, stored: Declaration) -> bool:
        found = self._store.find(stored.name)
        return found is not None and found.number == stored.number

    def _open_letters(self, declaration: TopicDeclaration) -> None:
        """Whoever appends may not have declared the topic here, or have died before it declared its letters."""
        with self._threads:
            self._declare_one(declaration)

    def view(
        self,
        name: str,
        sql: str,
        *,
        key: str | Sequence[str] | None = None,
        replace: bool = False,
        on_error: str = "suspend",
    ) -> View:
        """Declare a view: a query that is kept up to date. The same again is fine and needs no Spark.

        `key` declares columns that are unique: every tick checks it, and `lookup` uses it. What cannot be
        maintained is `ViewRefused`, with its position in the SQL. Another SQL under a known name is
        `DeclarationChanged`, or with `replace` a new version: the next tick builds it beside the old one, which is
        served until then, and puts it in its place. With `replace`, the same SQL is built anew as well.

        A row for which an expression has no value suspends the view, and those that read it, until it is corrected;
        with `on_error="dead_letter"` a row that fails in a projection or filter is set aside in
        `<name>__dead_letters` instead, and comes back when it is corrected.
        """
        name, sql, columns = checked_view(name, sql, key, on_error)
        known = known_view(self._relations, name, sql, columns, on_error, replace=checked_flag("replace", replace))
        if known is not None:
            return replaced_by_itself(self, known, sql, columns, on_error) if replace else known
        with self._threads:
            old = self._relations.view(name)
            if old is not None:
                return replace_view(self._store, self._spark(), old, sql, columns, on_error)
            return declare_view(self, name, sql, columns, on_error)

    def udf(
        self,
        name: str,
        function: Callable[..., Any],
        returns: str,
        *,
        kind: str = "scalar",
        version: str | None = None,
    ) -> None:
        """Make a Python function known to SQL. Declaring it says that it is deterministic.

        It belongs to this process: whoever ticks must have declared it. `kind`: scalar, pandas or aggregate.
        Views that use it are made anew when it is another function than before, told by what its code does; or,
        if a `version` is given, by that alone. What it uses is taken as it is now; declare it again after a change.
        """
        self._udfs[topic_name(name)] = checked_udf(topic_name(name), function, returns, kind, version)

    def alter(self, name: str, schema: str, *, rename: Mapping[str, str] | None = None) -> Stream | Table:
        """Give a topic other columns, all of them in `schema`; at once, however many rows it has.

        Columns may come (null in the rows that are there, or a constant DEFAULT), get wider types, become nullable,
        and go or be renamed (`rename={"old": "new"}`) if no view reads them; the key's stay. Views that read a
        column with another type are made anew by the next tick. What was opened before goes on with its columns.
        """
        with self._threads:
            return self._attach(alter(self, name, schema, rename))

    def drop(self, name: str) -> None:
        """Remove a view, or a topic with all its records and dead letters; refused while views read it."""
        with self._threads:
            drop(self, name)

    def _topic(self, name: str) -> Stream | Table:
        """A topic by name, whoever declared it."""
        stored = self._relations.topic(name, where=self.name)
        if (known := self._attached(stored)) is not None:
            return known
        with self._threads:
            return self._attach(stored)

    # -- doing

    def transaction(self) -> TopicTransaction:
        """Begin a transaction over topics; use it in a `with` block."""
        return TopicTransaction(self._log, self._topic)

    def tick(self) -> Tick | None:
        """Take what is new into every view and commit it at one instant; None if there is nothing to do.

        `LeaseHeld` if another living process drives this pipeline. A view that cannot be evaluated is suspended at
        its last good tick, with those that read it; the others go on.
        """
        with to_drive(self):
            return self._driver().tick()

    def run(self, *, seconds: float | None = None, until: Callable[[Tick], bool] | None = None) -> None:
        """Tick whenever data arrives: for so many seconds, until `until` says True of a tick, or for ever."""
        arguments.check_run(seconds, until)
        topics = self._relations.topics()
        names = [each for each in topics if self._relations.find(each) is not None]  # else it was dropped just now
        with to_drive(self):
            run_ticks(self._driver(), self._log, names, seconds=seconds, until=until)

    def read(
        self, name: str, *, as_of: int | None = None, after: Position | str | None = None, timeout: float = 30.0
    ) -> pa.Table:
        """All rows of a view, table, stream or topic's log, at the newest tick or `as_of` one that is kept.

        `after` waits until a tick has taken in what an append gave that position; `NotReached` after `timeout`.
        """
        return self._reader.read(name, as_of=as_of, after=after, timeout=checked_seconds("timeout", timeout))

    def lookup(
        self,
        name: str,
        key: object,
        *,
        as_of: int | None = None,
        after: Position | str | None = None,
        timeout: float = 30.0,
    ) -> pa.Table:
        """The rows of a view or table with a key: a scalar, a tuple or a dict; as fast in large as in small."""
        timeout = checked_seconds("timeout", timeout)
        return self._reader.lookup(name, key, as_of=as_of, after=after, timeout=timeout)

    def changes(
        self, name: str, *, since: int = 0, follow: bool = False, cursor: str | None = None
    ) -> Iterator[pa.Table]:
        """The changes of a relation, in tables of one tick each, with `_tick` and `_weight`; `follow` waits.

        A `cursor` is a name under which it is kept how far they were taken: a tick counts as taken when the table
        after its last one is asked for. Whoever uses the cursor next goes on from there, in any process.
        """
        return self._reader.changes(name, since=since, follow=checked_flag("follow", follow), cursor=cursor)

    def query(self, sql: str, *, as_of: int | None = None) -> pa.Table:
        """A query in DuckDB's SQL over all views, tables and streams, all at one tick. Read-only."""
        return self._reader.query(sql, as_of=as_of)

    def status(self) -> Status:
        """One picture of everything: topics, views, ticks, the driver; from any process, without Spark."""
        return status(self)

    def explain(self, name: str) -> str:
        """What a view does and keeps, in words; first that it is suspended, if it is."""
        return explain(self._store, self._relations, name)

    def _spark(self) -> SparkParts:
        """What plans and ticks for this process; starts Spark."""
        with self._threads:
            if self._parts is not None and self._parts.engine.has_ended:
                parts, self._parts = self._parts, None
                parts.close()
            if self._parts is None:
                from headwater.pipeline.spark_parts import SparkParts  # noqa: PLC0415  brings Spark with it

                self._parts = SparkParts(self)
            return self._parts

    def _driver(self) -> Driver:
        return self._spark().driver

    def take_over(self) -> None:
        """Become the driver although another process holds the lease: for one that is alive but stuck.

        Its later commits fail with `Fenced`. If it sits on a lock that is needed, it is killed first; if something
        else does, `LeaseHeld` is raised.
        """
        take_over(self)

    def close(self) -> None:
        """Give back the lease and all files, and stop Spark if no other pipeline uses it. Safe to call twice."""
        parts, self._parts = self._parts, None
        try:
            if parts is not None:
                parts.close()
        finally:
            self._lease.release()
            self._log.close()
            self._store.close()
            self._topics.clear()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r}, path={self.path!r})"
