"""Growth: what a change makes of the tries of its groups, and what is to be written of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.gather import gather, order_of
from headwater.change.keys import Codes
from headwater.change.weights import negated
from headwater.operators.descent import (
    DEPTH,
    PREFIX,
    ROWS,
    Ascent,
    Descent,
    Groups,
    LeafRows,
    Level,
    Mask,
    ascend,
    descend,
    rows_of,
)
from headwater.operators.partials import Valued, Values, folded
from headwater.operators.trie import (
    Nodes,
    containing,
    from_column,
    hashes_of_rows,
    in_order,
    places,
    split,
    to_column,
)
from headwater.state.arrangement import Arrangement
from headwater.store import LessThanNone

_KEY, _LEAF = "_key", "_leaf"


def settled(change: pa.Table, keys: Sequence[str]) -> pa.Table:
    """A change in order, each row once, under its own hash, and the hash of its key in a column."""
    key_hashes = change.column(HASH).to_numpy()
    others = [name for name in change.column_names if name not in {*keys, HASH, WEIGHT}]
    row_hashes = to_column(hashes_of_rows(change, others, key_hashes))
    keyed = change.append_column(pa.field(_KEY, pa.int64()), pa.array(key_hashes))
    hashed = keyed.set_column(change.schema.get_field_index(HASH), HASH, pa.array(row_hashes))
    return consolidate(gather(hashed, order_of(row_hashes)))


def grouped_rows(change: pa.Table, keys: Sequence[str], kept: Arrangement) -> tuple[Groups, LeafRows]:
    """The groups of a settled change, and its rows, whose leaves are not found yet."""
    key_hashes, row_hashes = (change.column(name).to_numpy() for name in (_KEY, HASH))
    rows = change.drop_columns([_KEY, HASH])
    groups = Groups(rows, keys, key_hashes, kept)
    return groups, LeafRows(rows, from_column(row_hashes), groups.numbers)


class Grown(NamedTuple):
    """The topmost nodes after a change, what changes of the kept nodes and rows, and how many were looked at."""

    roots: Valued
    nodes: pa.Table
    rows: pa.Table
    read: int


class _Shape(NamedTuple):
    """The leaves that the bases become, with the rows of all, in order."""

    bases: Nodes
    leaves: Nodes
    rows: pa.Table
    base_of: Codes
    leaf_of: Codes


def grown(groups: Groups, change: LeafRows, nodes: Arrangement, rows: Arrangement, partials: Values) -> Grown:
    """Bring a change into the tries of its groups; `LessThanNone` if a row goes that is not there."""
    descent = descend(groups, change.row_hashes, nodes)
    change = change._replace(leaf_of=descent.leaf_of)
    held = rows_of(groups, descent.leaves, rows)
    after = _applied(held, change)
    ascent = ascend(descent, np.bincount(after.leaf_of, minlength=len(descent.leaves.groups)))
    siblings = rows_of(groups, ascent.siblings, rows)
    shape = _shape(descent, ascent, after, siblings)
    stay = [_stay(*each, partials) for each in zip(descent.levels, ascent.stay, strict=True)]
    made, topmost = folded(partials, partials.of_leaves(shape.leaves, shape.rows, shape.leaf_of), stay)
    went = [level.rows.filter(pa.array(~mask)) for level, mask in zip(descent.levels, ascent.stay, strict=True)]
    came = [_node_rows(groups, each, nodes.schema) for each in made]
    children = pa.concat_tables([nodes.schema.empty_table(), *map(negated, went), *came])
    if went:
        children = consolidate(children)
    leaves = _rows_change(groups, descent.leaves, shape, change, held)
    if siblings.rows.num_rows:
        leaves.append(negated(_placed(groups, ascent.siblings, siblings)))
    read = held.rows.num_rows + siblings.rows.num_rows + sum(level.rows.num_rows for level in descent.levels)
    written = pa.concat_tables([each.select(rows.schema.names) for each in leaves])
    return Grown(topmost, children, consolidate(written) if len(leaves) > 2 else written, read)


def _applied(held: LeafRows, change: LeafRows) -> LeafRows:
    """The rows of touched leaves after the change."""
    found = change
    if held.rows.num_rows:
        table = consolidate(pa.concat_tables([_marked(held), _marked(change)]))
        hashes, leaf_of = (table.column(name).to_numpy() for name in (HASH, _LEAF))
        found = LeafRows(table.drop_columns([_LEAF, HASH]), from_column(hashes), leaf_of)
    if (found.rows.column(WEIGHT).to_numpy() < 0).any():
        raise LessThanNone
    return found


def _marked(given: LeafRows) -> pa.Table:
    """Rows with the numbers of their leaves, under their own hashes."""
    rows = given.rows.append_column(pa.field(_LEAF, pa.int64()), pa.array(given.leaf_of))
    return rows.append_column(pa.field(HASH, pa.int64()), pa.array(to_column(given.row_hashes)))


def _shape(descent: Descent, ascent: Ascent, after: LeafRows, siblings: LeafRows) -> _Shape:
    """The rows of the bases in order, and what leaves they make."""
    bases = ascent.bases
    base_of, row_hashes, rows = after.leaf_of, after.row_hashes, after.rows
    if bases is not descent.leaves:
        of_leaf = containing(bases, descent.leaves.groups, descent.leaves.prefixes)
        of_sibling = containing(bases, ascent.siblings.groups, ascent.siblings.prefixes)
        base_of = np.concatenate([of_leaf[after.leaf_of], of_sibling[siblings.leaf_of]])
        row_hashes = np.concatenate([row_hashes, siblings.row_hashes])
        rows = pa.concat_tables([rows, siblings.rows])
    order = in_order(base_of, row_hashes, rows)
    base_of, row_hashes = base_of[order], row_hashes[order]
    leaves, leaf_of = split(bases, base_of, row_hashes)
    return _Shape(bases, leaves, gather(rows, order), base_of, leaf_of)


def _stay(level: Level, mask: Mask, partials: Values) -> Valued:
    """The children of one level that are left as they were."""
    values = level.rows.select([field.name for field in partials.fields]).filter(pa.array(mask))
    return Valued(level.children.take(mask), level.counts[mask], values)


def _node_rows(groups: Groups, made: Valued, schema: pa.Schema) -> pa.Table:
    """What is kept of nodes, under the hashes of their parents."""
    nodes = made.nodes
    columns = dict(zip(made.values.column_names, made.values.columns, strict=True))
    owners = gather(groups.rows, nodes.groups)
    columns |= {name: owners.column(name) for name in owners.column_names}
    columns[DEPTH] = pa.array(nodes.depths.astype(np.int8))
    columns[PREFIX] = pa.array(nodes.prefixes.view(np.int64))
    columns[ROWS] = pa.array(made.counts)
    columns[HASH] = pa.array(places(groups.hashes, nodes.parents))
    columns[WEIGHT] = pa.array(np.ones(len(nodes.groups), np.int64))
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _rows_change(groups: Groups, leaves: Nodes, shape: _Shape, change: LeafRows, held: LeafRows) -> list[pa.Table]:
    """What is written of rows: the change alone where leaves stay leaves, otherwise all rows from leaf to leaf."""
    bases = shape.bases
    was = containing(leaves, bases.groups, bases.prefixes)
    moves = (was < 0) | (leaves.depths[was] != bases.depths)
    deeper = shape.leaves.depths[shape.leaf_of] != bases.depths[shape.base_of]
    moves[shape.base_of[deeper]] = True
    of_leaf = moves[containing(bases, leaves.groups, leaves.prefixes)]
    made = [_placed(groups, leaves, _some(change, ~of_leaf[change.leaf_of]))]
    if moves.any():
        new = LeafRows(shape.rows, np.zeros(len(shape.leaf_of), np.uint64), shape.leaf_of)
        made.append(_placed(groups, shape.leaves, _some(new, moves[shape.base_of])))
        old = _some(held, of_leaf[held.leaf_of])
        if old.rows.num_rows:
            made.append(negated(_placed(groups, leaves, old)))
    return made


def _some(given: LeafRows, mask: Mask) -> LeafRows:
    if mask.all():
        return given
    return LeafRows(given.rows.filter(pa.array(mask)), given.row_hashes[mask], given.leaf_of[mask])


def _placed(groups: Groups, leaves: Nodes, given: LeafRows) -> pa.Table:
    """Rows under the hashes of their leaves."""
    found = places(groups.hashes, leaves)[given.leaf_of]
    return given.rows.append_column(pa.field(HASH, pa.int64()), pa.array(found))
