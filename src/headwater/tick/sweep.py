"""Sweeping: files that no committed tick names, and ticks that are too old to be kept."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress

from headwater.state.files import StateFiles
from headwater.state.manifest import files_of
from headwater.state.pins import Pins
from headwater.state.retention import retained
from headwater.store import Store

_NAME = re.compile(r"(\d+)-(\d+)-")


def expire(
    store: Store,
    pins: Pins,
    now: int,
    epoch: int,
    *,
    ticks: int,
    seconds: float,
    also: Collection[int] = (),
    between: Collection[int] = (),
) -> None:
    """Forget versions that are neither retained, nor pinned by a reader, nor among some others.

    Of those `between`, the ones are kept that are not older than all that is retained.
    """
    known = store.ticks()
    keep = retained(known, now, ticks, seconds)
    inner = {number for number in between if number > min(keep)}
    keep |= {*pins.held(), *also, *inner} & {number for number, _ in known}
    if len(keep) < len(known):
        store.expire(keep, changes_after=min(keep), epoch=epoch)


def sweep(
    store: Store, files: StateFiles, epoch: int, committed: int, *, sparing: Collection[str] = ()
) -> list[str]:
    """Remove files of lower epochs, and of this driver's own ticks, that no committed tick names.

    Files of higher epochs are somebody else's: a driver that was replaced removes nothing of its successor's. Nor
    can a successor come to need what is not named now: it names what was named before, and files of its own.
    """
    used = {file for detail in store.files() for file in files_of(detail)} | {*sparing}
    removed = []
    for name in files.list():
        made = _NAME.match(name)
        if made and name not in used and (int(made[1]) < epoch or int(made[2]) <= committed):
            files.remove(name)
            removed.append(name)
    return removed


def clear_scratch(scratch: StateFiles, epoch: int) -> None:
    """Remove what those who drove before left behind, never what a successor of this driver works with."""
    for name in scratch.list():
        made = _NAME.match(name)
        if made and int(made[1]) < epoch:
            scratch.remove(name)


def clear_tick(scratch: StateFiles, tick: str) -> None:
    """Remove what the stages of a tick left for each other; what cannot be removed goes with the next epoch."""
    with suppress(OSError):
        for name in scratch.list():
            if name.startswith(f"{tick}-"):
                scratch.remove(name)
