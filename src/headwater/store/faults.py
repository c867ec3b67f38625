"""Faults of ours that whoever reads or ticks has found: what they are in is made anew by the next tick."""

from __future__ import annotations

import json

from headwater.errors import HeadwaterError
from headwater.store.store import Store

_NAME = "faults"


class LessThanNone(HeadwaterError):
    """A row is in fewer than no times: it disappeared more often than it came, which cannot be."""

    def __init__(self, where: str = "") -> None:
        msg = "a row of it has disappeared more often than it came"
        super().__init__(msg, where=where, hint="this is a fault of Headwater; the next tick makes the view anew")


class Faults:
    """What is wrong with views, by their numbers; in the store, so that whoever drives learns what readers find."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def known(self) -> dict[int, str]:
        """What is wrong with each, whether it is still there or not."""
        kept = self._store.kept(_NAME)
        return {int(number): what for number, what in json.loads(kept).items()} if kept else {}

    def tell(self, number: int, what: str) -> None:
        """Note that something is wrong with a view."""
        known = self.known()
        if number not in known:
            self._store.keep({_NAME: json.dumps({**known, number: what})})
