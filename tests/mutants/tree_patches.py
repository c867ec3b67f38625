"""Kept patches that each break one promise of trees; see `patches.py`."""

from __future__ import annotations

from tests.mutants.patches import Patch, patch

_TREE = "tests/operators/test_tree.py -k "
_MADE_AT_ONCE = f"{_TREE} made_at_once"
_FIRST = "tests/operators/test_top_k_tree.py"

TREE_PATCHES: tuple[Patch, ...] = (
    patch(
        "a node that has few rows left becomes a leaf",
        "operators/descent.py",
        "        few.insert(0, ~too_many(totals))\n",
        "        few.insert(0, totals < 0)\n",
        _MADE_AT_ONCE,
    ),
    patch(
        "the rows of a leaf that becomes several go to those",
        "operators/growth.py",
        "    moves[shape.base_of[deeper]] = True\n",
        "",
        _MADE_AT_ONCE,
    ),
    patch(
        "the leaves that become one are gone",
        "operators/growth.py",
        "    if siblings.rows.num_rows:\n",
        "    if False:\n",
        _MADE_AT_ONCE,
    ),
    patch(
        "a node has what all its children have",
        "operators/partials.py",
        "        siblings = both(fresh, stay[depth - 1]) if depth <= len(stay) else fresh\n",
        "        siblings = fresh\n",
        _MADE_AT_ONCE,
    ),
    patch(
        "which of 0.0 and -0.0 is the greatest does not depend on what else came",
        "operators/extremes.py",
        "        return _in_order_of_floats(values)\n",
        "        return values\n",
        _MADE_AT_ONCE,
    ),
    patch(
        "of rows that are equally great the last in their order is taken",
        "operators/extremes.py",
        "        if len(places) > len(np.unique(groups[places])):\n",
        "        if False:\n",
        _MADE_AT_ONCE,
    ),
    patch(
        "bits that a row has twice are not odd",
        "operators/accumulators.py",
        "            rows &= times % 2 == 1  # the same twice is nothing\n",
        "            rows &= times > 0\n",
        f"{_TREE} many_times",
    ),
    patch(
        "what is kept of a group is in the range of hashes of the group",
        "operators/trie.py",
        "_KEPT_BITS = 16\n",
        "_KEPT_BITS = 0\n",
        _MADE_AT_ONCE,
    ),
    patch(
        "rows of other leaves with the same hash are left out",
        "operators/descent.py",
        "leaf_of >= 0  # others have the same hash\n",
        "leaf_of >= -1\n",
        f"{_TREE} same_hash",
    ),
    patch(
        "nodes of others with the same hash are left out",
        "operators/descent.py",
        "    mine = (parents_of >= 0) & (children.depths == parents.depths[parents_of] + 1)",
        "    mine = parents_of >= 0",
        f"{_TREE} same_hash",
    ),
    patch(
        "a row that goes and is not there is told",
        "operators/growth.py",
        "    if (found.rows.column(WEIGHT).to_numpy() < 0).any():\n",
        "    if False:\n",
        f"{_TREE} not_there",
    ),
    patch(
        "rows before the offset are not given",
        "operators/top_k_tree.py",
        "places > node.offset",
        "places > 0",
        _FIRST,
    ),
    patch(
        "a row that is there several times is given as often",
        "operators/top_k_tree.py",
        "        rows = repeated(rows, self._ranking.limit).drop_columns([WEIGHT])\n",
        "        rows = rows.drop_columns([WEIGHT])\n",
        _FIRST,
    ),
    patch(
        "an OFFSET counts before the LIMIT above it",
        "spark/planner/top_k.py",
        "            before += int(count.toString())\n",
        "            before += 1\n",
        "tests/equivalence/test_trees.py -k first_rows",
    ),
)
