"""The physical plan: what a tick does for a view, as data, and what an operator does in it.

    Load        the change of a relation
    Rows        rows that the query itself holds, when the view is filled
    Apply       expressions, to each row alone
    Together    several changes as one
    Exchange    a change brought by the hash of a key, in one place or in ranges of hashes
    Operate     an operator that keeps something, on what exchanges brought

There are two ways of running it: in this process, or in stages of tasks. Both know these steps, and no operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from headwater.change import HASH
from headwater.change.consolidate import consolidate
from headwater.change.pairs import PairBlocks, Pairs
from headwater.expressions.expression import Direct
from headwater.state.arrangement import Arrangement

Evaluate = Callable[[Sequence[pa.Table]], pa.Table]
"""Evaluates what an operator holds for the evaluator, on the rows of each of its inputs."""
EvaluateRows = Callable[[Any, pa.Table], pa.Table]
"""Evaluates what a fragment holds for the evaluator, on its columns and `_row`: gives others, and `_row`."""


@dataclass(frozen=True)
class State:
    """Rows that an operator keeps beside those of its inputs, with their hash.

    Where they are just what it has `emitted`, the rows of a view that shows the same will do, without the `spare`
    columns.
    """

    name: str
    schema: pa.Schema
    emitted: bool = False
    spare: tuple[str, ...] = ()


class Given(NamedTuple):
    """What an operator is given of an input: its change in a range of hashes, in parts, and its rows before.

    The parts are together consolidated if they are `settled`. They are what `Partial` made of rows if they are
    `partial`.
    """

    parts: Sequence[pa.Table]
    old: Arrangement
    is_settled: bool = False
    is_partial: bool = False

    @property
    def change(self) -> pa.Table:
        """All parts as one table."""
        return pa.concat_tables(self.parts) if self.parts else self.old.schema.empty_table()

    def settled(self) -> Given:
        """The same consolidated."""
        return self if self.is_settled else self._replace(parts=[consolidate(self.change)], is_settled=True)


class Made(NamedTuple):
    """What an operator makes of changes.

    `kept` is what the state of each input, and then each of its own, gets; None if nothing. `result` is its change,
    in parts, with `_hash` or without; `read` counts the rows of its state that it looked at. Pairs are not made
    before they are reached.
    """

    kept: Sequence[pa.Table | None]
    result: Sequence[pa.Table | PairBlocks]
    read: int

    @property
    def is_large(self) -> bool:
        """Whether it has pairs that should not all be in memory."""
        return any(isinstance(each, PairBlocks) and each.is_large for each in self.result)

    def parts(self) -> Iterator[pa.Table | Pairs]:
        """The result part by part, without hashes."""
        for each in self.result:
            if isinstance(each, PairBlocks):
                yield from each
            else:
                yield _unhashed(each)

    def table(self) -> pa.Table:
        """The result in one table, without hashes; `TooLarge` before pairs are made that do not fit into memory."""
        tables = [each if isinstance(each, pa.Table) else each.table() for each in self.result]
        return _unhashed(pa.concat_tables(tables))


def _unhashed(table: pa.Table) -> pa.Table:
    return table.drop_columns([HASH]) if HASH in table.column_names else table


class Partial(Protocol):
    """What can be made of a part of a change, so that less goes on to the operator.

    A task makes it of so many `slices`. Rows with the same `groups` need not be told apart; None if they do.
    """

    @property
    def schema(self) -> pa.Schema:
        """What it makes."""
        ...

    @property
    def slices(self) -> int:
        """Of how many slices a task makes one part."""
        ...

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The columns that rows may differ in, if others do not count."""
        ...

    def of(self, change: pa.Table) -> pa.Table:
        """The part for rows, not none, with their hashes."""
        ...


