"""The bilinear operator: pairs of rows with equal keys, or all pairs if there are no keys.

With A and B the sides before the tick, a and b their changes and B' = B + b, the change of A ⋈ B is
a ⋈ B' + A ⋈ b. Only the keys in a and b are looked up. It keeps the rows of both sides. Pairs are given in blocks,
each made when it is reached, so that a condition above the join leaves what it leaves of one before the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.gather import order_of
from headwater.change.keys import Codes, without_nulls
from headwater.change.pairs import PairBlocks, Stretches
from headwater.operators.stateful import Stateful, keys_told
from headwater.plan.operators import Keyed, Names, Node
from headwater.plan.physical import Evaluate, Exchange, Given, Made
from headwater.plan.registry import register
from headwater.state.arrangement import Arrangement

Mask = npt.NDArray[np.bool_]
Pair = Callable[[pa.Table, pa.Table], PairBlocks]
"""Makes pairs of rows of the left and of the right side."""
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
        result, read = join(*self.sides(inputs), self.schema)
        return Made([each.change for each in inputs], result, read)

    def sides(self, inputs: Sequence[Given]) -> tuple[Side, Side]:
        """What it is given of its sides, without rows that can be in no pair."""
        left, right = (
            Side(without_nulls(given.change, key), given.old, key)
            for given, key in zip(inputs, (self.left_keys, self.right_keys), strict=True)
        )
        return left, right


class Side(NamedTuple):
    """One side of a join: its change, with `_hash` and without null keys, its rows before the tick, its key."""

    change: pa.Table
    old: Arrangement
    key: Sequence[str]


class Changed(NamedTuple):
    """One side as pairs are made of it: its change, and its rows before that may be in pairs with the other change.

    `reached` leaves of rows of the change those that would be among them.
    """

    change: pa.Table
    old: pa.Table
    reached: Callable[[pa.Table], pa.Table] = lambda rows: rows


def join(left: Side, right: Side, output: pa.Schema) -> tuple[list[PairBlocks], int]:
    """The change of the join, with the columns of `output`, in parts, and the number of state rows read."""
    left_old, right_old = probed(left.old, right.change), probed(right.old, left.change)
    return change_of_keys(left, left_old, right, right_old, output), right_old.num_rows + left_old.num_rows


def change_of_keys(
    left: Side, left_old: pa.Table, right: Side, right_old: pa.Table, output: pa.Schema
) -> list[PairBlocks]:
    """The change of the join by keys, given the rows before of the keys that are touched from the other side."""
    schema, keys = output.append(pa.field(WEIGHT, pa.int64())), (left.key, right.key)
    return change_of_pairs(
        Changed(left.change, left_old),
        Changed(right.change, right_old),
        lambda one, other: paired(one, other, keys, schema),
    )


def change_of_pairs(left: Changed, right: Changed, pair: Pair) -> list[PairBlocks]:
    """The change of a join, given how pairs are made.

    A row that leaves is in no pair with one that comes, since a condition may have no value for the two: with l⁻
    and l⁺ what leaves and comes on the left, the change is l⁺ ⋈ B' - l⁻ ⋈ B + (A - l⁻) ⋈ b, and B' is consolidated.
    """
    if not left.change.num_rows or not right.change.num_rows:
        return [pair(left.change, right.old), pair(left.old, right.change)]
    left_old, right_new = left.old, _with(right.old, right.change)
    if _leaving(right.change).any():
        right_new = consolidate(_with(right.old, right.reached(right.change)))
    leaving, parts = _leaving(left.change), []
    came = left.change
    if leaving.any():
        came, gone = came.filter(pa.array(~leaving)), came.filter(pa.array(leaving))
        left_old = consolidate(_with(left_old, left.reached(gone)))
        parts.append(pair(gone, right.old))
    return [*parts, pair(came, right_new), pair(left_old, right.change)]


def _with(old: pa.Table, change: pa.Table) -> pa.Table:
    return pa.concat_tables([old, change.select(old.column_names)])


def _leaving(change: pa.Table) -> Mask:
    found: Mask = change.column(WEIGHT).to_numpy() < 0
    return found


def probed(old: Arrangement, change: pa.Table) -> pa.Table:
    """The rows before that have a hash of the change."""
    return old.probe(change.column(HASH).to_numpy()) if change.num_rows else old.schema.empty_table()


def paired(left: pa.Table, right: pa.Table, keys: Sequence[Sequence[str]], schema: pa.Schema) -> PairBlocks:
    """All pairs of rows with the same key, or all pairs if there are no keys."""
    stretches = _alike(left, right) if keys[0] else _everything(left.num_rows, right.num_rows)
    return PairBlocks(left, right, stretches, keys, schema)


def _everything(left: int, right: int) -> Stretches:
    return Stretches(np.arange(left), np.zeros(left, np.int64), np.full(left, right), np.arange(right))


def _alike(left: pa.Table, right: pa.Table) -> Stretches:
    """The rows with the same hash, which others than those with the same key may have too."""
    left_order, left_hashes = _by_hash(left)
    right_order, right_hashes = _by_hash(right)
    first = np.searchsorted(right_hashes, left_hashes, side="left")
    counts = np.searchsorted(right_hashes, left_hashes, side="right") - first
    return Stretches(left_order, first, counts, right_order)


def _by_hash(table: pa.Table) -> tuple[Codes, Codes]:
    """The order of a table by hash, and the hashes so: it is made of parts that have it."""
    hashes = table.column(HASH).to_numpy()
    order = order_of(hashes)
    return order, hashes[order]
