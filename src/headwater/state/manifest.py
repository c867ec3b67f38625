"""A manifest: what the store keeps of an arrangement at a tick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.state.run import Run

CHANGES = "/changes"
"""Behind the name of an arrangement: what a tick changed in it."""
ANEW = "anew"
"""In the detail of what a tick changed: the arrangement was built again, and nobody knows what that changed."""
BEGINS = "begins"
"""Beside the runs of a view: from which offsets on it has read topics that had lost their beginning by then."""
PLAN = "plan"
"""Beside the runs: the fingerprint of the plan by which they were made."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The runs that an arrangement consists of, from a tick on until the next manifest."""

    runs: tuple[Run, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The manifest as plain data."""
        return {"runs": [run.as_dict() for run in self.runs]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Manifest:
        """The manifest that `as_dict` described."""
        return cls(tuple(Run.from_dict(run) for run in data["runs"]))


def files_of(data: Mapping[str, Any]) -> Iterator[str]:
    """The files, relative to the state folder, that `as_dict` named; of many manifests quicker than their runs."""
    return (run["file"] for run in data["runs"])
