"""Recovery: what of the state that the last tick left can be gone on from, and what has to be built again."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headwater.catalog.catalog import Catalog
from headwater.errors import HeadwaterError
from headwater.log import Log
from headwater.state.damage import noted
from headwater.state.files import StateFiles
from headwater.store import EntryDamaged, Lease, Store, TickRecord
from headwater.tick.committed import Committed
from headwater.tick.losses import Lost, names_of, shorter, to_build_again, told_of, topics_read

_logger = logging.getLogger("headwater.tick")
_HINT = "restore the state folder from a backup"
_PLANS = "plans"
"""Among what older versions noted of the meaning: their plans, which have fingerprints now."""
Arrangements = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True)
class Before:
    """The arrangements of the last tick, None if they do not count; the owners of `lost` ones, for a `reason`."""

    found: Arrangements | None
    lost: Collection[str] = ()
    reason: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether nothing has to be built again."""
        return self.found is not None and not self.lost


class Recovery:
    """Looks at the state before each tick."""

    def __init__(self, store: Store, log: Log, files: StateFiles, lease: Lease) -> None:
        self._store = store
        self._log = log
        self._files = files
        self._lease = lease

    def before(
        self, catalog: Catalog, committed: Committed, meaning: Mapping[str, str], *, begins: bool, failed: bool
    ) -> Before:
        """The arrangements of the last tick, and which of them must be built again.

        All are if the same SQL may mean something else now; otherwise those whose files are missing or damaged. The
        files are looked at when a driver `begins`, and all versions of what is noted as damaged when a tick has
        `failed` by something else.
        """
        last = committed.last
        assert last is not None
        try:
            told = bool(noted(self._files))
            found = committed.read() if begins or told else committed.arrangements(catalog)
            lost = self._lost(found, begins=begins, told=told, failed=failed)
        except EntryDamaged as error:
            return self._without(catalog, {}, None, str(error))
        if lost:
            return self._without(catalog, found, to_build_again(lost, found, catalog, last), lost.reason)
        if begins and (other := _other_meaning(last, meaning)):
            self.check_rebuildable(catalog, other, "open the pipeline as it was before")
            _logger.warning("all views are built again: %s", other)
            return Before(None, reason=other)
        return Before(found)

    def _lost(self, found: Arrangements, *, begins: bool, told: bool, failed: bool) -> Lost:
        """What cannot be read of the arrangements; all of them, if what failed was an older version of one."""
        lost = Lost()
        if begins:
            lost = shorter(self._files, found)
        if not lost and told:
            lost, older = told_of(self._files, found, self._store.files())
            if older and not lost and failed:
                return Lost(found.keys(), older.files, older.reason)
        return lost

    def _without(
        self, catalog: Catalog, found: Arrangements, owners: Collection[str] | None, reason: str
    ) -> Before:
        """What is left when some are to be built again, or all of them; an error if that is not possible."""
        self.check_rebuildable(catalog, f"the state is damaged ({reason})", _HINT, owners)
        names = ["everything"] if owners is None else names_of(owners, catalog)
        _logger.warning("built again from the log: %s, since the state is damaged: %s", ", ".join(names), reason)
        return Before(None if owners is None else found, owners or (), reason)

    def check_rebuildable(
        self, catalog: Catalog, reason: str, hint: str, owners: Collection[str] | None = None
    ) -> None:
        """The log must still have everything from its beginning that these owners of state, or any, read."""
        gone = []
        needed = None if owners is None else topics_read(owners, catalog)
        for name, relation in catalog.relations.items():
            if name not in catalog.topics or relation.topic is None or (needed is not None and name not in needed):
                continue
            for partition in range(relation.topic.partitions):
                start = self._log.start(name, partition)
                if start:
                    gone.append(f"{name}, partition {partition}, offsets 0 to {start - 1}")
        if gone:
            msg = f"{reason}, and the state cannot be built again: the log has lost {'; '.join(gone)}"
            raise HeadwaterError(msg, where=self._lease.where, hint=hint)


def _other_meaning(last: TickRecord, now: Mapping[str, str]) -> str:
    """What has changed since a tick of that which expressions depend on."""
    before = {what: each for what, each in last.detail.get("meaning", {}).items() if what != _PLANS}
    changed = [
        f"{what} was {before.get(what, 'another')} and is {now.get(what, 'the default')}"
        for what in {**now, **before}
        if before.get(what) != now.get(what)
    ]
    return ", ".join(changed)
