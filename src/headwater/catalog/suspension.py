"""Suspension: a view that stands still because computing it failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headwater.catalog.names import is_shared
from headwater.errors import ViewSuspended

_VIEWS = "suspended"
_SHARES = "shared"
"""In a tick's detail: what is shared and suspended. Older versions noted with null what they kept up, too."""
_LEFT = "left"
"""In a tick's detail: what was shared, is in the state, and is kept up no more."""


@dataclass(frozen=True)
class Suspension:
    """Why a view stands still, and since when.

    `since` is its last good tick, and `cut` what that tick had read of the log; 0 if it was never filled. It failed
    with `what` in `expression` for `row`; or it reads `because`, which did. `hint` is what to do, if that is known.
    """

    number: int
    since: int
    cut: Mapping[str, Any] = field(default_factory=dict)
    what: str = ""
    expression: str = ""
    row: str = ""
    because: str = ""
    hint: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As the store keeps it with a tick."""
        return asdict(self)

    @property
    def reason(self) -> str:
        """Why, in a line."""
        origin = f"it reads {self.cause}, which is suspended: " if self.cause else ""
        place = f", in {self.expression}" if self.expression else ""
        return f"{origin}{self.what}{place}" + (f", for the row {self.row}" if self.row else "")

    @property
    def cause(self) -> str:
        """The view that it reads and that failed; empty if it failed itself, or what it shares did."""
        return "" if is_shared(self.because) else self.because

    @property
    def advice(self) -> str:
        """What to do."""
        return f"{self.hint or 'correct the row or replace the view'}, and it catches up by itself"

    def error(self, name: str) -> ViewSuspended:
        """What whoever asks for the view's newest state is told."""
        good = f"its last good version is of tick {self.since}" if self.since else "it was never filled"
        return ViewSuspended(f"the view is suspended: {self.reason}", where=name, hint=f"{self.advice}; {good}")


def suspensions_of(detail: Mapping[str, Any]) -> dict[str, Suspension]:
    """The views that a tick left suspended, by name."""
    return {name: Suspension(**each) for name, each in detail.get(_VIEWS, {}).items()}


def shared_by(detail: Mapping[str, Any]) -> dict[str, Suspension]:
    """What is shared and was left suspended by a tick."""
    return {name: Suspension(**each) for name, each in detail.get(_SHARES, {}).items() if each is not None}


def left_by(detail: Mapping[str, Any], shared: Callable[[], set[str]]) -> set[str]:
    """What of the shared things in the state was not kept up by a tick, though nothing failed."""
    if _LEFT in detail:
        return {*detail[_LEFT]}
    return shared().difference(detail.get(_SHARES, {}))


def all_suspensions(detail: Mapping[str, Any]) -> dict[str, Suspension]:
    """What a tick left suspended: views, and what views share."""
    return suspensions_of(detail) | shared_by(detail)


def noted(views: Mapping[str, Suspension], shared: Mapping[str, Suspension], left: Iterable[str]) -> dict[str, Any]:
    """What a tick's detail says of them, and of what is left."""
    return {
        _VIEWS: {name: each.as_dict() for name, each in views.items()},
        _SHARES: {name: each.as_dict() for name, each in shared.items()},
        _LEFT: sorted(left),
    }
