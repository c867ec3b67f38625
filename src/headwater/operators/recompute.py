"""The general operator: all rows of the touched keys are evaluated anew.

Its inputs and its output are arranged by the same hash. A tick fetches the rows of the touched hashes, applies the
change, and lets Spark evaluate them; what is taken back is what was emitted for those hashes before. It keeps the
rows of its inputs, and what it has emitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.canonical import canonical_order
from headwater.change.consolidate import consolidate
from headwater.change.gather import each_once, gather
from headwater.change.keys import Codes, codes, hashed_schema, hashes
from headwater.change.shape import shaped
from headwater.change.weights import appended, negated
from headwater.evaluation import PLACE
from headwater.evaluation.ways import naming_one_of
from headwater.operators.ranking import Ranking
from headwater.operators.stateful import Stateful, keys_told
from headwater.plan.operators import Keyed, Names, Node
from headwater.plan.physical import Evaluate, Exchange, Given, Made, State
from headwater.plan.registry import register
from headwater.state.arrangement import Arrangement
from headwater.store import LessThanNone

_SELECTS = "compares the change with the rows it has given; looks at {} when one of those leaves"


@register()
@dataclass(frozen=True)
class Recompute(Stateful):
    """Any operator of Spark's, evaluated anew on all rows of the touched keys.

    `keys` are the key columns of each input; without any, all rows are of one key. Rows with a null in a key that
    `matches` belong to no other row. One that `selects` gives the first rows of each key in a fixed order, so that
    those and what comes stand for all, until one of them leaves; with `first` it is a `TopK`. One that `forgets`
    need not keep its inputs. `reason` is why it did not become a faster kind.
    """

    kind: ClassVar[str] = "recompute"
    inputs: tuple[Node, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    computing: Any = None
    matches: bool = False
    selects: bool = False
    forgets: bool = False
    first: Ranking | None = None
    name: str = ""
    text: str = ""
    reason: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        """Its inputs."""
        return self.inputs

    def over(self, children: Sequence[Node]) -> Self:
        """The same over others."""
        return replace(self, inputs=tuple(children))

    def renamed(self, names: Names) -> Self:
        """Its keys, and the leaves of what is evaluated, have the same names."""
        leaves = tuple(replace(leaf, columns=names.fields(leaf.columns)) for leaf in self.computing.leaves)
        computing = replace(self.computing, leaves=leaves, outputs=names.fields(self.computing.outputs))
        keys = tuple(names.all(key) for key in self.keys)
        first = None if self.first is None else self.first.renamed(names)
        return replace(super().renamed(names), keys=keys, computing=computing, first=first)

    def bare(self) -> Self:
        """Its keys are left, and what it may forget."""
        return replace(super().bare(), computing=None, text="", reason="")

    def portable(self) -> Self:
        """What Spark evaluates is sent by Spark."""
        return replace(super().portable(), computing=None)

    @property
    def computed(self) -> Any:
        """What Spark evaluates."""
        return self.computing

    @property
    def asks(self) -> Any:
        """Executors evaluate all of it."""
        return self.computing

    @property
    def arranged_by(self) -> tuple[str, ...]:
        """First rows are few, if they come with their key."""
        return self.keys[0] if self.selects and set(self.keys[0]) <= set(self.schema.names) else ()

    @property
    def is_whole(self) -> bool:
        """Whether every change touches everything."""
        return not any(self.keys)

    @property
    def _by_state(self) -> dict[str, Keyed]:
        pairs = enumerate(zip(self.inputs, self.keys, strict=True))
        return {f"{self.name}.{number}": Keyed(node, key, matches=self.matches) for number, (node, key) in pairs}

    @property
    def keyed(self) -> dict[str, Keyed]:
        """Its inputs by their keys, each under the name of its state."""
        return {} if self.forgets else self._by_state

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Its inputs; their rows are kept, if they must be."""
        return tuple(keyed.physical("" if self.forgets else state) for state, keyed in self._by_state.items())

    @property
    def states(self) -> tuple[State, ...]:
        """What it has emitted."""
        return (State(f"{self.name}.result", hashed_schema(self.schema), emitted=True),)

    @property
    def title(self) -> str:
        """What Spark calls it."""
        return self.text

    @property
    def work(self) -> str:
        """What a tick costs, and why it costs no less."""
        work = "evaluates all rows of the touched keys anew"
        if self.selects:
            work = _SELECTS.format("everything" if self.is_whole else "all rows of its key")
        elif self.is_whole:
            work = "evaluates everything anew, whatever changed"
        return f"{work}: {self.reason}" if self.reason else work

    @property
    def keeps(self) -> Mapping[str, str]:
        """The rows of its inputs, if it does not forget them, and what it has emitted."""
        states = {name: (keyed.node, keyed.key) for name, keyed in self.keyed.items()}
        return keys_told({**states, f"{self.name}.result": (self.inputs[0], self.keys[0])})

    # -- a tick

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Evaluate the rows of the touched keys."""
        given = [each.settled() for each in inputs]
        result, read = recompute(
            self, [Part(each.change, each.old) for each in given], states[0], evaluate, filling=filling
        )
        return self._made(given, result, read)

    def asked(
        self, place: int, inputs: Sequence[Given], states: Sequence[Arrangement], *, filling: bool
    ) -> pa.Table:
        """The rows of an input that Spark is to evaluate."""
        parts = [Part(each.settled().change, each.old) for each in inputs]
        touched = touched_by(self, parts, filling=filling)
        emitted = states[0].probe(touched) if self.selects else states[0].schema.empty_table()
        return in_order(input_rows(self, parts[place], touched, emitted)[0])

    def answered(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], made: pa.Table, *, filling: bool
    ) -> Made:
        """Take what Spark made of them."""
        given = [each.settled() for each in inputs]
        touched = touched_by(self, [Part(each.change, each.old) for each in given], filling=filling)
        emitted = states[0].probe(touched)
        wanted = pa.schema([field for field in emitted.schema if field.name != WEIGHT])
        read = emitted.num_rows + sum(each.old.matches(touched) for each in given)
        return self._made(given, difference(emitted, shaped(made, wanted)), read)

    def _made(self, given: Sequence[Given], result: pa.Table, read: int) -> Made:
        return Made([*(None if self.forgets else each.change for each in given), result], [result], read)


class Part(NamedTuple):
    """An input of the operator: its change, with `_hash`, and its rows before the tick."""

    change: pa.Table
    old: Arrangement


def recompute(
    node: Recompute, parts: Sequence[Part], old: Arrangement, evaluate: Evaluate, *, filling: bool
) -> tuple[pa.Table, int]:
    """The change of the output, with `_hash` and `_weight`, and the number of state rows read.

    `evaluate` gets the rows of each input, each as often as its weight says, in canonical order, with `_hash` and
    `_place`; it gives the operator's columns and `_hash`.
    """
    touched = touched_by(node, parts, filling=filling)
    if not len(touched):
        return old.schema.empty_table(), 0
    emitted = old.probe(touched)
    found = [input_rows(node, part, touched, emitted) for part in parts]
    made = _evaluated(node, [rows for rows, _ in found], evaluate)
    return difference(emitted, made), sum(read for _, read in found) + emitted.num_rows


def touched_by(node: Recompute, parts: Sequence[Part], *, filling: bool) -> Codes:
    """The hashes that a change touches, in order."""
    if node.is_whole and filling:
        return whole()
    return each_once(np.concatenate([part.change.column(HASH).to_numpy() for part in parts]))


def input_rows(node: Recompute, part: Part, touched: Codes, emitted: pa.Table) -> tuple[pa.Table, int]:
    """The rows of an input that are to be evaluated, with their weights, and how many were read for it."""
    return candidates(node, part, emitted) if node.selects else _all(part, touched)


def difference(emitted: pa.Table, made: pa.Table) -> pa.Table:
    """What changes if this is given, the operator's columns and `_hash`, instead of what was."""
    new = pa.Table.from_arrays(appended(made).columns, schema=emitted.schema)
    return consolidate(pa.concat_tables([negated(emitted), new]))


