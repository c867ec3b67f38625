"""What the store keeps, as plain values. Every `spec`, `cut` and `detail` is JSON-ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NEXT = "@next"
"""Behind the name of a view: the version that is to replace it."""
SHARED = "~"
"""Names of what views share begin so, and no other names do."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declared name. `number` is unique for ever: a name dropped and declared again gets another one."""

    name: str
    kind: str
    number: int
    spec: Mapping[str, Any]


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
class LeaseRecord:
    """Who drives, and the epoch that each new driver raises."""

    epoch: int
    holder: Mapping[str, Any]
