"""What operators that keep something have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from headwater.plan.operators import Node
from headwater.plan.physical import Evaluate, Exchange, Given, Made, Operate, Partial, State
from headwater.state.arrangement import Arrangement


class Stateful(Node):
    """An operator that keeps something, under its `name`, which no other of the plan has.

    A new one says over which inputs it is, by which keys (`exchanges`), what it keeps beside their rows (`states`),
    and what it makes of their changes (`operate`); how it is told to people; and, as all do, what it is over other
    inputs and under other names. Everything else has a default that is right, if not fast.
    """

    grows: ClassVar[bool] = False
    name: str

    @property
    def named(self) -> str:
        """The name of what it keeps."""
        return self.name

    def called(self, name: str) -> Self:
        """The same under another name."""
        return replace(self, name=name)  # type: ignore[call-arg]

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Its inputs, by the keys by which it needs them."""
        raise NotImplementedError(self.kind)

    @property
    def states(self) -> tuple[State, ...]:
        """What it keeps beside the rows of its inputs."""
        return ()

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Turn the changes of its inputs into its own: what it keeps of them, and what it gives.

        A pure function of rows of a range of hashes, whole keys of all inputs; called by threads and in workers.
        """
        raise NotImplementedError(self.kind)

    @property
    def retracts(self) -> bool:
        """Whether rows of it may disappear although none of its inputs do."""
        return True

    @property
    def is_whole(self) -> bool:
        """Whether all is of one key: it operates on everything at once, also where nothing came."""
        return False

    @property
    def partial(self) -> Partial | None:
        """What is made of parts of its only input's change before."""
        return None

    @property
    def asks(self) -> Any:
        """What executors have evaluated for it between two steps (see `Asks`); None if `operate` does it all."""
        return None

    def is_hashed_by(self, key: tuple[str, ...]) -> bool:
        """Whether its change comes by the hash of a key, and could be kept as it is."""
        return False

    def physical(self) -> Operate:
        """Operate on its inputs."""
        return Operate(self, self.exchanges, self.asks)


def keys_told(states: Mapping[str, tuple[Node, Sequence[str]]]) -> dict[str, str]:
    """The names of states, and their keys as people call them."""
    return {name: node.shown(key) or "everything" for name, (node, key) in states.items()}
