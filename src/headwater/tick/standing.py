"""Standing: how views, and what they share, stand before a tick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.catalog.catalog import Catalog
from headwater.catalog.names import candidate_of
from headwater.catalog.suspension import Suspension
from headwater.store import TickRecord
from headwater.tick.attempts import Attempts
from headwater.tick.history import suspensions
from headwater.tick.relations import arrangement_of

_NOTHING = Suspension(0, 0)


class Standing:
    """What is filled after the `last` tick, which left the state `before`, and what it left suspended."""

    def __init__(
        self, catalog: Catalog, last: TickRecord | None, before: Mapping[str, Any] | None, attempts: Attempts
    ) -> None:
        self._catalog = catalog
        self._last = last
        self._filled = before or {}
        self._attempts = attempts
        left = suspensions(last if before is not None else None)
        self.suspended = {name: each for name, each in left.items() if self._is_known(name, each)}

    def _is_known(self, name: str, each: Suspension) -> bool:
        """Whether it is still the same that was suspended."""
        if name in self._catalog.shared:
            return not each.since or name in self._filled
        return name in self._catalog.views and self._catalog.views[name].number == each.number

    @property
    def due(self) -> list[str]:
        """What is to be filled, or to catch up, or to be replaced, and may be now."""
        behind = self.behind
        known = [name for name in behind if not self.suspended.get(name, _NOTHING).because]
        due = [name for name in known if self._attempts.is_due(self.arrangement(name))]
        return due + [name for name in self._catalog.switching if candidate_of(name) not in behind]

    @property
    def behind(self) -> list[str]:
        """The views, and what they share, that have no rows yet or are suspended."""
        states = self._catalog.states
        return [*{*(states[each] for each in states.keys() - self._filled.keys()), *self.suspended}]

    def arrangement(self, name: str) -> str:
        """The name under which the rows are kept."""
        return name if name in self._catalog.shared else arrangement_of(self._catalog.relations[name])

    def is_new(self, name: str) -> bool:
        """Whether it has no rows yet."""
        return self.arrangement(name) not in self._filled

    def last_good(self, name: str) -> dict[str, Any]:
        """Which view it is, its last good tick, and what that had read of the log."""
        known = self.suspended.get(name)
        number = self._catalog.views[name].number if name in self._catalog.views else 0
        if known is not None:
            return {"number": number, "since": known.since, "cut": known.cut}
        if self._last is None or self.is_new(name):
            return {"number": number, "since": 0, "cut": {}}
        return {"number": number, "since": self._last.number, "cut": self._last.cut}