def _evaluated(node: Recompute, found: Sequence[pa.Table], evaluate: Evaluate) -> pa.Table:
    """What the operator gives; an error names a row, or one of those that fail together."""

    def computed(tables: Sequence[pa.Table]) -> pa.Table:
        return evaluate([in_order(rows) for rows in tables])

    return naming_one_of(computed, found, [each.output for each in node.inputs])


def _all(part: Part, touched: Codes) -> tuple[pa.Table, int]:
    """All rows with these hashes after the change, and how many were read."""
    held = part.old.probe(touched)
    return consolidate(pa.concat_tables([held, part.change.select(held.column_names)])), held.num_rows


def candidates(node: Recompute, part: Part, emitted: pa.Table) -> tuple[pa.Table, int]:
    """Rows that can be among the first ones after the change, and how many were read for it.

    What was emitted and what came will do, unless something that was emitted leaves: then all rows of its key are
    looked at. What leaves without having been emitted was not among the first ones.
    """
    names = [name for name in node.inputs[0].schema.names if name in node.schema.names]
    change = consolidate(part.change.select([*names, HASH, WEIGHT]))
    shown = consolidate(emitted.select([*names, HASH, WEIGHT]))
    leaving = change.filter(pa.array(change.column(WEIGHT).to_numpy() < 0))
    stale = _shared(shown, leaving)
    held, read = _all(part, stale) if len(stale) else (part.old.schema.empty_table(), 0)
    held = held.filter(pa.array(np.isin(held.column(HASH).to_numpy(), stale)))
    rest = consolidate(pa.concat_tables([shown, change]))
    useful = ~np.isin(rest.column(HASH).to_numpy(), stale) & (rest.column(WEIGHT).to_numpy() > 0)
    return pa.concat_tables([rest.filter(pa.array(useful)), held.select(rest.column_names)]), read


def _shared(one: pa.Table, other: pa.Table) -> Codes:
    """The hashes of rows that both tables have."""
    if not one.num_rows or not other.num_rows:
        return np.zeros(0, np.int64)
    names = [name for name in one.column_names if name != WEIGHT]
    mine, theirs = codes([[table.column(name) for name in names] for table in (one, other)], bitwise=True)
    return each_once(one.column(HASH).to_numpy()[np.isin(mine, theirs)])


def whole() -> Codes:
    """The one hash under which everything is when there is no key."""
    return hashes(pa.table({"x": [0]}), [])


def in_order(table: pa.Table) -> pa.Table:
    """Every row as often as its weight says, in an order that only depends on what the rows are."""
    weights = table.column(WEIGHT).to_numpy()
    if (weights < 0).any():
        raise LessThanNone
    table = table.drop_columns([WEIGHT])
    order = canonical_order(table.drop_columns([HASH]))
    if (weights != 1).any():
        order = np.repeat(order, weights[order])
    table = gather(table, order)
    return table.append_column(pa.field(PLACE, pa.int64()), pa.array(np.arange(table.num_rows)))
