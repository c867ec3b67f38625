"""Descent: from the rows of a change down to the leaves of their groups, and what is found on the way.

    groups    a row for each: how many different rows it has, and what it gives
    nodes     under the hash of a node, a row for each child: how many rows it has, and its partial results
    rows      under the hash of a leaf, its rows

A group whose rows fit into one leaf has no rows among the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.gather import gather
from headwater.change.keys import Codes, grouped, hashed_schema, hashes
from headwater.operators.trie import (
    Nodes,
    RowHashes,
    containing,
    hashes_of_rows,
    once,
    places,
    roots,
    together,
    too_many,
    upto,
)
from headwater.state.arrangement import Arrangement

ROWS = "_rows"
DEPTH, PREFIX = "_depth", "_prefix"
Mask = npt.NDArray[np.bool_]


def groups_schema(keys: pa.Schema, results: Sequence[pa.Field]) -> pa.Schema:
    """The columns that are kept of groups."""
    return hashed_schema(pa.schema([*keys, pa.field(ROWS, pa.int64()), *results]))


def nodes_schema(keys: pa.Schema, values: Sequence[pa.Field]) -> pa.Schema:
    """The columns that are kept of nodes."""
    fields = [pa.field(DEPTH, pa.int8()), pa.field(PREFIX, pa.int64()), pa.field(ROWS, pa.int64())]
    return hashed_schema(pa.schema([*keys, *fields, *values]))


class Groups:
    """The groups of some rows, by number, with what was kept of them; without keys it is one, whatever the rows."""

    def __init__(self, rows: pa.Table, keys: Sequence[str], key_hashes: Codes, kept: Arrangement) -> None:
        self._keys = list(keys)
        if not keys:
            self.rows = pa.table({HASH: hashes(pa.table({"x": [0]}), [])})
            self.numbers = np.zeros(rows.num_rows, np.int64)
        else:
            keyed = self._keyed(rows, key_hashes)
            (self.numbers,) = grouped([keyed], self._keys) if keyed.num_rows else (np.zeros(0, np.int64),)
            first = np.zeros(int(self.numbers.max(initial=-1)) + 1, np.int64)
            first[self.numbers[::-1]] = np.arange(rows.num_rows)[::-1]
            self.rows = gather(keyed, first)
        self.hashes: Codes = self.rows.column(HASH).to_numpy()
        found = kept.probe(self.hashes)
        self.read = found.num_rows
        numbers = self.of(found, found.column(HASH).to_numpy())
        self.held = found.filter(pa.array(numbers >= 0))
        self.held_of = numbers[numbers >= 0]
        self.counts = np.zeros(len(self.hashes), np.int64)
        self.counts[self.held_of] = self.held.column(ROWS).to_numpy()

    def _keyed(self, table: pa.Table, key_hashes: Codes) -> pa.Table:
        return table.select(self._keys).append_column(HASH, pa.array(key_hashes))

    def of(self, table: pa.Table, key_hashes: Codes) -> Codes:
        """The number of the group of each row of a table, -1 if it is none of these."""
        if not self._keys:
            return np.zeros(table.num_rows, np.int64)
        if not table.num_rows:
            return np.zeros(0, np.int64)
        mine, theirs = grouped([self.rows, self._keyed(table, key_hashes)], self._keys)
        number = np.full(int(max(mine.max(initial=-1), theirs.max(initial=-1))) + 1, -1, np.int64)
        number[mine] = np.arange(len(mine))
        return number[theirs]

    def hashes_in(self, table: pa.Table) -> Codes:
        """The hashes of the keys of a table's rows."""
        return hashes(table, self._keys)

    def others(self, table: pa.Table) -> list[str]:
        """The columns of a table that are no keys."""
        return [name for name in table.column_names if name not in {*self._keys, HASH, WEIGHT}]


class Level(NamedTuple):
    """Nodes at one depth that are no leaves and that a change touches, and all children as they were kept.

    Both are in order; `parents_of` are the numbers of the children's parents.
    """

    parents: Nodes
    children: Nodes
    rows: pa.Table
    parents_of: Codes

    @property
    def counts(self) -> Codes:
        """How many different rows each child had."""
        found: Codes = self.rows.column(ROWS).to_numpy()
        return found


class Descent(NamedTuple):
    """The leaves that a change touches, the number of each row's leaf, and what lies above them, from the top."""

    leaves: Nodes
    leaf_of: Codes
    levels: list[Level]


class LeafRows(NamedTuple):
    """Rows of leaves, their hashes, and the numbers of their leaves."""

    rows: pa.Table
    row_hashes: RowHashes
    leaf_of: Codes


