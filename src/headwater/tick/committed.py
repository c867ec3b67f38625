"""Committed: the ticks that are committed, and the state that the last one left, as whoever drives knows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from headwater.catalog.catalog import Catalog
from headwater.store import Declaration, Store, TickRecord


class Committed:
    """What the store has of ticks: read when a driver begins, from then on kept up by what it commits itself.

    While an epoch holds, nobody else commits, and by one that does not hold any more nothing can be committed; so
    what a driver decides by something older than what is there never counts. For the driver's thread alone.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._epoch = 0
        self._arrangements: dict[str, Mapping[str, Any]] | None = None
        self._catalog: Catalog | None = None
        self.last: TickRecord | None = None
        self.ticks: list[int] = []

    def drive(self, epoch: int) -> None:
        """Know what there is, for a driver of an epoch."""
        if self._epoch != epoch:
            self._arrangements = None
            self.last = self._store.last_tick()
            self.ticks = [number for number, _ in self._store.ticks()]
            self._epoch = epoch

    def forget(self) -> None:
        """Ask the store again before the next tick."""
        self._epoch = 0

    def arrangements(self, catalog: Catalog) -> Mapping[str, Mapping[str, Any]]:
        """What every arrangement consists of since the last tick; `EntryDamaged` if that is not what was written.

        The store is asked if something else is declared than before: who drops a view forgets its state.
        """
        if self._arrangements is None or self._catalog is not catalog:
            self._catalog = catalog
            return self.read()
        return self._arrangements

    def read(self) -> Mapping[str, Mapping[str, Any]]:
        """The same, asking the store."""
        found = self._arrangements = {} if self.last is None else self._store.arrangements(self.last.number)
        return found

    def commit(
        self,
        tick: TickRecord,
        *,
        epoch: int,
        alone: bool,
        renamed: Collection[Declaration],
        anew: Mapping[str, Mapping[str, Any] | None],
    ) -> None:
        """See `Store.commit`. An error does not say that nothing was committed."""
        known = self._epoch
        self.forget()
        self._store.commit(tick, epoch=epoch, alone=alone, renamed=renamed, anew=anew)
        self.last = tick
        self.ticks.append(tick.number)
        if alone or anew:  # more than this tick's own has changed
            self._arrangements = None
            self.expired()
        elif self._arrangements is not None:
            self._arrangements |= {run.arrangement: run.detail for run in tick.runs}
        self._epoch = known

    def expired(self) -> None:
        """Note that ticks were forgotten."""
        self.ticks = [number for number, _ in self._store.ticks()]
