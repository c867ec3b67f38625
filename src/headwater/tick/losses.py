"""Losses: what of the state is missing or damaged, and all that has to be built again for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.catalog.catalog import Catalog
from headwater.catalog.names import is_of_table, owner_of
from headwater.log import Cut
from headwater.state.damage import noted, settle
from headwater.state.files import StateFiles
from headwater.state.manifest import ANEW, Manifest, files_of
from headwater.state.run import Run
from headwater.state.verify import Check, check_all, check_length, faults
from headwater.store import TickRecord
from headwater.tick.history import suspensions

Arrangements = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Lost:
    """Arrangements that cannot be read, because of which files, and why."""

    arrangements: Collection[str] = ()
    files: Collection[str] = ()
    reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.arrangements)


def shorter(state: StateFiles, found: Arrangements) -> Lost:
    """What is lost because a file is missing, too short, or of an older version; such files are read whole."""
    files = _lost(state, _runs(found.items()), check_length).files
    return _lost(state, _runs(found.items(), files), check_all) if files else Lost()


def told_of(state: StateFiles, found: Arrangements, kept: Iterable[Mapping[str, Any]]) -> tuple[Lost, Lost]:
    """What is lost of all that somebody found damaged, and of all that is `kept`, whatever it is called.

    Each file is read; notes of files that are well, or that nobody needs any more, are taken away.
    """
    files = noted(state)
    lost = _lost(state, _runs(found.items(), files), check_all)
    older = _lost(state, _runs((("", detail) for detail in kept), files), check_all)
    for file in set(files) - set(lost.files):
        settle(state, file)
    return lost, older


def _lost(state: StateFiles, runs: Mapping[str, list[Run]], check: Check) -> Lost:
    damage = list(faults(state, runs, check))
    names = {name for fault in damage for name in fault.arrangements}
    files = {fault.file for fault in damage}
    return Lost(names, files, f"{damage[0].file}: {damage[0].what}" if damage else "")


def _runs(
    details: Iterable[tuple[str, Mapping[str, Any]]], files: Collection[str] | None = None
) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {}
    for name, detail in details:
        wanted = [run for run in Manifest.from_dict(detail).runs if files is None or run.file in files]
        runs.setdefault(name, []).extend(wanted)
    return runs


def to_build_again(lost: Lost, held: Arrangements, catalog: Catalog, last: TickRecord) -> set[str] | None:
    """The owners of all that has to be built again for what is lost of what is held; None if that is everything.

    That is what reads it too, since it gets all rows anew. Where a view is suspended, or was or is being replaced,
    there are older versions that it would have to go on from, so everything is.
    """
    found = {owner_of(name) for name in lost.arrangements}
    names = {view.state: name for name, view in catalog.views.items()}
    names |= {shared: shared for shared in catalog.shared}
    while more := {each for each, name in names.items() if each not in found and _reads(name, found, catalog)}:
        found |= more
    if all(owner_of(name) in found for name, detail in held.items() if any(files_of(detail))):
        return None
    stopped = suspensions(last)
    for each in found & names.keys():
        name = names[each]
        view = catalog.views.get(name)
        was_or_will = view is not None and (view.is_candidate or catalog.candidate(name) or view.before)
        if name in stopped or was_or_will:
            return None
    known = {each.owner for each in catalog.relations.values() if each.kind == "table"}
    return found & {*names, *known}


def without(found: Arrangements, owners: Collection[str]) -> Arrangements:
    """The arrangements of others."""
    return {name: detail for name, detail in found.items() if owner_of(name) not in owners} if owners else found


def instead(owners: Collection[str]) -> dict[str, Mapping[str, Any] | None]:
    """What the store has of owners that were built again, for the versions before: of a table, that it is gone.

    A view that was not filled has nothing there; a table that has nothing there is empty.
    """
    return {each: {"runs": [], ANEW: True} if is_of_table(each) else None for each in owners}


def read_again(after: Cut, owners: Collection[str], catalog: Catalog) -> Cut:
    """A cut without the topics of tables among owners, whose logs are read from their beginning."""
    gone = tables(owners, catalog)
    return Cut(
        after.sequence, {place: end for place, end in after.ends.items() if place[0] not in gone}, after.rows
    )


def tables(owners: Collection[str], catalog: Catalog) -> set[str]:
    """The names of tables among owners."""
    return {name for name, each in catalog.relations.items() if each.kind == "table" and each.owner in owners}


def names_of(owners: Collection[str], catalog: Catalog) -> list[str]:
    """The views and tables among owners."""
    views = (name for name, view in catalog.views.items() if view.state in owners)
    return sorted({*tables(owners, catalog), *views})


def topics_read(owners: Collection[str], catalog: Catalog) -> set[str]:
    """The topics that are read to build them again."""
    views = (name for name, view in catalog.views.items() if view.state in owners)
    read = [each for name in views for each in catalog.inputs(name)]
    topics = {each.topic.name for each in read if each.topic is not None and each.kind != "table"}
    return topics | tables(owners, catalog)


def _reads(name: str, owners: Collection[str], catalog: Catalog) -> bool:
    read = [*catalog.shares(name), *(each.owner for each in catalog.inputs(name))]
    return any(each in owners for each in read)
