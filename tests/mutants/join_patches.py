"""Kept patches that each break one promise of a join or of counted booleans; see `patches.py`. None needs Spark."""

from __future__ import annotations

from tests.mutants.patches import Patch, patch

_JOIN = "tests/operators/test_join.py -k "
_RANGE = "tests/operators/test_range_join.py -k "
_UNMATCHED = "tests/operators/test_outer_and_semi_joins.py -k "

JOIN_PATCHES: tuple[Patch, ...] = (
    patch(
        "a row that leaves on the right is in no pair with one that comes",
        "operators/join.py",
        "    if _leaving(right.change).any():\n",
        "    if False:\n",
        f"{_JOIN} never_together",
    ),
    patch(
        "a row that leaves on the left is in no pair with one that comes",
        "operators/join.py",
        "    if leaving.any():\n",
        "    if False:\n",
        f"{_JOIN} never_together",
    ),
    patch(
        "a row that leaves is in no pair with one whose range it is not in",
        "operators/range_join.py",
        "lambda rows: left.among(rows, right)",
        "lambda rows: rows",
        f"{_RANGE} out_of_range",
    ),
    patch(
        "a row that comes is in no pair with one that leaves and is not in its range",
        "operators/range_join.py",
        "lambda rows: right.among(rows, left)",
        "lambda rows: rows",
        f"{_RANGE} out_of_range",
    ),
    patch(
        "a key that was there before is a match",
        "operators/key_presence.py",
        "pa.concat_tables([before, moved.keys])",
        "moved.keys",
        f"{_UNMATCHED} come_and_go",
    ),
    patch(
        "a padded row is taken back when its match comes",
        "operators/outer_join.py",
        "negated(presence.turned(old[place], keys[place], moved))",
        "presence.turned(old[place], keys[place], moved).slice(0, 0)",
        f"{_UNMATCHED} come_and_go",
    ),
    patch(
        "rows of a key are looked up when it comes first or goes last, not when another row has it",
        "operators/semi_join.py",
        "probed(left.old, moved.keys)",
        "probed(left.old, right.change)",
        f"{_UNMATCHED} crowded",
    ),
    patch(
        "of the other side of a semi join no rows are kept",
        "operators/semi_join.py",
        "drops=True).physical()\n",
        'drops=True).physical(f"{self.name}.right")\n',
        f"{_UNMATCHED} only_keys",
    ),
    patch(
        "a row without a match leaves when one comes, and what counts on rows that stay is told",
        "operators/semi_join.py",
        "        return self.gives != SEMI\n",
        "        return False\n",
        f"{_UNMATCHED} they_tell",
    ),
    patch(
        "rows that differ in bits are counted apart",
        "operators/match_counts.py",
        "bitwise=True",
        "bitwise=False",
        f"{_UNMATCHED} by_their_bits",
    ),
    patch(
        "rows of the other side go by without being counted",
        "operators/match_counts.py",
        "        if self.other_mark:\n            rows",
        "        if False:\n            rows",
        f"{_UNMATCHED} pairs_of_each_row",
    ),
    patch(
        "the last pair of a row leaves it without a match",
        "operators/match_counts.py",
        "np.where(numbers[_PAIRS] == 0, numbers[_ROWS], 0)",
        "np.where(numbers[_PAIRS] <= 1, numbers[_ROWS], 0)",
        f"{_UNMATCHED} pairs_of_each_row",
    ),
    patch(
        "rows that go by are not all in one place",
        "operators/join_with_rows.py",
        "pa.array(hashes(change, node.schema.names))",
        "pa.nulls(change.num_rows, pa.int64()).fill_null(0)",
        f"{_UNMATCHED} spread",
    ),
    patch(
        "the greatest boolean goes with the last that is true",
        "operators/accumulators.py",
        "true, false = (pc.greater(each, 0) for each in values)",
        "true, false = (pc.greater_equal(each, 0) for each in values)",
        "tests/operators/test_accumulate.py -k follow",
    ),
)
