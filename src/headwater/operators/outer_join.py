"""The outer join: pairs of rows with equal keys, and rows without a match with nulls for the other side.

Without any other condition a row has a match if its key is there on the other side, so beside the rows of both
sides the keys are kept of which that must be known. A change looks up what an inner join looks up, and pads or
unpads the rows of those keys alone that come or go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from headwater.change import WEIGHT
from headwater.change.pairs import PairBlocks
from headwater.change.weights import negated
from headwater.operators.join import Join, change_of_keys, probed
from headwater.operators.key_presence import KeyPresence
from headwater.operators.stateful import keys_told
from headwater.plan.operators import Keyed
from headwater.plan.physical import Evaluate, Given, Made, State
from headwater.plan.registry import register
from headwater.state.arrangement import Arrangement


@register()
@dataclass(frozen=True)
class OuterJoin(Join):
    """Pairs of rows with equal keys, none of them null, and the other rows of the sides that are to be `whole`."""

    grows: ClassVar[bool] = False
    whole_left: bool = False
    whole_right: bool = False

    @property
    def retracts(self) -> bool:
        """A row is taken back in its padding when its first match comes."""
        return True

    @property
    def keyed(self) -> dict[str, Keyed]:
        """Its sides by their keys; of one that is to be whole also the rows that can have no match."""
        left = Keyed(self.left, self.left_keys, drops=not self.whole_left, matches=self.whole_left)
        right = Keyed(self.right, self.right_keys, drops=not self.whole_right, matches=self.whole_right)
        return {f"{self.name}.left": left, f"{self.name}.right": right}

    @property
    def _presences(self) -> dict[int, KeyPresence]:
        """By the place of each side that is to be whole, the keys of the other one."""
        found = {}
        if self.whole_left:
            found[0] = KeyPresence(self.right, self.right_keys, f"{self.name}.right_keys")
        if self.whole_right:
            found[1] = KeyPresence(self.left, self.left_keys, f"{self.name}.left_keys")
        return found

    @property
    def states(self) -> tuple[State, ...]:
        """The keys that are there."""
        return tuple(each.state for each in self._presences.values())

    @property
    def title(self) -> str:
        """What SQL calls it, and the columns that are equal."""
        word = "full" if self.whole_left and self.whole_right else "left" if self.whole_left else "right"
        return f"{word} outer {super().title}"

    @property
    def keeps(self) -> Mapping[str, str]:
        """The rows of both sides, and keys."""
        sides = ((self.right, self.right_keys), (self.left, self.left_keys))
        told = {each.state.name: sides[place] for place, each in self._presences.items()}
        return {**super().keeps, **keys_told(told)}

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Pair the changes with the other sides, and pad what has no match."""
        keys = (self.left_keys, self.right_keys)
        changes = [each.change for each in inputs]
        sides = self.sides(inputs)
        old = [probed(sides[0].old, sides[1].change), probed(sides[1].old, sides[0].change)]
        result: list[pa.Table | PairBlocks] = [*change_of_keys(sides[0], old[0], sides[1], old[1], self.schema)]
        kept, read = list[pa.Table | None](changes), old[0].num_rows + old[1].num_rows
        for (place, presence), held in zip(self._presences.items(), states, strict=True):
            moved = presence.moved(sides[1 - place].change, held)
            matched, keys_read = presence.matched(changes[place], keys[place], moved, held)
            alone = changes[place].filter(pa.array(~matched))
            turned = negated(presence.turned(old[place], keys[place], moved))
            result += [padded(each, self.schema) for each in (alone, turned)]
            kept.append(moved.state)
            read += moved.read + keys_read
        return Made(kept, result, read)


def padded(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """A change with the columns of `schema`: null in those that it has not."""
    names = set(rows.column_names)
    columns = [
        rows.column(each.name) if each.name in names else pa.nulls(rows.num_rows, each.type) for each in schema
    ]
    weighed = schema.append(pa.field(WEIGHT, pa.int64()))
    return pa.Table.from_arrays([*columns, rows.column(WEIGHT)], schema=weighed)
