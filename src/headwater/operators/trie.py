"""The trie that splits the rows of a group: its shape depends on the rows alone, not on how they came.

The hash of a row is read from its highest bits on, four at a step. A node is what hashes begin with: it has all
rows of its group whose hashes begin so. One with few rows is a leaf; any other has up to 16 children, by the next
four bits. So a change of a row reads and writes one leaf, which may become several or take in its siblings.

    group of 5,000 rows, 256 in a leaf: 16 nodes of about 312 rows, 256 leaves of about 20
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.change.canonical import canonical_order
from headwater.change.gather import gather
from headwater.change.hash import hash_rows
from headwater.change.keys import Codes

LEAF_ROWS = 256
"""A leaf has no more different rows, unless their hashes are all the same."""
DEEPEST = 16
_STEP_BITS = 4
_BITS = 64
_KEPT_BITS = 16
"""Ranges of hashes that are operated on by themselves are never smaller than what so many bits tell apart."""
_ODD, _MIXED, _MIXED_AGAIN = (
    np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_HIGHEST_BIT = np.uint64(1 << (_BITS - 1))
_AT_ONCE = 1 << 20

RowHashes = npt.NDArray[np.uint64]
_MASKS: RowHashes = np.array(
    [((1 << _BITS) - 1) ^ ((1 << (_BITS - _STEP_BITS * depth)) - 1) for depth in range(DEEPEST + 1)], np.uint64
)


class Nodes(NamedTuple):
    """Nodes of tries: the number of the group, how many steps down, and the bits up to there, zeros behind."""

    groups: Codes
    depths: Codes
    prefixes: RowHashes

    def take(self, places: Codes | npt.NDArray[np.bool_]) -> Nodes:
        """Some of them."""
        return Nodes(self.groups[places], self.depths[places], self.prefixes[places])

    @property
    def parents(self) -> Nodes:
        """The nodes above them, each as often as it has some of them."""
        return Nodes(self.groups, self.depths - 1, upto(self.prefixes, self.depths - 1))


def together(several: Sequence[Nodes]) -> Nodes:
    """All of several."""
    return Nodes(*(np.concatenate(parts) for parts in zip(*several, strict=True)))


def roots(count: int) -> Nodes:
    """The topmost nodes of so many groups."""
    return Nodes(np.arange(count), np.zeros(count, np.int64), np.zeros(count, np.uint64))


def upto(row_hashes: RowHashes, depths: Codes | int) -> RowHashes:
    """What hashes begin with, so many steps down."""
    return row_hashes & _MASKS[depths]


def hashes_of_rows(table: pa.Table, columns: Sequence[str], groups: Codes) -> RowHashes:
    """The hash of each row: of the hash of its key, and of these columns, which are all others."""
    if not table.num_rows:
        return np.zeros(0, np.uint64)
    found, start = [], 0
    for batch in table.select(list(columns)).to_batches(_AT_ONCE) if columns else []:
        mine = pa.array(groups[start : start + batch.num_rows])
        found.append(hash_rows([mine, *batch.columns]))
        start += batch.num_rows
    return from_column(np.concatenate(found or [hash_rows([pa.array(groups)])]))


def from_column(hashes: Codes) -> RowHashes:
    """Hashes that were in a column, in the same order."""
    return hashes.view(np.uint64) ^ _HIGHEST_BIT


def to_column(row_hashes: RowHashes) -> Codes:
    """Hashes as they are in a column."""
    return (row_hashes ^ _HIGHEST_BIT).view(np.int64)


def places(hashes: Codes, nodes: Nodes) -> Codes:
    """The hash under which what belongs to a node is kept, given the hashes of the groups.

    It begins as that of the group does, so that it is in the same range of hashes; that of a topmost node is the
    same.
    """
    given = hashes[nodes.groups].view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (nodes.prefixes ^ given) * _ODD + nodes.depths.astype(np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIXED
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIXED_AGAIN
        mixed = mixed ^ (mixed >> np.uint64(31))
    low = np.uint64((1 << (_BITS - _KEPT_BITS)) - 1)
    found = np.where(nodes.depths == 0, given, (given & ~low) | (mixed & low))
    return found.view(np.int64)


def containing(nodes: Nodes, groups: Codes, row_hashes: RowHashes) -> Codes:
    """Which of some nodes, none below another and in order, each row belongs to; -1 if to none."""
    count = len(nodes.groups)
    if not count:
        return np.full(len(groups), -1, np.int64)
    both = np.concatenate([nodes.groups, groups])
    order = np.lexsort((np.arange(len(both)), np.concatenate([nodes.prefixes, row_hashes]), both))
    last = np.empty(len(both), np.int64)
    last[order] = np.cumsum(order < count) - 1
    found = last[count:]
    inside = found >= 0
    inside[inside] = nodes.groups[found[inside]] == groups[inside]
    inside[inside] = nodes.prefixes[found[inside]] == upto(row_hashes[inside], nodes.depths[found[inside]])
    return np.where(inside, found, -1)


def once(nodes: Nodes) -> Nodes:
    """Nodes of which none is below another, each once and in order."""
    ordered = nodes.take(np.lexsort((nodes.prefixes, nodes.groups)))
    return ordered.take(begins(ordered.groups, ordered.prefixes))


def too_many(counts: Codes) -> npt.NDArray[np.bool_]:
    """Which nodes with so many different rows are no leaves."""
    return counts > LEAF_ROWS


def begins(*columns: npt.NDArray[np.int64] | RowHashes) -> npt.NDArray[np.bool_]:
    """Where in some columns one value at least is another than before."""
    found = np.ones(len(columns[0]), np.bool_)
    if len(found) > 1:
        found[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        found[1:] |= column[1:] != column[:-1]
    return found


def in_order(bases: Codes, row_hashes: RowHashes, rows: pa.Table) -> Codes:
    """The positions of rows by the numbers of nodes, then by hash; by what they are, if that is the same."""
    order = np.lexsort((row_hashes, bases)) if bases.any() else np.argsort(row_hashes, kind="stable")
    starts = begins(bases[order], row_hashes[order])
    tied = np.flatnonzero(~(starts & np.append(starts[1:], True)[: len(starts)]))
    if len(tied):
        mine = order[tied]
        ranks = np.empty(len(mine), np.int64)
        ranks[canonical_order(gather(rows, mine))] = np.arange(len(mine))
        order[tied] = mine[np.lexsort((ranks, row_hashes[mine], bases[mine]))]
    return order


def split(nodes: Nodes, bases: Codes, row_hashes: RowHashes) -> tuple[Nodes, Codes]:
    """The leaves below some nodes that have all of these rows, and the number of each row's leaf.

    `bases` are the numbers of the rows' nodes; the rows are in order.
    """
    depths = nodes.depths[bases]
    inside = _are_many(bases) & (depths < DEEPEST)
    while inside.any():
        rows = np.flatnonzero(inside)
        depths[rows] += 1
        inside[rows] = _are_many(bases[rows], upto(row_hashes[rows], depths[rows])) & (depths[rows] < DEEPEST)
    prefixes = upto(row_hashes, depths)
    starts = begins(bases, depths, prefixes)
    leaves = Nodes(nodes.groups[bases[starts]], depths[starts], prefixes[starts])
    return leaves, np.cumsum(starts) - 1


def _are_many(*columns: npt.NDArray[np.int64] | RowHashes) -> npt.NDArray[np.bool_]:
    """Which rows are too many for a leaf, of stretches in which these columns are the same."""
    numbers = np.cumsum(begins(*columns)) - 1
    many: npt.NDArray[np.bool_] = too_many(np.bincount(numbers))[numbers]
    return many
