"""Suspended: a view that stands still because evaluating it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headwater.errors import ViewSuspended
from headwater.store import SHARED


@dataclass(frozen=True)
class Suspended:
    """Why a view stands still, and since when.

    `since` is its last good tick, and `cut` what that tick had read of the log; 0 if it was never filled. It failed
    with `what` in `expression` for `row`; or it reads `because`, which did.
    """

    number: int
    since: int
    cut: Mapping[str, Any] = field(default_factory=dict)
    what: str = ""
    expression: str = ""
    row: str = ""
    because: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As the store keeps it with a tick."""
        return asdict(self)

    @property
    def reason(self) -> str:
        """Why, in a line."""
        hidden = not self.because or self.because.startswith(SHARED)
        origin = "" if hidden else f"it reads {self.because}, which is suspended: "
        place = f", in {self.expression}" if self.expression else ""
        return f"{origin}{self.what}{place}" + (f", for the row {self.row}" if self.row else "")

    def error(self, name: str) -> ViewSuspended:
        """What whoever asks for the view's newest state is told."""
        good = f"its last good version is of tick {self.since}" if self.since else "it was never filled"
        hint = f"correct the row or replace the view, and it catches up by itself; {good}"
        return ViewSuspended(f"the view is suspended: {self.reason}", where=name, hint=hint)


def suspended(detail: Mapping[str, Any]) -> dict[str, Suspended]:
    """The views that a tick left suspended, by name."""
    return {name: Suspended(**each) for name, each in detail.get("suspended", {}).items()}
