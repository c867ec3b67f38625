"""Top-k of rows that may leave: a tree whose nodes have the first rows of those below them.

When a row that was given leaves, the next one is found in its leaf and among the first rows of the other nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.gather import gather
from headwater.change.keys import Codes, hashed_schema
from headwater.change.weights import appended, negated
from headwater.operators.descent import ROWS, Groups, groups_schema, nodes_schema
from headwater.operators.growth import grouped_rows, grown, settled
from headwater.operators.partials import Siblings, Valued
from headwater.operators.ranking import Ranking, ranked, repeated
from headwater.operators.stateful import Stateful, keys_told
from headwater.operators.trie import Nodes
from headwater.plan.operators import Keyed, Names, Node
from headwater.plan.physical import Evaluate, Exchange, Given, Made, State
from headwater.plan.registry import register
from headwater.state.arrangement import Arrangement

MOST_ROWS = 64
"""Of more rows, a node would have as many as a leaf."""
_FIRST = "_first"


@register()
@dataclass(frozen=True)
class TopKTree(Stateful):
    """The first rows of each key, but for those before the `offset`, of rows that may leave.

    `text` is what people call it.
    """

    kind: ClassVar[str] = "tree"
    child: Node = field(kw_only=True)
    ranking: Ranking = field(kw_only=True)
    keys: tuple[str, ...] = ()
    offset: int = 0
    name: str = ""
    text: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        """Its input."""
        return (self.child,)

    def over(self, children: Sequence[Node]) -> Self:
        """The same over another."""
        return replace(self, child=children[0])

    def renamed(self, names: Names) -> Self:
        """Its keys and its order have the same names."""
        return replace(super().renamed(names), keys=names.all(self.keys), ranking=self.ranking.renamed(names))

    def bare(self) -> Self:
        """Its keys and its order are left."""
        return replace(super().bare(), text="")

    @property
    def arranged_by(self) -> tuple[str, ...]:
        """First rows are few, if they come with their key."""
        return self.keys if set(self.keys) <= set(self.schema.names) else ()

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Its input by group, of which nothing is kept: its own states have all rows."""
        return (replace(Keyed(self.child, self.keys).physical(), settles=False),)

    @property
    def first_rows(self) -> FirstRows:
        """What is kept of a node."""
        return FirstRows(self.ranking, self.child.schema)

    @property
    def states(self) -> tuple[State, ...]:
        """The groups with their first rows, the nodes, and the rows."""
        keys = pa.schema([self.child.schema.field(name) for name in self.keys])
        fields = self.first_rows.fields
        return (
            State(self.name, groups_schema(keys, fields)),
            State(f"{self.name}.nodes", nodes_schema(keys, fields)),
            State(f"{self.name}.rows", hashed_schema(self.child.schema)),
        )

    @property
    def is_whole(self) -> bool:
        """Whether there is one order of all rows."""
        return not self.keys

    def is_hashed_by(self, key: tuple[str, ...]) -> bool:
        """Its rows have the hash of their group."""
        return key == self.keys

    @property
    def title(self) -> str:
        """What Spark calls it."""
        return self.text

    @property
    def work(self) -> str:
        """What a tick costs."""
        return "looks at the leaves of touched rows, some hundred rows each, and the first rows of nodes above"

    @property
    def keeps(self) -> Mapping[str, str]:
        """The groups, the nodes, and the rows."""
        return keys_told({state.name: (self.child, self.keys) for state in self.states})

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Find the leaves of the rows that came or went, and the first rows of those and of what lies above."""
        kept, nodes, rows = states
        groups, came = grouped_rows(settled(inputs[0].change, self.keys), self.keys, kept)
        made = grown(groups, came, nodes, rows, self.first_rows)
        state = consolidate(pa.concat_tables([negated(groups.held), _group_rows(groups, made.roots, kept.schema)]))
        return Made([None, state, made.nodes, made.rows], [_shown(self, state)], groups.read + made.read)


class FirstRows:
    """The first rows of nodes, as a list of each."""

    def __init__(self, ranking: Ranking, schema: pa.Schema) -> None:
        self._ranking = ranking
        self._kind = pa.struct(list(schema))
        self._schema = schema

    @property
    def fields(self) -> list[pa.Field]:
        """One column of lists."""
        return [pa.field(_FIRST, pa.list_(self._kind))]

    def of_leaves(self, leaves: Nodes, rows: pa.Table, leaf_of: Codes) -> Valued:
        """Of the rows of leaves."""
        count = len(leaves.groups)
        values = self._ranked(rows.append_column(HASH, pa.array(leaf_of)), count)
        return Valued(leaves, np.bincount(leaf_of, minlength=count), values)

    def of_parents(self, children: Valued) -> Valued:
        """Of the first rows of their children."""
        siblings = Siblings.of(children.nodes)
        lists = gather(children.values, siblings.order).column(_FIRST).combine_chunks()
        owners = np.repeat(siblings.parent_of, lists.value_lengths().to_numpy())
        rows = _unlisted(lists).append_column(HASH, pa.array(owners))
        return Valued(
            siblings.parents, siblings.sums(children.counts), self._ranked(appended(rows), len(siblings.firsts))
        )

    def _ranked(self, rows: pa.Table, count: int) -> pa.Table:
        """The first rows of each of so many nodes, whose numbers are the rows' hashes."""
        rows = repeated(rows, self._ranking.limit).drop_columns([WEIGHT])
        chosen, _, _ = ranked(self._ranking, (), rows)
        found = gather(rows, chosen)
        lengths = np.bincount(found.column(HASH).to_numpy(), minlength=count)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        arrays = [column.combine_chunks() for column in found.drop_columns([HASH]).columns]
        structs = pa.StructArray.from_arrays(arrays, fields=list(self._schema))
        lists = pa.ListArray.from_arrays(offsets, structs, type=pa.list_(self._kind))
        return pa.Table.from_arrays([lists], schema=pa.schema(self.fields))


def _unlisted(lists: pa.ListArray) -> pa.Table:
    """The rows that are in lists, one list after the other."""
    structs = lists.flatten()
    return pa.Table.from_arrays(structs.flatten(), names=[each.name for each in structs.type])


def _group_rows(groups: Groups, found: Valued, schema: pa.Schema) -> pa.Table:
    """What is kept of groups, given their topmost nodes."""
    owners = gather(groups.rows, found.nodes.groups)
    columns = {name: owners.column(name) for name in owners.column_names}
    columns |= {ROWS: pa.array(found.counts), _FIRST: found.values.column(_FIRST)}
    columns[WEIGHT] = pa.array(np.ones(len(found.counts), np.int64))
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _shown(node: TopKTree, state: pa.Table) -> pa.Table:
    """The rows that are given, of a change of the groups, with the hash of their key."""
    lists = state.column(_FIRST).combine_chunks()
    lengths = lists.value_lengths().to_numpy()
    groups = np.repeat(np.arange(len(lists)), lengths)
    places = np.arange(len(groups)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
    rows = _unlisted(lists)
    columns = {name: rows.column(name) for name in rows.column_names}
    columns |= {name: state.column(name).take(pa.array(groups)) for name in (HASH, WEIGHT)}
    schema = hashed_schema(node.schema)
    if node.ranking.place in schema.names:
        columns[node.ranking.place] = pa.array(places, schema.field(node.ranking.place).type)
    shown = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
    return consolidate(shown.filter(pa.array(places > node.offset)))
