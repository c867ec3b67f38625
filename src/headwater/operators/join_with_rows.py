"""Pairs of rows with equal keys, and beside them the rows of a side, so that those without a match can be told.

It stands below an outer, semi or anti join that has a further condition:

    MatchCounts       counts for each row the pairs that are left; gives those, or the row with nulls, …
    Fragment          leaves out pairs for which the condition is not true; a row of a side goes by
    JoinWithRows      all pairs, and the rows of the left side with nulls for the right one, marked

so the sides are computed and kept once. A pair has null in every mark. The mark of a row of a side is a hash of it:
any number would do, but where such rows are brought by a key that they have not, they are not all in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import pyarrow as pa

from headwater.change.keys import hashes
from headwater.change.pairs import PairBlocks
from headwater.operators.join import Join, change_of_keys, probed
from headwater.operators.outer_join import padded
from headwater.plan.operators import Keyed, Names, Node
from headwater.plan.physical import Evaluate, Given, Made
from headwater.plan.registry import register
from headwater.state.arrangement import Arrangement


@register()
@dataclass(frozen=True)
class JoinWithRows(Join):
    """Pairs of rows with equal keys, none of them null, and all rows of the sides that have a mark.

    `left_mark` and `right_mark` are columns of its own, whole numbers; one of a side whose rows are not given is
    empty.
    """

    grows: ClassVar[bool] = False
    left_mark: str = ""
    right_mark: str = ""

    def renamed(self, names: Names) -> Self:
        """The marks have the same names."""
        left, right = (names[each] if each else "" for each in (self.left_mark, self.right_mark))
        return replace(super().renamed(names), left_mark=left, right_mark=right)

    @property
    def _marks(self) -> tuple[str, str]:
        return (self.left_mark, self.right_mark)

    @property
    def keyed(self) -> dict[str, Keyed]:
        """Its sides by their keys; of one that is given also the rows that are in no pair."""
        found: dict[str, Keyed] = {}
        for state, each in super().keyed.items():
            is_given = bool(self._marks[len(found)])
            found[state] = replace(each, drops=not is_given, matches=is_given)
        return found

    @property
    def title(self) -> str:
        """The columns that are equal, and what is given beside the pairs."""
        sides = [side for side, mark in zip(("left", "right"), self._marks, strict=True) if mark]
        return f"{super().title}, with the rows of the {' and the '.join(sides)} side"

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Pair the changes with the other sides, and give those of marked sides."""
        changes, nodes = [each.change for each in inputs], (self.left, self.right)
        left, right = self.sides(inputs)
        left_old, right_old = probed(left.old, right.change), probed(right.old, left.change)
        unmarked = left._replace(change=self._unmarked(left.change))
        result: list[pa.Table | PairBlocks] = [
            *change_of_keys(unmarked, self._unmarked(left_old), right, right_old, self.schema)
        ]
        for change, node, mark in zip(changes, nodes, self._marks, strict=True):
            if mark:
                result.append(padded(self._marked(change, node, mark), self.schema))
        return Made(changes, result, left_old.num_rows + right_old.num_rows)

    def _unmarked(self, rows: pa.Table) -> pa.Table:
        """Rows of pairs."""
        for mark in filter(None, self._marks):
            rows = rows.append_column(mark, pa.nulls(rows.num_rows, pa.int64()))
        return rows

    def _marked(self, change: pa.Table, node: Node, mark: str) -> pa.Table:
        """Rows of a side, by themselves."""
        return change.append_column(mark, pa.array(hashes(change, node.schema.names)))
