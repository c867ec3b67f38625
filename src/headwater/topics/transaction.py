"""TopicTransaction: changes to several topics that happen together or not at all."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from headwater.errors import HeadwaterError
from headwater.log import Log
from headwater.position import Position
from headwater.schema import Checked
from headwater.topics.stream import Stream
from headwater.topics.table import Table
from headwater.topics.topic import Topic


class TopicTransaction:
    """`with pipeline.transaction() as tx:` commits at the end of the block, and takes everything back if it raises.

    `position` is where the records are, once it committed. Used by one thread.
    """

    def __init__(self, log: Log, topic: Callable[[str], Topic]) -> None:
        self._log = log
        self._topic = topic
        self._transaction = log.transaction()
        self._position: Position | None = None

    def append(self, stream: Stream | Table | str, rows: object) -> None:
        """Append rows to a stream, or to a table without a key."""
        topic = self._named(stream)
        checked = topic.checked(rows) if isinstance(topic, Stream) else topic.checked(rows, "append")
        self._add(topic, checked, "append")

    def upsert(self, table: Table | str, rows: object) -> None:
        """Insert or replace rows of a table."""
        topic = self._table(table)
        self._add(topic, topic.checked(rows, "upsert"), "upsert")

    def delete(self, table: Table | str, keys: object) -> None:
        """Delete rows of a table."""
        topic = self._table(table)
        self._add(topic, topic.checked(keys, "delete"), "delete")

    def keep(self, name: str, value: str) -> None:
        """Store a value with the commit, such as how far a source was read."""
        if not isinstance(name, str) or not isinstance(value, str):
            raise HeadwaterError("what is kept is text under a name", hint="turn it into text first")
        self._transaction.keep(name, value)

    @property
    def position(self) -> Position:
        """Where the records are."""
        if self._position is None:
            raise HeadwaterError("the transaction has not committed", hint="ask after the with block")
        return self._position

    def _add(self, topic: Topic, checked: Checked, operation: str) -> None:
        aside = topic.set_aside(checked.bad, f"{operation} in a transaction")
        self._transaction.append(topic.name, topic.divide(checked.batch, operation))
        if aside is not None:
            self._transaction.append(*aside)

    def _named(self, topic: Stream | Table | str) -> Stream | Table:
        found = self._topic(topic) if isinstance(topic, str) else topic
        if not isinstance(found, Stream | Table):
            msg = f"{topic!r} is not a stream or table"
            raise HeadwaterError(msg, hint="pass what stream() or table() returned, or its name")
        if found.log is not self._log:
            msg = f"{found.name} belongs to another pipeline"
            raise HeadwaterError(msg, hint="a transaction is of one pipeline")
        found.check_current()
        return found

    def _table(self, topic: Table | str) -> Table:
        found = self._named(topic)
        if not isinstance(found, Table):
            msg = f"{found.name} is a stream, and events are never changed"
            raise HeadwaterError(msg, hint="use append, or declare it as a table")
        return found

    def __enter__(self) -> TopicTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._position = self._transaction.commit()
        else:
            self._transaction.abort()
