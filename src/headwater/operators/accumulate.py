"""The accumulating operator: one row per group, kept as accumulators.

The state of a group is one row: its key, the number of its rows, the accumulators of each call, and the results as
they were emitted. A tick adds the change to the accumulators of the touched groups; what is taken back is what
was emitted, never evaluated again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.gather import gather, in_parts
from headwater.change.keys import Codes, grouped, hashed_schema, hashes
from headwater.change.weights import negated
from headwater.evaluation.ways import naming_one_of
from headwater.operators.accumulators import ONLY, accumulator
from headwater.operators.aggregate_call import Accumulator, AggregateCall
from headwater.operators.stateful import Stateful, keys_told
from headwater.plan.operators import Keyed, Names, Node
from headwater.plan.physical import Evaluate, Exchange, Given, Made, State
from headwater.plan.registry import register
from headwater.state.arrangement import Arrangement
from headwater.store import LessThanNone

ROWS = "_rows"
_LARGE = 1 << 30
"""A change of so many bytes is accumulated in parts: one column of Arrow's cannot have all of its text."""


@register()
@dataclass(frozen=True)
class Aggregate(Stateful):
    """One row per group; without keys one row always. Without calls it is DISTINCT."""

    kind: ClassVar[str] = "accumulating"
    child: Node = field(kw_only=True)
    keys: tuple[str, ...] = ()
    calls: tuple[AggregateCall, ...] = ()
    name: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        """Its input."""
        return (self.child,)

    def over(self, children: Sequence[Node]) -> Self:
        """The same over another."""
        return replace(self, child=children[0])

    def renamed(self, names: Names) -> Self:
        """Its keys and calls have the same names."""
        calls = tuple(call.renamed(names) for call in self.calls)
        return replace(super().renamed(names), keys=names.all(self.keys), calls=calls)

    def bare(self) -> Self:
        """Its calls are the same."""
        calls = tuple(replace(call, result=replace(call.result, shown="")) for call in self.calls)
        return replace(super().bare(), calls=calls)

    @property
    def retracts(self) -> bool:
        """What a group gives is taken back when it becomes another."""
        return bool(self.calls)

    @property
    def arranged_by(self) -> tuple[str, ...]:
        """One row has a key."""
        return self.keys

    @property
    def itself(self) -> tuple[str, Keyed] | None:
        """It can be shared by its own key."""
        return (self.name, Keyed(self, self.keys)) if self.keys else None

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Its input by group, of which nothing is kept: what cancels out does so when it is added."""
        keyed = Keyed(self.child, self.keys)
        return (replace(keyed.physical(), settles=False),)

    @property
    def states(self) -> tuple[State, ...]:
        """The groups."""
        return (State(self.name, state_schema(self)),)

    @property
    def is_whole(self) -> bool:
        """Without keys there is always a row."""
        return not self.keys

    @property
    def partial(self) -> PartialAggregate | None:
        """What parts of a change add to the accumulators."""
        return PartialAggregate(self.portable()) if all(call.function != ONLY for call in self.calls) else None

    def is_hashed_by(self, key: tuple[str, ...]) -> bool:
        """Its rows have the hash of their group."""
        return key == self.keys

    @property
    def title(self) -> str:
        """What SQL says of it."""
        groups = self.child.shown(self.keys)
        if not self.calls:
            return f"distinct {groups}"
        calls = ", ".join(call.result.shown for call in self.calls)
        return f"group by {groups}: {calls}" if self.keys else f"aggregate everything: {calls}"

    @property
    def work(self) -> str:
        """What a tick costs."""
        return "adds the change to the touched groups"

    @property
    def keeps(self) -> Mapping[str, str]:
        """The groups."""
        return keys_told({self.name: (self.child, self.keys)})

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Add the change, or what its parts add, to the groups."""
        (given,), (held,) = inputs, states
        if given.is_partial and given.parts:
            state, result, read = accumulate_partials(self, given.parts, held)
        else:
            rows = pa.concat_tables(given.parts) if given.parts else self._nothing()
            state, result, read = accumulate(self, rows, held)
        return Made([None, state], [result], read)

    def _nothing(self) -> pa.Table:
        return hashed_schema(self.child.schema).empty_table()


