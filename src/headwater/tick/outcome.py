"""Outcome: what a tick came to, for each view and in all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.catalog.suspension import Suspension, noted

SMALL, LARGE = "small", "large"


@dataclass(frozen=True)
class Work:
    """What a tick did for a view, in this process (`small`) or by executors (`large`), and for how many seconds.

    It has taken in so many rows of change, changed so many of the view, and read so many of the state.
    """

    path: str
    taken: int
    changed: int
    read: int
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """As the store keeps it with a tick."""
        return {**vars(self)}


@dataclass(frozen=True)
class ViewOutcome:
    """What a tick did with a view, or with something that views share.

    `work` is None if there was nothing to do, or nothing came of it: then it may be suspended. A `fault` is one of
    ours. One that is `switched` has its candidate's place from this tick on.
    """

    work: Work | None = None
    suspension: Suspension | None = None
    fault: str = ""
    switched: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a tick did with views that had something to do, and with what they share; the suspensions of both.

    What was shared, and is `left` in the state, was not kept up.
    """

    views: Mapping[str, ViewOutcome] = field(default_factory=dict)
    shared: Mapping[str, ViewOutcome] = field(default_factory=dict)
    left: Collection[str] = ()

    @property
    def suspensions(self) -> dict[str, Suspension]:
        """What is suspended, whether a view or shared, and why."""
        every = {**self.shared, **self.views}
        return {name: each.suspension for name, each in every.items() if each.suspension is not None}

    @property
    def switched(self) -> list[str]:
        """The views that were replaced."""
        return [name for name, each in self.views.items() if each.switched]

    @property
    def rows_read(self) -> int:
        """The rows of state that were looked at."""
        every = (*self.views.values(), *self.shared.values())
        return sum(each.work.read for each in every if each.work is not None)

    def detail(self) -> dict[str, Any]:
        """What is kept of it with the tick."""
        views = {name: each.suspension for name, each in self.views.items() if each.suspension is not None}
        shared = {name: each.suspension for name, each in self.shared.items() if each.suspension is not None}
        worked = {name: each.work.as_dict() for name, each in self.views.items() if each.work is not None}
        return {"views": worked, "rows_read": self.rows_read, **noted(views, shared, self.left)}