def descend(groups: Groups, row_hashes: RowHashes, nodes: Arrangement) -> Descent:
    """Find the leaves of rows of these groups, given their hashes; they need not be there yet."""
    of = groups.numbers
    inside = too_many(groups.counts)[of]
    if not inside.any():
        return Descent(roots(len(groups.hashes)), of, [])
    depths, levels = np.zeros(len(of), np.int64), list[Level]()
    while inside.any():
        rows = np.flatnonzero(inside)
        parents = once(Nodes(of[rows], depths[rows], upto(row_hashes[rows], depths[rows])))
        level = _level(groups, parents, nodes)
        levels.append(level)
        found = containing(level.children, of[rows], row_hashes[rows])
        depths[rows] += 1
        inside[rows] = too_many(np.append(level.counts, 0))[found]
    leaves = once(Nodes(of, depths, upto(row_hashes, depths)))
    return Descent(leaves, containing(leaves, of, row_hashes), levels)


def _level(groups: Groups, parents: Nodes, nodes: Arrangement) -> Level:
    found = nodes.probe(places(groups.hashes, parents))
    children = Nodes(
        groups.of(found, groups.hashes_in(found)),
        found.column(DEPTH).to_numpy().astype(np.int64),
        found.column(PREFIX).to_numpy().view(np.uint64),
    )
    parents_of = containing(parents, children.groups, children.prefixes)
    mine = (parents_of >= 0) & (children.depths == parents.depths[parents_of] + 1)  # others have the same hash
    order = np.lexsort((children.prefixes, children.groups))
    order = order[mine[order]]
    return Level(parents, children.take(order), gather(found, order), parents_of[order])


def rows_of(groups: Groups, leaves: Nodes, kept: Arrangement) -> LeafRows:
    """The rows of some leaves, which are in order."""
    found = kept.probe(places(groups.hashes, leaves))
    key_hashes = groups.hashes_in(found)
    row_hashes = hashes_of_rows(found, groups.others(found), key_hashes)
    leaf_of = containing(leaves, groups.of(found, key_hashes), row_hashes)
    found, mine = found.drop_columns([HASH]), leaf_of >= 0  # others have the same hash
    return LeafRows(found.filter(pa.array(mine)), row_hashes[mine], leaf_of[mine])


class Ascent(NamedTuple):
    """What becomes of the nodes above some leaves, once it is known how many rows those have.

    The `bases` are the topmost nodes of which all rows are wanted, in order: the leaves, or what becomes one leaf.
    `siblings` are leaves below them that no row of the change is in; `stay` tells of each level's children which
    are left as they were.
    """

    bases: Nodes
    siblings: Nodes
    stay: list[Mask]


def ascend(descent: Descent, counts: Codes) -> Ascent:
    """See which nodes become leaves, given how many rows the touched leaves have after the change."""
    leaves, levels = descent.leaves, descent.levels
    if not levels:
        return Ascent(leaves, leaves.take(np.zeros(0, np.int64)), [])
    untouched, few = _few(descent, counts)
    tops, siblings, stay = [], [], []
    for depth, level in enumerate(levels):
        is_top = few[depth]
        if depth:
            above = levels[depth - 1].parents
            found = containing(above, level.parents.groups, level.parents.prefixes)
            is_top = is_top & ~few[depth - 1][found]
        tops.append(level.parents.take(is_top))
        goes = few[depth][level.parents_of]
        siblings.append(level.children.take(untouched[depth] & goes))
        stay.append(untouched[depth] & ~goes)
    ends = once(together(tops))
    others = leaves.take(containing(ends, leaves.groups, leaves.prefixes) < 0)
    return Ascent(once(together([ends, others])), once(together(siblings)), stay)


def _few(descent: Descent, counts: Codes) -> tuple[list[Mask], list[Mask]]:
    """By level, which children are untouched, and which parents have no more rows than a leaf may have."""
    untouched, few = list[Mask](), list[Mask]()
    below, below_counts = descent.leaves.take(np.zeros(0, np.int64)), np.zeros(0, np.int64)
    for depth, level in reversed(list(enumerate(descent.levels))):
        mine = descent.leaves.depths == depth + 1
        touched = together([descent.leaves.take(mine), below])
        left = np.ones(len(level.parents_of), np.bool_)
        found = containing(level.children, touched.groups, touched.prefixes)
        left[found[found >= 0]] = False
        totals = np.zeros(len(level.parents.groups), np.int64)
        np.add.at(totals, level.parents_of[left], level.counts[left])
        parents_of = containing(level.parents, touched.groups, touched.prefixes)
        np.add.at(totals, parents_of, np.concatenate([counts[mine], below_counts]))
        untouched.insert(0, left)
        few.insert(0, ~too_many(totals))
        below, below_counts = level.parents, totals
    return untouched, few
