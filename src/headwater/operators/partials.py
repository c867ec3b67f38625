"""Partial results of the nodes of tries: of a leaf from its rows in order, of any other node from its children.

Both go by what the rows are, so that the same rows give the same bits, however they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from headwater.change import WEIGHT
from headwater.change.gather import rows_per_chunk
from headwater.change.keys import Codes
from headwater.operators.aggregate_call import Accumulator
from headwater.operators.trie import Nodes, begins, together

Value = Callable[[pa.Table, Codes, int], list[pa.Array]]


class Valued(NamedTuple):
    """Nodes, how many different rows each has, and its partial results: the accumulators of all calls."""

    nodes: Nodes
    counts: Codes
    values: pa.Table

    def at(self, depth: int) -> Valued:
        """Those at one depth."""
        mine = self.nodes.depths == depth
        return Valued(self.nodes.take(mine), self.counts[mine], self.values.filter(pa.array(mine)))


def both(one: Valued, other: Valued) -> Valued:
    """All of both."""
    values = pa.concat_tables([one.values, other.values])
    return Valued(together([one.nodes, other.nodes]), np.concatenate([one.counts, other.counts]), values)


class Values(Protocol):
    """What is kept of nodes: columns with a value for each."""

    @property
    def fields(self) -> list[pa.Field]:
        """The columns."""
        ...

    def of_leaves(self, leaves: Nodes, rows: pa.Table, leaf_of: Codes) -> Valued:
        """The values of leaves that have these rows, which are in order."""
        ...

    def of_parents(self, children: Valued) -> Valued:
        """The values of the parents of some nodes, which are all of their children."""
        ...


class Siblings(NamedTuple):
    """Nodes as children: their order, their parents, in that order each one's parent, and each parent's first."""

    order: Codes
    parents: Nodes
    parent_of: Codes
    firsts: Codes

    @classmethod
    def of(cls, nodes: Nodes) -> Siblings:
        """Put nodes of one depth in order."""
        order = np.lexsort((nodes.prefixes, nodes.groups))
        above = nodes.take(order).parents
        starts = begins(above.groups, above.prefixes)
        firsts = np.flatnonzero(starts)
        return cls(order, above.take(firsts), np.cumsum(starts) - 1, firsts)

    def sums(self, counts: Codes) -> Codes:
        """The sum of each parent's children."""
        found = np.zeros(len(self.firsts), np.int64)
        np.add.at(found, self.parent_of, counts[self.order])
        return found


class Partials:
    """The partial results of some calls."""

    def __init__(self, calls: Sequence[Accumulator]) -> None:
        self._calls = calls
        self._names = [[f"_a{place}_{name}" for name, _ in call.fields] for place, call in enumerate(calls)]

    @property
    def fields(self) -> list[pa.Field]:
        """The columns of the values."""
        kinds = [kind for call in self._calls for _, kind in call.fields]
        names = [name for several in self._names for name in several]
        return [pa.field(name, kind) for name, kind in zip(names, kinds, strict=True)]

    def of_leaves(self, leaves: Nodes, rows: pa.Table, leaf_of: Codes) -> Valued:
        """The values of leaves that have these rows, which are in order."""
        count = len(leaves.groups)
        parts = [
            self.of_rows(rows.slice(a, b - a), leaf_of[a:b] - first, last - first)
            for a, b, first, last in spans(rows, leaf_of, count)
        ]
        empty = pa.schema(self.fields).empty_table()
        return Valued(leaves, np.bincount(leaf_of, minlength=count), pa.concat_tables([empty, *parts]))

    def of_rows(self, rows: pa.Table, groups: Codes, count: int) -> pa.Table:
        """The values of so many groups of rows."""
        weights = rows.column(WEIGHT).to_numpy()
        made = [call.partial(rows, weights, groups, count) for call in self._calls]
        return self._table(made)

    def _table(self, made: Sequence[Sequence[pa.Array]]) -> pa.Table:
        arrays = [array for several in made for array in several]
        return pa.Table.from_arrays(arrays, schema=pa.schema(self.fields))

    def of_parents(self, children: Valued) -> Valued:
        """The values of the parents of some nodes, which are all of their children."""
        siblings = Siblings.of(children.nodes)
        values = self._merged(children.values, siblings)
        return Valued(siblings.parents, siblings.sums(children.counts), values)

    def _merged(self, values: pa.Table, siblings: Siblings) -> pa.Table:
        """The first child of each parent, with the second, and so on."""
        order, _, parent_of, firsts = siblings
        count, place = len(firsts), np.arange(len(order)) - firsts[parent_of]
        values = values.combine_chunks()
        found = self._arrays(values.take(pa.array(order[firsts])))
        for number in range(1, int(place.max(initial=0)) + 1):
            mine = np.flatnonzero(place == number)
            parents, more = parent_of[mine], self._arrays(values.take(pa.array(order[mine])))
            found = [self._added(*each, parents, count) for each in zip(self._calls, found, more, strict=True)]
        return self._table(found)

    def _added(
        self, call: Accumulator, found: list[pa.Array], more: list[pa.Array], parents: Codes, count: int
    ) -> list[pa.Array]:
        """The values of parents with those of one child more of some of them."""
        if len(parents) == count:
            return call.merge(found, more)
        merged = call.merge([array.take(pa.array(parents)) for array in found], more)
        chosen = np.arange(count)
        chosen[parents] = count + np.arange(len(parents))
        return [pa.concat_arrays(pair).take(pa.array(chosen)) for pair in zip(found, merged, strict=True)]

    def _arrays(self, values: pa.Table) -> list[list[pa.Array]]:
        return [[values.column(name).combine_chunks() for name in names] for names in self._names]

    def results(self, values: pa.Table) -> list[pa.Array]:
        """What the calls give."""
        pairs = zip(self._calls, self._arrays(values), strict=True)
        return [call.result(arrays) for call, arrays in pairs]


def spans(rows: pa.Table, leaf_of: Codes, count: int) -> Iterator[tuple[int, int, int, int]]:
    """Rows of whole leaves, not too many at a time: from which row to which, and from which leaf to which."""
    step, ends = (
        rows_per_chunk(rows.nbytes, rows.num_rows, most=1 << 30),
        np.cumsum(np.bincount(leaf_of, minlength=count)),
    )
    first = start = 0
    while first < count:
        last = max(first + 1, int(np.searchsorted(ends, start + step, side="right")))
        end = int(ends[last - 1])
        yield start, end, first, last
        first, start = last, end


def folded(partials: Values, leaves: Valued, stay: Sequence[Valued]) -> tuple[list[Valued], Valued]:
    """The nodes that have become others, and the topmost ones.

    `stay` are, by the depth of their parents, the siblings of those that are as they were.
    """
    deepest = max(int(leaves.nodes.depths.max(initial=0)), len(stay))
    made, fresh = list[Valued](), leaves.at(deepest)
    for depth in range(deepest, 0, -1):
        made.append(fresh)
        siblings = both(fresh, stay[depth - 1]) if depth <= len(stay) else fresh
        fresh = both(leaves.at(depth - 1), partials.of_parents(siblings))
    return made, fresh
