"""A manifest: what the store keeps of an arrangement at a tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.state.run import Run

CHANGES = "/changes"
"""Behind the name of an arrangement: what a tick changed in it."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The runs that an arrangement consists of, from a tick on until the next manifest."""

    runs: tuple[Run, ...] = ()

    @property
    def files(self) -> frozenset[str]:
        """The files, relative to the state folder, without which the arrangement cannot be read."""
        return frozenset(run.file for run in self.runs)

    def as_dict(self) -> dict[str, Any]:
        """The manifest as plain data."""
        return {"runs": [run.as_dict() for run in self.runs]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Manifest:
        """The manifest that `as_dict` described."""
        return cls(tuple(Run.from_dict(run) for run in data["runs"]))