@dataclass(frozen=True)
class PartialAggregate:
    """What a part of a change adds to the accumulators of its groups.

    Of few slices not many groups are there twice, so several make one part.
    """

    node: Aggregate
    slices: ClassVar[int] = 4

    @property
    def schema(self) -> pa.Schema:
        """The groups without results."""
        return partial_schema(self.node)

    @property
    def groups(self) -> tuple[str, ...] | None:
        """Rows of a group with the same arguments count by their weight alone."""
        return self.node.keys

    def of(self, change: pa.Table) -> pa.Table:
        """See `partial_aggregate`."""
        return partial_aggregate(self.node, change)


def state_schema(node: Aggregate) -> pa.Schema:
    """The columns of the operator's arrangement."""
    fields = [*_key_fields(node), pa.field(ROWS, pa.int64())]
    for place, call in enumerate(node.calls):
        made = accumulator(call, node.child.schema)
        fields += [pa.field(name, kind) for name, (_, kind) in zip(_names(place, made), made.fields, strict=True)]
    fields += [pa.field(call.result.name, call.result.type) for call in node.calls]
    return hashed_schema(pa.schema(fields))


def partial_schema(node: Aggregate) -> pa.Schema:
    """The columns of `partial_aggregate`."""
    results = {call.result.name for call in node.calls}
    return pa.schema([field for field in state_schema(node) if field.name not in results])


def partial_aggregate(node: Aggregate, change: pa.Table) -> pa.Table:
    """What a part of a change, not empty, adds to the accumulators of each of its groups."""
    weights = change.column(WEIGHT).to_numpy()
    groups, _ = _groups(node, change, change.slice(0, 0))
    columns = _identity(node, change, groups)
    columns[ROWS] = pa.array(_row_counts(weights, groups))
    for place, call in enumerate(node.calls):
        made = accumulator(call, node.child.schema)
        parts = made.partial(change, weights, groups.numbers, groups.count)
        columns |= dict(zip(_names(place, made), parts, strict=True))
    schema = partial_schema(node)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def accumulate_partials(
    node: Aggregate, partials: Sequence[pa.Table], old: Arrangement
) -> tuple[pa.Table, pa.Table, int]:
    """The same as `accumulate`, for a change of which parts were accumulated before."""
    change = pa.concat_tables(partials)
    before = old.probe(change.column(HASH).to_numpy())
    groups, kept = _touched(node, change, before)
    rows = _rows_before(kept, groups)
    np.add.at(rows, groups.numbers, change.column(ROWS).to_numpy())
    ends = np.cumsum([part.num_rows for part in partials])[:-1]
    numbers = np.split(groups.numbers, ends)

    def values(place: int, made: Accumulator) -> list[pa.Array]:
        names = _names(place, made)
        found = _held_values(kept, names, groups.count)
        for part, mine in zip(partials, numbers, strict=True):
            some = [array.take(pa.array(mine)) for array in found]
            merged = made.merge(some, [part.column(name).combine_chunks() for name in names])
            chosen = np.arange(groups.count)
            chosen[mine] = groups.count + np.arange(len(mine))
            both = zip(found, merged, strict=True)
            found = [pa.concat_arrays(pair).take(pa.array(chosen)) for pair in both]
        return found

    after = _after(node, _identity(node, change, groups), rows, values, old.schema)
    state = consolidate(pa.concat_tables([negated(kept.rows), after]))
    return state, consolidate(_results(node, state)), before.num_rows


def accumulate(node: Aggregate, change: pa.Table, old: Arrangement) -> tuple[pa.Table, pa.Table, int]:
    """The change of the state, the change of the result, and the number of state rows read.

    `change` has the columns of the operator's input, `_hash` of the key, and `_weight`.
    """
    if change.nbytes > _LARGE and node.partial is not None:
        return accumulate_partials(node, [partial_aggregate(node, part) for part in in_parts(change)], old)
    touched = change.column(HASH).to_numpy()
    before = old.probe(touched if node.keys else hashes(pa.table({"x": [0]}), []))
    if not change.num_rows and (node.keys or before.num_rows):
        return old.schema.empty_table(), _results(node, old.schema.empty_table()), before.num_rows

    def computed(parts: Sequence[pa.Table]) -> pa.Table:
        return _state(node, parts[0], before, old.schema)

    state = naming_one_of(computed, [change], [node.child.output])
    return state, consolidate(_results(node, state)), before.num_rows


