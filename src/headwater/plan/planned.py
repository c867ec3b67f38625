"""Planned: the plan of a declared view, ready to be ticked by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.plan.fingerprint import Fingerprint
from headwater.plan.sharing import Split
from headwater.state.manifest import PLAN


@dataclass(frozen=True)
class Planned:
    """A plan without what is kept elsewhere, as `shares` has it; the fingerprints of it and of what it shares.

    `state` is the name of the arrangement of the view's rows.
    """

    state: str
    shares: Mapping[str, str]
    split: Split
    own: Fingerprint
    shared: Mapping[str, Fingerprint]

    @property
    def fingerprints(self) -> dict[str, Fingerprint]:
        """Of the plan and of what it shares, by the names of those that own what is kept."""
        return {self.state: self.own, **self.shared}

    @property
    def marks(self) -> dict[str, str]:
        """What is kept with the state, to say of which plan it is, by the names of its owners."""
        return {name: str(each) for name, each in self.fingerprints.items()}


def differs(fingerprints: Mapping[str, Fingerprint], arrangements: Mapping[str, Any]) -> str:
    """Why the state of a view is not of the plan with these fingerprints; empty if it is, or there is none."""
    kept = {name: arrangements[name].get(PLAN) for name in fingerprints if name in arrangements}
    return next(filter(None, (fingerprints[name].differs(plan) for name, plan in kept.items())), "")
