"""What the store keeps, as plain values. Every `spec`, `cut` and `detail` is JSON-ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DRIVER = "driver"
"""The name of the lease of whoever ticks."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declared name. `number` is unique for ever: a name dropped and declared again gets another one."""

    name: str
    kind: str
    number: int
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A transaction that was committed: the pipeline-wide sequence of its records, and the `places` that have some.

    A place is `number/partition`, with the number of the topic's declaration.
    """

    transaction: bytes
    sequence: int
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What an arrangement consists of from this tick on: `detail` names the files and the parts of them."""

    name: str
    arrangement: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TickRecord:
    """One committed tick. `cut` says which records it took, `runs` what each changed arrangement became."""

    number: int
    at: int
    cut: Mapping[str, Any]
    runs: tuple[RunRecord, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CursorRecord:
    """How far somebody, under the cursor's name, has taken in what changed in a relation.

    It belongs to the declaration with the number `declared`, of which it reads `relation`. Everything up to and
    with the tick `tick` is acknowledged; while it is `filling`, nothing is, and the rows of that tick's version
    come first. `changes` are the arrangements (`…/changes`) whose details behind the tick it needs: those that it
    names when it begins, and later those of what replaces them. `ends` is up to which offset of each partition the
    records of a topic are acknowledged; None if it reads no topic's log. Times are microseconds: when it was
    `made`, when it last `moved`, and since when it is `behind`, as far as that is known. `given_up` says why
    nothing is kept for it any more; empty while it is. `revision` is another one after each change.
    """

    name: str
    relation: str
    declared: int
    made: int
    tick: int = 0
    filling: bool = False
    changes: tuple[str, ...] = ()
    ends: Mapping[str, int] | None = None
    moved: int = 0
    behind: int | None = None
    given_up: str = ""
    revision: int = 0


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """Who holds a lease, and the epoch that each new holder raises."""

    epoch: int
    holder: Mapping[str, Any]
