"""What a view takes in: the change of a relation in this tick, or all of it when the view is being filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa

from headwater.catalog.relation import Relation
from headwater.change import HASH, WEIGHT
from headwater.change.keys import hashed_schema
from headwater.change.shape import shaped
from headwater.change.weights import negated
from headwater.log import Cut, Log, LogSlice
from headwater.plan.physical import Load
from headwater.state.arrangement import Arrangement
from headwater.state.run import Run
from headwater.tick.relations import columns_of, stream_rows
from headwater.tick.slices import NegatedSlice, Slice, arranged_slices, recorded_slices
from headwater.tick.state import TickState


class Input(Protocol):
    """Rows with `_weight`, as one table or as slices for workers."""

    @property
    def rows(self) -> int:
        """How many there are, or somewhat more."""
        ...

    @property
    def bytes(self) -> int:
        """About how much memory they take."""
        ...

    def table(self) -> pa.Table:
        """The columns of the relation and `_weight`."""
        ...

    def slices(self) -> Sequence[Slice]:
        """The same in slices."""
        ...


class FromLog:
    """Records of a stream, or of a topic's log, between two cuts."""

    def __init__(self, relation: Relation, log: Log, after: Cut, until: Cut) -> None:
        self._relation = relation
        self._log = log
        self._after = after
        self._until = until

    @property
    def rows(self) -> int:
        """The number of offsets between the cuts."""
        topic = self._relation.topic
        assert topic is not None
        numbers = range(topic.partitions)
        return sum(self._until.end(topic.name, n) - self._after.end(topic.name, n) for n in numbers)

    @property
    def bytes(self) -> int:
        """The bytes of the records in the log."""
        return sum(each.bytes for each in self._recorded())

    def table(self) -> pa.Table:
        """Each record as a row."""
        return stream_rows(self._relation, self._log, self._after, self._until)

    def slices(self) -> Sequence[Slice]:
        """The records by slices of the log."""
        return list(recorded_slices(self._relation.kind, columns_of(self._relation), self._recorded(), self.rows))

    def _recorded(self) -> list[LogSlice]:
        assert self._relation.topic is not None
        topic, columns = self._relation.topic.name, self._relation.records
        return self._log.slices(topic, after=self._after, until=self._until, columns=columns)


def is_complete(relation: Relation, log: Log, after: Cut) -> bool:
    """Whether the log still has everything that came to a topic after a cut."""
    topic = relation.topic
    assert topic is not None
    return all(log.start(topic.name, n) <= after.end(topic.name, n) for n in range(topic.partitions))


def beginnings(relation: Relation, log: Log) -> dict[str, int]:
    """From which offset on a topic is read, by the partitions that have lost their beginning."""
    topic = relation.topic
    assert topic is not None
    starts = {str(number): log.start(topic.name, number) for number in range(topic.partitions)}
    return {number: start for number, start in starts.items() if start}


class FromState:
    """Rows of an arrangement: those of `runs`, which are in memory as `table` too if that is given.

    `old` gives the runs of the rows that were there before them.
    """

    def __init__(
        self,
        state: TickState,
        schema: pa.Schema,
        runs: Sequence[Run],
        *,
        table: pa.Table | None = None,
        old: Callable[[], Sequence[Run]] = tuple,
    ) -> None:
        self._state = state
        self._schema = schema
        self._table = table
        self._arrangement = Arrangement(state.files, schema, runs)
        self._old = old

    @property
    def rows(self) -> int:
        """The rows of its runs."""
        return self._arrangement.rows

    @property
    def bytes(self) -> int:
        """About how many bytes its runs have."""
        return self._arrangement.bytes

    def table(self) -> pa.Table:
        """The rows, from memory if they are there."""
        return self._whole().drop_columns([HASH])

    def _whole(self) -> pa.Table:
        if self._table is None:
            tables = list(self._arrangement.scan())
            self._table = pa.concat_tables(tables) if tables else self._schema.empty_table()
        return self._table

    def slices(self) -> Sequence[Slice]:
        """The rows by ranges of hashes."""
        return list(arranged_slices(self._arrangement, self._state.files))

    def arranged(self, load: Load) -> tuple[pa.Table, Arrangement]:
        """The rows with their hashes, and those before, with the columns of an operator's input."""
        columns, schema = [*load.columns, HASH, WEIGHT], hashed_schema(load.schema)
        return shaped(self._whole().select(columns), schema), self.held.select(load.columns, schema)

    @property
    def held(self) -> Arrangement:
        """The rows that were there before."""
        return Arrangement(self._state.files, self._schema, self._old())

    @property
    def runs(self) -> tuple[Run, ...]:
        """Its runs."""
        return self._arrangement.runs


class TakenBack:
    """The rows of another input, taken back."""

    def __init__(self, given: Input) -> None:
        self._given = given

    @property
    def rows(self) -> int:
        """As many as the other has."""
        return self._given.rows

    @property
    def bytes(self) -> int:
        """As much as the other."""
        return self._given.bytes

    def table(self) -> pa.Table:
        """The rows with their weights turned around."""
        return negated(self._given.table())

    def slices(self) -> Sequence[Slice]:
        """The same in slices."""
        return [NegatedSlice(each) for each in self._given.slices()]
