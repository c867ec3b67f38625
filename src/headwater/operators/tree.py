"""Tree: groups whose calls can be merged but not taken back, such as the greatest of rows that may be deleted.

The rows of a group are kept in the leaves of a trie (`trie.py`), and partial results with the nodes. A change of a
row looks at its leaf, and at the children of what lies above; what is taken back is what was emitted, never
evaluated again. A group of few rows is one leaf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.gather import gather
from headwater.change.keys import hashed_schema
from headwater.change.weights import negated
from headwater.evaluation.ways import naming_one_of
from headwater.operators.accumulate import Aggregate
from headwater.operators.accumulators import accumulator
from headwater.operators.descent import ROWS, Groups, groups_schema, nodes_schema
from headwater.operators.growth import grouped_rows, grown, settled
from headwater.operators.partials import Partials, Valued
from headwater.operators.stateful import keys_told
from headwater.operators.trie import roots
from headwater.plan.physical import Evaluate, Given, Made, State
from headwater.plan.registry import register
from headwater.state.arrangement import Arrangement


@register()
@dataclass(frozen=True)
class Tree(Aggregate):
    """One row per group, as of an `Aggregate`, of calls to which a change cannot be added."""

    kind: ClassVar[str] = "tree"

    @property
    def states(self) -> tuple[State, ...]:
        """The groups, the nodes, and the rows."""
        keys = pa.schema([self.child.schema.field(name) for name in self.keys])
        return (
            State(self.name, groups_schema(keys, [call.result.arrow for call in self.calls])),
            State(f"{self.name}.nodes", nodes_schema(keys, self.partials.fields)),
            State(f"{self.name}.rows", hashed_schema(self.child.schema)),
        )

    @property
    def partials(self) -> Partials:
        """What is kept of a node."""
        return Partials([accumulator(call, self.child.schema) for call in self.calls])

    @property
    def partial(self) -> None:
        """All rows are kept."""
        return None

    @property
    def work(self) -> str:
        """What a tick costs."""
        return "looks at the leaves of touched rows, some hundred rows each, and at the nodes above"

    @property
    def keeps(self) -> Mapping[str, str]:
        """The groups, the nodes, and the rows."""
        return keys_told({state.name: (self.child, self.keys) for state in self.states})

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Find the leaves of the rows that came or went, and evaluate those and what lies above anew."""

        def computed(parts: Sequence[pa.Table]) -> Made:
            return _made(self, parts[0], states)

        return naming_one_of(computed, [settled(inputs[0].change, self.keys)], [self.child.output])


def _made(node: Tree, change: pa.Table, states: Sequence[Arrangement]) -> Made:
    """What a settled change makes of the state."""
    kept, nodes, rows = states
    groups, came = grouped_rows(change, node.keys, kept)
    if not change.num_rows and (node.keys or groups.held.num_rows):
        nothing = groups.held.slice(0, 0)
        return Made([None] * (1 + len(states)), [_shown(node, nothing)], groups.read)
    partials = node.partials
    made = grown(groups, came, nodes, rows, partials)
    after = _group_rows(node, groups, _with_empty(node, made.roots), kept.schema)
    state = consolidate(pa.concat_tables([negated(groups.held), after]))
    return Made([None, state, made.nodes, made.rows], [_shown(node, state)], groups.read + made.read)


def _with_empty(node: Tree, found: Valued) -> Valued:
    """Without keys there is always a group."""
    if node.keys or len(found.nodes.groups):
        return found
    nothing = hashed_schema(node.child.schema).empty_table()
    return Valued(roots(1), np.zeros(1, np.int64), node.partials.of_rows(nothing, np.zeros(0, np.int64), 1))


def _group_rows(node: Tree, groups: Groups, found: Valued, schema: pa.Schema) -> pa.Table:
    """What is kept of groups, given their topmost nodes."""
    owners = gather(groups.rows, found.nodes.groups)
    columns = {name: owners.column(name) for name in owners.column_names}
    columns[ROWS] = pa.array(found.counts)
    columns[WEIGHT] = pa.array(np.ones(len(found.counts), np.int64))
    results = node.partials.results(found.values)
    columns |= {call.result.name: made for call, made in zip(node.calls, results, strict=True)}
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _shown(node: Tree, state: pa.Table) -> pa.Table:
    """What groups look like from outside, with the hash of their key."""
    return consolidate(state.select([*(each.name for each in node.output), HASH, WEIGHT]))
