"""What a view takes in: the change of a relation in this tick, or all of it when the view is being filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.log import Cut, EmbeddedLog, Log
from headwater.operators.keys import hashed_schema
from headwater.operators.table import negated
from headwater.read.relation import Relation
from headwater.state.arrangement import Arrangement
from headwater.state.run import Run
from headwater.state.shape import shaped
from headwater.tick.pieces import Negated, Piece, arranged_pieces, recorded_pieces
from headwater.tick.relations import columns_of, stream_rows
from headwater.tick.state import TickState
from headwater.views.plan import Arranged


class Input(Protocol):
    """Rows with `_weight`, as one table or as pieces for workers."""

    @property
    def rows(self) -> int:
        """How many there are, or somewhat more."""
        ...

    def table(self) -> pa.Table:
        """The columns of the relation and `_weight`."""
        ...

    def pieces(self) -> Sequence[Piece]:
        """The same in pieces."""
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

    def table(self) -> pa.Table:
        """Each record as a row."""
        return stream_rows(self._relation, self._log, self._after, self._until)

    def pieces(self) -> Sequence[Piece]:
        """The records by extents."""
        topic, log = self._relation.topic, self._log
        assert topic is not None
        assert isinstance(log, EmbeddedLog)
        extents = log.extents(topic.name, after=self._after, until=self._until)
        return list(recorded_pieces(self._relation.kind, columns_of(self._relation), extents, self.rows))


def is_complete(relation: Relation, log: Log, after: Cut) -> bool:
    """Whether the log still has everything that came to a topic after a cut."""
    topic = relation.topic
    assert topic is not None
    return all(log.start(topic.name, n) <= after.end(topic.name, n) for n in range(topic.partitions))


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
        self._arrangement = Arrangement(state.folder, schema, runs)
        self._old = old

    @property
    def rows(self) -> int:
        """The rows of its runs."""
        return self._arrangement.rows

    def table(self) -> pa.Table:
        """The rows, from memory if they are there."""
        return self._whole().drop_columns([HASH])

    def _whole(self) -> pa.Table:
        if self._table is None:
            tables = list(self._arrangement.scan())
            self._table = pa.concat_tables(tables) if tables else self._schema.empty_table()
        return self._table

    def pieces(self) -> Sequence[Piece]:
        """The rows by ranges of hashes."""
        return list(arranged_pieces(self._arrangement, self._state.folder))

    def arranged(self, node: Arranged) -> tuple[pa.Table, Arrangement]:
        """The rows with their hashes, and those before, with the columns of an operator's input."""
        columns, schema = [*node.columns, HASH, WEIGHT], hashed_schema(node.schema)
        return shaped(self._whole().select(columns), schema), self.held.select(node.columns, schema)

    @property
    def held(self) -> Arrangement:
        """The rows that were there before."""
        return Arrangement(self._state.folder, self._schema, self._old())

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

    def table(self) -> pa.Table:
        """The rows with their weights turned around."""
        return negated(self._given.table())

    def pieces(self) -> Sequence[Piece]:
        """The same in pieces."""
        return [Negated(piece) for piece in self._given.pieces()]