class Operation(Protocol):
    """What is done with changes in a range of hashes."""

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Turn the changes of its inputs into its own."""
        ...


class Operates(Operation, Protocol):
    """What both ways of running ask of an operator. It is data, and goes to workers as `portable()`."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        ...

    @property
    def states(self) -> tuple[State, ...]:
        """What it keeps beside the rows of its inputs."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether all is of one key: it operates on everything at once, also where nothing came."""
        ...

    @property
    def partial(self) -> Partial | None:
        """What is made of parts of its only input's change before; None if nothing."""
        ...

    def portable(self) -> Operates:
        """The same without what belongs to this process."""
        ...

    def is_hashed_by(self, key: tuple[str, ...]) -> bool:
        """Whether its change comes by the hash of a key, so that it can be kept as it is."""
        ...


class Asks(Operates, Protocol):
    """An operator that has all it needs evaluated once, between two steps, so that executors can do it."""

    def asked(
        self, place: int, inputs: Sequence[Given], states: Sequence[Arrangement], *, filling: bool
    ) -> pa.Table:
        """The rows of one input that are to be evaluated."""
        ...

    def answered(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], made: pa.Table, *, filling: bool
    ) -> Made:
        """Take what was evaluated, in place of `operate`."""
        ...


class Applies(Protocol):
    """What both ways of running ask of expressions that are applied to each row alone. It is data.

    Rows with a null in one of `present` are left out first; `inputs` is what expressions look at, and `passed` has
    the new and the old names of what goes by untouched. `computing` is what Spark evaluates, `direct` the same for
    Arrow, if it can.
    """

    @property
    def present(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def inputs(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def computing(self) -> Any: ...  # noqa: D102

    @property
    def direct(self) -> Direct | None: ...  # noqa: D102

    @property
    def passed(self) -> tuple[tuple[str, str], ...]: ...  # noqa: D102

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        ...

    @property
    def computes(self) -> bool:
        """Whether anything is evaluated."""
        ...

    def portable(self) -> Applies:
        """The same without what belongs to this process."""
        ...

    def apply(self, rows: pa.Table | Pairs, evaluate: EvaluateRows, aside: Any = None) -> pa.Table:
        """What becomes of rows with `_weight`; those that have no value are set `aside`, if that is possible."""
        ...

    def in_panes(self, rows: pa.Table | Pairs, groups: tuple[str, ...] | None) -> tuple[Applies, pa.Table | Pairs]:
        """Fewer rows, and what is to be applied to them instead, where `groups` is all that rows count by."""
        ...


@dataclass(frozen=True)
class Load:
    """The change of a relation: `columns` as they are called there. One that `is_arranged` is by the right key."""

    relation: str
    columns: tuple[str, ...]
    schema: pa.Schema
    is_arranged: bool = False


@dataclass(frozen=True)
class Rows:
    """Rows that the query itself holds: they appear once, when the view is filled."""

    rows: pa.Table
    schema: pa.Schema


@dataclass(frozen=True)
class Apply:
    """Expressions, to each row alone."""

    fragment: Applies
    of: Step

    @property
    def schema(self) -> pa.Schema:
        """The columns that it gives."""
        return self.fragment.schema


@dataclass(frozen=True)
class Together:
    """All rows of all parts; their columns go by position."""

    parts: tuple[Step, ...]
    schema: pa.Schema


@dataclass(frozen=True)
class Exchange:
    """A change by the hash of a key: rows with a null in it are dropped, or `match` none.

    It has the columns of `schema`, with hash and weight. It is kept under the name of a `state`, if there is one,
    and consolidated, if it `settles`, where all of it is in one place.
    """

    of: Step
    schema: pa.Schema
    key: tuple[str, ...]
    drops: bool = False
    matches: bool = False
    state: str = ""
    settles: bool = True


@dataclass(frozen=True)
class Operate:
    """An operator on what exchanges brought; `computing` is what it `Asks` to have evaluated, if it does."""

    operator: Operates
    inputs: tuple[Exchange, ...]
    computing: Any = None

    @property
    def schema(self) -> pa.Schema:
        """The columns that it gives."""
        return self.operator.schema


Step = Load | Rows | Apply | Together | Operate
