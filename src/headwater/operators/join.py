"""The bilinear operator: pairs of rows with equal keys, or all pairs if there are no keys.

With A and B the sides before the tick, a and b their changes and B' = B + b, the change of A ⋈ B is
a ⋈ B' + A ⋈ b. Only the keys in a and b are looked up. It keeps the rows of both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.gather import order_of
from headwater.change.keys import Codes, same_keys, without_nulls
from headwater.change.pairs import Pairs
from headwater.memory import check_fits
from headwater.operators.stateful import Stateful, keys_told
from headwater.plan.operators import Keyed, Names, Node
from headwater.plan.physical import Evaluate, Exchange, Given, Made
from headwater.plan.registry import register
from headwater.state.arrangement import Arrangement

Places = tuple[Codes, Codes]
Mask = npt.NDArray[np.bool_]
_PLACES = 16
"""Bytes that the places of the rows of a pair take."""
_FEW = 1 << 16
PAIRS = "looks at every row of the other side"


@register()
@dataclass(frozen=True)
class Join(Stateful):
    """Pairs of rows with equal keys, none of them null."""

    kind: ClassVar[str] = "bilinear"
    grows: ClassVar[bool] = True
    left: Node = field(kw_only=True)
    right: Node = field(kw_only=True)
    left_keys: tuple[str, ...] = ()
    right_keys: tuple[str, ...] = ()
    name: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        """Its two sides."""
        return (self.left, self.right)

    def over(self, children: Sequence[Node]) -> Self:
        """The same over other sides."""
        return replace(self, left=children[0], right=children[1])

    def renamed(self, names: Names) -> Self:
        """The keys have the same names."""
        left_keys, right_keys = names.all(self.left_keys), names.all(self.right_keys)
        return replace(super().renamed(names), left_keys=left_keys, right_keys=right_keys)

    @property
    def retracts(self) -> bool:
        """Pairs come and go with their rows."""
        return False

    @property
    def keyed(self) -> dict[str, Keyed]:
        """Its sides by their keys, each under the name of its state."""
        left, right = Keyed(self.left, self.left_keys, drops=True), Keyed(self.right, self.right_keys, drops=True)
        return {f"{self.name}.left": left, f"{self.name}.right": right}

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Both sides; their rows are kept."""
        return tuple(keyed.physical(state) for state, keyed in self.keyed.items())

    @property
    def title(self) -> str:
        """The columns that are equal."""
        if not self.left_keys:
            return "join of all pairs"
        return f"join on {self.left.shown(self.left_keys)} = {self.right.shown(self.right_keys)}"

    @property
    def work(self) -> str:
        """What a tick costs."""
        return "looks up the rows of the other side that have a touched key" if self.left_keys else PAIRS

    @property
    def keeps(self) -> Mapping[str, str]:
        """The rows of both sides."""
        return keys_told({name: (keyed.node, keyed.key) for name, keyed in self.keyed.items()})

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Pair the changes with the other sides."""
        changes = [each.change for each in inputs]
        left, right = (
            Side(without_nulls(change, key), given.old, key)
            for change, given, key in zip(changes, inputs, (self.left_keys, self.right_keys), strict=True)
        )
        result, read = join(left, right, self.schema)
        return Made(changes, result, read)


class Side(NamedTuple):
    """One side of a join: its change, with `_hash` and without null keys, its rows before the tick, its key."""

    change: pa.Table
    old: Arrangement
    key: Sequence[str]


def join(left: Side, right: Side, output: pa.Schema) -> tuple[list[Pairs], int]:
    """The change of the join, with the columns of `output`, in parts, and the number of state rows read."""
    left_old, right_old = probed(left.old, right.change), probed(right.old, left.change)
    return change_of_pairs(left, left_old, right, right_old, output), right_old.num_rows + left_old.num_rows


def change_of_pairs(
    left: Side, left_old: pa.Table, right: Side, right_old: pa.Table, output: pa.Schema
) -> list[Pairs]:
    """The change of the join, given the rows before of the keys that are touched from the other side.

    A row that leaves is in no pair with one that comes, since a condition may have no value for the two: with l⁻
    and l⁺ what leaves and comes on the left, the change is l⁺ ⋈ B' - l⁻ ⋈ B + (A - l⁻) ⋈ b, and B' is consolidated.
    """
    schema, keys = output.append(pa.field(WEIGHT, pa.int64())), (left.key, right.key)
    if not left.change.num_rows or not right.change.num_rows:
        return [paired(left.change, right_old, keys, schema), paired(left_old, right.change, keys, schema)]
    right_new = pa.concat_tables([right_old, right.change.select(right_old.column_names)])
    if _leaving(right.change).any():
        right_new = consolidate(right_new)
    leaving, parts = _leaving(left.change), []
    came = left.change
    if leaving.any():
        came, gone = came.filter(pa.array(~leaving)), came.filter(pa.array(leaving))
        left_old = consolidate(pa.concat_tables([left_old, gone.select(left_old.column_names)]))
        parts.append(paired(gone, right_old, keys, schema))
    return [*parts, paired(came, right_new, keys, schema), paired(left_old, right.change, keys, schema)]


def _leaving(change: pa.Table) -> Mask:
    found: Mask = change.column(WEIGHT).to_numpy() < 0
    return found


def probed(old: Arrangement, change: pa.Table) -> pa.Table:
    """The rows before that have a hash of the change."""
    return old.probe(change.column(HASH).to_numpy()) if change.num_rows else old.schema.empty_table()


def paired(left: pa.Table, right: pa.Table, keys: Sequence[Sequence[str]], schema: pa.Schema) -> Pairs:
    """All pairs of rows with the same key, or all pairs if there are no keys."""
    if keys[0]:
        left_rows, right_rows = matches(left, right, *keys)
    else:
        _check_pairs(left.num_rows * right.num_rows, left, right)
        left_rows = np.repeat(np.arange(left.num_rows), right.num_rows)
        right_rows = np.tile(np.arange(right.num_rows), left.num_rows)
    return Pairs(left, left_rows, right, right_rows, schema)


def matches(left: pa.Table, right: pa.Table, left_key: Sequence[str], right_key: Sequence[str]) -> Places:
    """The positions of all pairs of rows with the same key: those with the same hash, which others may have too."""
    left_order, left_hashes = _by_hash(left)
    right_order, right_hashes = _by_hash(right)
    first = np.searchsorted(right_hashes, left_hashes, side="left")
    counts = np.searchsorted(right_hashes, left_hashes, side="right") - first
    _check_pairs(int(counts.sum()), left, right)
    left_rows = np.repeat(left_order, counts)
    within = np.arange(len(left_rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    right_rows = right_order[np.repeat(first, counts) + within]
    same = same_keys(left.select(list(left_key)), left_rows, right.select(list(right_key)), right_rows)
    return (left_rows, right_rows) if same.all() else (left_rows[same], right_rows[same])


def _check_pairs(count: int, left: pa.Table, right: pa.Table) -> None:
    """An error before more pairs are made than there is memory for: their places, and then their columns."""
    if count > _FEW:
        width = sum(side.nbytes / max(side.num_rows, 1) for side in (left, right))
        what = f"{count:,} pairs of {left.num_rows:,} and {right.num_rows:,} rows"
        check_fits(int(count * (_PLACES + width)), what)


def _by_hash(table: pa.Table) -> Places:
    """The order of a table by hash, and the hashes so: it is made of parts that have it."""
    hashes = table.column(HASH).to_numpy()
    order = order_of(hashes)
    return order, hashes[order]