def _state(node: Aggregate, change: pa.Table, before: pa.Table, schema: pa.Schema) -> pa.Table:
    """The change of the state, given what the touched groups were before."""
    groups, kept = _touched(node, change, before)
    weights = change.column(WEIGHT).to_numpy()

    def values(place: int, made: Accumulator) -> list[pa.Array]:
        part = made.partial(change, weights, groups.numbers, groups.count)
        return made.merge(_held_values(kept, _names(place, made), groups.count), part)

    rows = _rows_before(kept, groups) + _row_counts(weights, groups)
    after = _after(node, _identity(node, change, groups), rows, values, schema)
    return consolidate(pa.concat_tables([negated(kept.rows), after]))


class _Groups:
    """The touched groups of a change: the number of each row's group, and a first row of each group."""

    def __init__(self, numbers: Codes, count: int) -> None:
        self.numbers = numbers
        self.count = count
        self.first = np.zeros(count, np.int64)
        self.first[numbers[::-1]] = np.arange(len(numbers))[::-1]


def _groups(node: Aggregate, change: pa.Table, before: pa.Table) -> tuple[_Groups, Codes]:
    """The groups of the change, and which of them (or a number beyond them) each old row is of."""
    if not node.keys:
        return _Groups(np.zeros(change.num_rows, np.int64), 1), np.zeros(before.num_rows, np.int64)
    new, held = grouped([change, before], node.keys)
    seen = np.zeros(int(max(new.max(), held.max(initial=0))) + 1, np.bool_)
    seen[new] = True
    count = int(np.count_nonzero(seen))
    place = np.where(seen, np.cumsum(seen) - 1, count)
    return _Groups(place[new], count), place[held]


class _Held(NamedTuple):
    """The state of touched groups before the tick, and the group that each row of it is of."""

    rows: pa.Table
    groups: Codes


def _touched(node: Aggregate, change: pa.Table, before: pa.Table) -> tuple[_Groups, _Held]:
    """The groups of the change, and the old rows of those: others may have the same hash."""
    groups, held = _groups(node, change, before)
    mine = held < groups.count
    return groups, _Held(before.filter(pa.array(mine)), held[mine])


def _row_counts(weights: Codes, groups: _Groups) -> Codes:
    counts = np.zeros(groups.count, np.int64)
    np.add.at(counts, groups.numbers, weights)
    return counts


def _rows_before(held: _Held, groups: _Groups) -> Codes:
    """How many rows each group had."""
    rows = np.zeros(groups.count, np.int64)
    rows[held.groups] = held.rows.column(ROWS).to_numpy()
    return rows


def _identity(node: Aggregate, change: pa.Table, groups: _Groups) -> dict[str, pa.Array]:
    """The keys of the groups, their hashes, and that each is there once."""
    columns = {name: _first(change, name, groups) for name in node.keys}
    columns[HASH] = _first(change, HASH, groups) if node.keys else pa.array(hashes(pa.table({"x": [0]}), []))
    columns[WEIGHT] = pa.array(np.ones(groups.count, np.int64))
    return columns


def _names(place: int, made: Accumulator) -> list[str]:
    """The columns of a call's accumulators."""
    return [f"_a{place}_{name}" for name, _ in made.fields]


def _after(
    node: Aggregate,
    columns: dict[str, pa.Array],
    rows: Codes,
    values: Callable[[int, Accumulator], list[pa.Array]],
    schema: pa.Schema,
) -> pa.Table:
    """The state of the touched groups after the change, given its accumulators by call."""
    if (rows < 0).any():
        raise LessThanNone(node.name)
    columns[ROWS] = pa.array(rows)
    for place, call in enumerate(node.calls):
        made = accumulator(call, node.child.schema)
        found = values(place, made)
        columns |= dict(zip(_names(place, made), found, strict=True))
        columns[call.result.name] = made.result(found)
    table = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
    return table.filter(pa.array(rows > 0)) if node.keys else table


def _held_values(held: _Held, names: Sequence[str], count: int) -> list[pa.Array]:
    """The old accumulators of a call by group, null where there was none."""
    places = np.full(count, -1, np.int64)
    places[held.groups] = np.arange(len(held.groups))
    index = pa.array(places, mask=places < 0)
    return [held.rows.column(name).combine_chunks().take(index) for name in names]


def _first(change: pa.Table, name: str, groups: _Groups) -> pa.Array:
    return gather(change.select([name]), groups.first).column(0).combine_chunks()


def _key_fields(node: Aggregate) -> list[pa.Field]:
    return [node.child.schema.field(name) for name in node.keys]


def _results(node: Aggregate, state: pa.Table) -> pa.Table:
    """What groups look like from outside, with the hash of their key."""
    return state.select([*(each.name for each in node.output), HASH, WEIGHT])
