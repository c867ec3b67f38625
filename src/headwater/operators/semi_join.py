"""Semi, anti and existence joins: rows with a match, those without, or all and whether they have one.

Without any other condition a row has a match if its key is there on the other side: of that no rows are kept, but
its keys. A change looks at the rows of the left side that have a key which comes or goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from headwater.change import WEIGHT
from headwater.change.weights import negated
from headwater.operators.join import Mask, probed
from headwater.operators.key_presence import KeyPresence
from headwater.operators.stateful import Stateful, keys_told
from headwater.plan.operators import Keyed, Names, Node
from headwater.plan.physical import Evaluate, Exchange, Given, Made, State
from headwater.plan.registry import register
from headwater.state.arrangement import Arrangement

SEMI, ANTI, EXISTENCE = "left semi", "left anti", "existence"


@register()
@dataclass(frozen=True)
class SemiJoin(Stateful):
    """The left side's rows that have a match (`gives` SEMI), those without one (ANTI), or all (EXISTENCE).

    Of all the last column says whether they have one.
    """

    kind: ClassVar[str] = "bilinear"
    left: Node = field(kw_only=True)
    right: Node = field(kw_only=True)
    left_keys: tuple[str, ...] = ()
    right_keys: tuple[str, ...] = ()
    gives: str = SEMI
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
        """A row that has a match keeps it as long as none leaves."""
        return self.gives != SEMI

    @property
    def keyed(self) -> dict[str, Keyed]:
        """The left side by its key, with the rows that can have no match if they are given."""
        drops = self.gives == SEMI
        return {f"{self.name}.left": Keyed(self.left, self.left_keys, drops=drops, matches=not drops)}

    @property
    def _presence(self) -> KeyPresence:
        return KeyPresence(self.right, self.right_keys, f"{self.name}.right_keys")

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Both sides; of the right one nothing is kept."""
        right = Keyed(self.right, self.right_keys, drops=True).physical()
        return (*(keyed.physical(state) for state, keyed in self.keyed.items()), replace(right, settles=False))

    @property
    def states(self) -> tuple[State, ...]:
        """The right side's keys."""
        return (self._presence.state,)

    @property
    def title(self) -> str:
        """What SQL calls it, and the columns that are equal."""
        return f"{self.gives} join on {self.left.shown(self.left_keys)} = {self.right.shown(self.right_keys)}"

    @property
    def work(self) -> str:
        """What a tick costs."""
        return "looks up whether keys are there, and the rows of those that come or go"

    @property
    def keeps(self) -> Mapping[str, str]:
        """The left side's rows, and the right side's keys."""
        states = {name: (keyed.node, keyed.key) for name, keyed in self.keyed.items()}
        return keys_told({**states, self.states[0].name: (self.right, self.right_keys)})

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Look up the keys of what changes on the left, and the rows of the keys that change on the right."""
        (left, right), (held,) = inputs, states
        change, presence = left.change, self._presence
        moved = presence.moved(right.change, held)
        matched, keys_read = presence.matched(change, self.left_keys, moved, held)
        old = probed(left.old, moved.keys)
        turned = presence.turned(old, self.left_keys, moved)
        result = self._given(change, matched, turned)
        return Made([change, None, moved.state], result, moved.read + keys_read + old.num_rows)

    def _given(self, change: pa.Table, matched: Mask, turned: pa.Table) -> list[pa.Table]:
        """What it gives for rows that come or go, and for others that have got a match or lost it."""
        names = [each.name for each in self.left.output if each.name in self.schema.names]
        rows, turned = (each.select([*names, WEIGHT]) for each in (change, turned))
        if self.gives == SEMI:
            return [rows.filter(pa.array(matched)), turned]
        if self.gives == ANTI:
            return [rows.filter(pa.array(~matched)), negated(turned)]
        return [told(rows, matched, self), told(turned, True, self), told(negated(turned), False, self)]


def told(rows: pa.Table, matched: Mask | bool, node: Node) -> pa.Table:
    """A change with a last column that says whether each row has a match."""
    values = np.broadcast_to(np.asarray(matched, np.bool_), rows.num_rows)
    return rows.add_column(rows.num_columns - 1, node.schema.field(node.schema.names[-1]), pa.array(values))
