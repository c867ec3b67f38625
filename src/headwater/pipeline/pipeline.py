"""Pipeline: topics, views and everything that happens to them, in one folder."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from headwater.clock import Clock, SystemClock
from headwater.errors import DeclarationChanged, HeadwaterError, LeaseHeld, LogDamaged, Unavailable
from headwater.files import Files
from headwater.lock import Lock, forget_in_child
from headwater.log import EmbeddedLog, TopicLog
from headwater.pipeline.arguments import checked_name, checked_path, checked_timezone, make_folder
from headwater.pipeline.explain import explain
from headwater.pipeline.functions import checked_udf
from headwater.pipeline.replacing import abandon, check_inputs
from headwater.pipeline.replacing import replace as replace_view
from headwater.pipeline.views import View, checked_view, dependents, known_view, specification
from headwater.position import Position
from headwater.read import Reader
from headwater.read.relation import Relations
from headwater.store import NEXT, Declaration, Lease, SqliteStore
from headwater.topics import Stream, Table, TopicDeclaration, TopicTransaction
from headwater.topics.declaration import Kind, topic_name

if TYPE_CHECKING:
    from headwater.pipeline.driving import Driving
    from headwater.tick.driver import Driver
    from headwater.tick.report import Tick

DATABASE = "headwater.db"
_PATIENCE = 2.0


class Pipeline:
    """A pipeline in a folder; many processes may open the same one. Safe for threads.

    Opening it makes the folder if it is missing. Only ticking needs the lease: appending and reading are free for
    every process at any time.
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
        timezone: str = "UTC",
        clock: Clock | None = None,
    ) -> None:
        self.name = checked_name(name)
        self.path = checked_path(path if path is not None else os.path.join(".headwater", name))
        self.timezone = checked_timezone(timezone)
        self.clock: Clock = clock or SystemClock()
        self.master = master
        self.max_rows = max_rows
        self.retain_ticks = retain_ticks
        self.retain_for = retain_for
        for argument, url in (("log", log), ("store", store)):
            if url is not None:
                msg = f"{argument}={url!r}: only the embedded {argument} is there so far"
                raise Unavailable(msg, where=self.name, hint=f"leave {argument} out")
        make_folder(self.path)
        self._store = SqliteStore(os.path.join(self.path, DATABASE))
        self._know_itself()
        self._log = EmbeddedLog(os.path.join(self.path, "log"), self._store, clock=self.clock)
        self._lease = Lease(self._store, self.path)
        self._relations = Relations(self._store, self._topic)
        self._reader = Reader(self._store, self._log, self.path, self._topic, timezone=self.timezone)
        self._udfs: dict[str, Any] = {}
        self._driving: Driving | None = None
        self._topics: dict[str, Stream | Table] = {}
        self._threads = threading.RLock()
        forget_in_child(self)

    def after_fork(self) -> None:
        """Another thread of the parent may have held it."""
        self._threads = threading.RLock()

    def _know_itself(self) -> None:
        known = self._store.kept("pipeline.name")
        if known is not None and known != self.name:
            msg = f"this folder holds the pipeline {known!r}, not {self.name!r}"
            raise HeadwaterError(msg, where=self.path, hint="choose another path")
        if known is None:
            Files().sync_folder(self.path)
            self._store.keep({"pipeline.name": self.name, "pipeline.timezone": self.timezone})

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
        if before is not None and _folded(before.spec) == _folded(spec):
            spec = dict(before.spec)
        return self._attach(self._store.declare(declaration.name, declaration.kind, spec))

    def _attach(self, stored: Declaration) -> Stream | Table:
        """Open a topic that the store knows, unless that very one is open."""
        known = self._topics.get(stored.name)
        if known is not None and known.number == stored.number:
            return known
        declaration = TopicDeclaration.from_dict(stored.name, cast("Kind", stored.kind), stored.spec)
        self._log.declare(
            TopicLog(
                stored.name,
                stored.number,
                declaration.stored_schema,
                declaration.partitions,
                durable=declaration.durability == "fsync",
            )
        )
        make = Stream if declaration.kind == "stream" else Table
        topic = self._topics[stored.name] = make(declaration, stored.number, self._log, self.timezone)
        return topic

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
        served until then, and puts it in its place.

        A row for which an expression has no value suspends the view, and those that read it, until it is corrected;
        with `on_error="dead_letter"` a row that fails in a projection or filter is set aside in
        `<name>__dead_letters` instead, and comes back when it is corrected.
        """
        name, sql, columns = checked_view(name, sql, key, on_error)
        known = known_view(self._store, name, sql, columns, on_error, replace=replace)
        if known is not None:
            waiting = self._store.find(name + NEXT)
            if replace and waiting is not None and waiting.number != known.number and not waiting.spec.get("hold"):
                abandon(self._store, name)  # what was declared last holds
            return known
        with self._threads:
            driving = self._spark()
            old = self._store.find(name)
            if old is not None:
                return replace_view(self._store, driving, old, sql, columns, on_error)
            plan, schema = driving.plan(name, sql)
            check_inputs(self._store, name, plan)
            spec = specification(name, sql, columns, plan, schema, on_error) | driving.terms(plan, on_error)
            try:
                stored = self._store.declare(name, "view", spec)
            except DeclarationChanged:  # the same may have been declared at once: what is shared gets other names
                first = known_view(self._store, name, sql, columns, on_error, replace=False)
                if first is None:
                    raise
                return first
            driving.keep(stored, plan)
            return View.of(stored)

    def udf(self, name: str, function: Callable[..., Any], returns: str, *, kind: str = "scalar") -> None:
        """Make a Python function known to SQL. Declaring it says that it is deterministic.

        It belongs to this process: whoever ticks must have declared it. `kind`: scalar, pandas or aggregate.
        """
        self._udfs[topic_name(name)] = checked_udf(name, function, returns, kind)

    def drop(self, name: str) -> None:
        """Remove a view, or a topic with all its records and dead letters; refused while views read it."""
        with self._threads:
            relation = self._relations.get(name)
            users = dependents(self._store, relation.name)
            if users:
                msg = f"{relation.name} is read by {', '.join(users)}"
                hint = "drop those first, or abandon what ends in @next" if users[-1].endswith(NEXT) else ""
                raise HeadwaterError(msg, where=self.name, hint=hint or "drop those first")
            stored = self._store.find(relation.name)
            if stored is not None and stored.kind == "view":
                if self._store.find(stored.name + NEXT) is not None:
                    abandon(self._store, stored.name)
                self._store.forget(stored)
                self._store.drop_arrangements(f"v{stored.number}")
            else:
                self._drop_topic(relation.name)
            if self._driving is not None:
                self._driving.forget(relation.name)

    def _drop_topic(self, name: str) -> None:
        with self._threads:
            topic = self._topic(name)
            for each in (topic.name, topic.declaration.dead_letters().name):
                stored = self._store.find(each)
                if stored is not None:
                    self._attach(stored)
                    self._store.forget(stored)
                    self._store.drop_arrangements(f"t{stored.number}")
                    self._log.drop(each)
                    del self._topics[each]

    def _topic(self, name: str) -> Stream | Table:
        """A topic by name, whoever declared it."""
        if not isinstance(name, str):
            msg = f"{name!r} is not a name"
            raise HeadwaterError(msg, where=self.name)
        stored = self._store.find(name.lower())
        if stored is None or stored.kind not in {"stream", "table"}:
            names = ", ".join(self._store.declarations()) or "none yet"
            msg = f"there is no topic called {name!r}"
            raise HeadwaterError(msg, where=self.name, hint=f"declared are: {names}")
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
        return self._driver().tick()

    def run(self, *, seconds: float | None = None, until: Callable[[Tick], bool] | None = None) -> None:
        """Tick whenever data arrives: for so many seconds, until `until` says True of a tick, or for ever."""
        names = [d.name for d in self._store.declarations().values() if d.kind in {"stream", "table"}]
        for each in names:
            self._topic(each)
        self._spark().run(names, seconds=seconds, until=until)

    def read(
        self, name: str, *, as_of: int | None = None, after: Position | str | None = None, timeout: float = 30.0
    ) -> pa.Table:
        """All rows of a view, table, stream or topic's log, at the newest tick or `as_of` one that is kept.

        `after` waits until a tick has taken in what an append gave that position; `NotReached` after `timeout`.
        """
        return self._reader.read(name, as_of=as_of, after=after, timeout=timeout)

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
        return self._reader.lookup(name, key, as_of=as_of, after=after, timeout=timeout)

    def changes(self, name: str, *, since: int = 0, follow: bool = False) -> Iterator[pa.Table]:
        """The changes of a relation, a table per tick, with `_tick` and `_weight`; `follow` waits for more."""
        return self._reader.changes(name, since=since, follow=follow)

    def query(self, sql: str, *, as_of: int | None = None) -> pa.Table:
        """A query in DuckDB's SQL over all views, tables and streams, all at one tick. Read-only."""
        return self._reader.query(sql, as_of=as_of)

    def explain(self, name: str) -> str:
        """What a view does and keeps, in words."""
        return explain(self._store, self._relations, name)

    def _spark(self) -> Driving:
        """Whoever plans and ticks for this process; starts Spark."""
        with self._threads:
            if self._driving is None:
                from headwater.pipeline.driving import Driving  # noqa: PLC0415  brings Spark with it

                self._driving = Driving(self)
            return self._driving

    def _driver(self) -> Driver:
        return self._spark().driver

    def take_over(self) -> None:
        """Become the driver although another process holds the lease: for one that is alive but stuck.

        Its later commits fail with `Fenced`. If it sits on a lock that is needed, it is killed first; if something
        else does, `LeaseHeld` is raised.
        """
        replaced = self._store.lease()
        self._lease.take_over()
        topics = [d.name for d in self._store.declarations().values() if d.kind in {"stream", "table"}]
        for name in topics:
            with suppress(LogDamaged):  # a damaged topic has no lock that anyone needs
                self._topic(name)  # so that the log knows its locks
        for what, lock in self._log.locks():
            if not _passes(lock) and not (self._lease.kill_if_holding(lock, replaced) and _passes(lock)):
                holder = f"process {lock.holder()}"
                msg = f"{holder} sits on the lock of {what}"
                raise LeaseHeld(msg, holder=holder, where=self.path, hint="continue or stop that process")

    def close(self) -> None:
        """Give back the lease and all files, and stop Spark if this pipeline started it. Safe to call twice."""
        if self._driving is not None:
            self._driving.close()
            self._driving = None
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


def _folded(spec: Mapping[str, Any]) -> Any:
    """A declaration for comparison: names of columns are the same in any case."""
    return json.loads(json.dumps(spec, sort_keys=True).lower())


def _passes(lock: Lock) -> bool:
    """Whether nobody sits on a lock for long."""
    if lock.acquire(timeout=_PATIENCE):
        lock.release()
        return True
    return False
