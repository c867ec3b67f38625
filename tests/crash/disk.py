"""Disk: what a disk may hold after a power cut, given the calls that were made before it.

Bytes of a file are safe once a sync of that file came after their write, names once their folder was synced. Of
everything else each call may have reached the disk or not, in any combination, and a write may be torn.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.crash.recording_files import (
    Event,
    FolderMade,
    FolderSynced,
    Made,
    Removed,
    Renamed,
    Stored,
    Synced,
    Truncated,
    Wrote,
    files_below,
)

SECTOR = 512
Call = Made | FolderMade | Wrote | Truncated | Renamed | Removed
Choice = Callable[[list[Call]], list[Call]]
"""Which of the calls that are not yet safe reached the disk."""


@dataclass
class _File:
    safe: list[bytes] = field(default_factory=lambda: [b""])
    """More than one where an fsync failed: the first has nothing of what was pending then, the last has all."""
    pending: list[Call] = field(default_factory=list)
    ever_synced: bool = False

    def sync(self, *, failed: bool) -> None:
        """After a failure the kernel takes the pages for clean, so what was pending may stay lost for ever."""
        reached = [_content(safe, self.pending) for safe in self.safe]
        self.safe = [*self.safe[:1], *reached[-1:]] if failed else reached
        self.pending = []
        self.ever_synced = True


@dataclass
class _Folder:
    safe: dict[str, int] = field(default_factory=dict)
    """File numbers by path; a folder in it has the number 0."""
    pending: list[Call] = field(default_factory=list)


@dataclass(frozen=True)
class State:
    """One possible disk: file contents by path (None: a folder), and the database if there is one."""

    files: dict[str, bytes | None]
    store: bytes | None

    def write_out(self, root: str, new_root: str) -> None:
        """Put it into a new folder. Parents come before what is in them."""
        os.makedirs(new_root)
        for path, data in sorted(self.files.items()):
            place = new_root + path.removeprefix(root)
            if data is None:
                os.mkdir(place)
            else:
                with open(place, "wb") as file:
                    file.write(data)
        if self.store is not None:
            with open(os.path.join(new_root, "headwater.db"), "wb") as file:
                file.write(self.store)

    def key(self) -> int:
        """Equal for equal disks."""
        return hash((frozenset(self.files.items()), self.store))


class Disk:
    """Takes the events one by one; `states` gives disks that a power cut now could leave."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._files: dict[int, _File] = {}
        self._folders: dict[str, _Folder] = {root: _Folder()}
        self._stores: list[bytes] = []

    @classmethod
    def of_folder(cls, root: str) -> Disk:
        """A disk on which all that a folder holds is safe."""
        disk = cls(root)
        for folder, names, _ in os.walk(root):
            disk._folders.setdefault(folder, _Folder()).safe.update({os.path.join(folder, n): 0 for n in names})
        for number, path in enumerate(files_below(root), start=1):
            with open(path, "rb") as file:
                data = file.read()
            if os.path.basename(path) == "headwater.db":
                disk._stores = [data]
            elif not path.endswith(("lock", ".db-wal", ".db-shm")):
                disk._files[number] = _File([data], ever_synced=True)
                disk._folders[os.path.dirname(path)].safe[path] = number
        return disk

    def apply(self, event: Event) -> None:
        match event:
            case Made(path, number):
                self._files[number] = _File()
                self._folders[os.path.dirname(path)].pending.append(event)
            case FolderMade(path):
                self._folders[path] = _Folder()
                self._folders[os.path.dirname(path)].pending.append(event)
            case Renamed(_, path, _) | Removed(path):
                self._folders[os.path.dirname(path)].pending.append(event)
            case Wrote(number) | Truncated(number):
                self._files[number].pending.append(event)
            case Synced(number, failed):
                self._files[number].sync(failed=failed)
            case FolderSynced(path):
                folder = self._folders[path]
                folder.safe, folder.pending = _names(folder.safe, folder.pending), []
            case Stored(data, lasting):
                self._stores = [data] if lasting else [*self._stores, data]

    def _state(
        self, files: Choice, hints: Choice, folders: Choice, store: bytes | None, *, safe: int = -1
    ) -> State:
        found: dict[str, bytes | None] = {}
        waiting = [self._root]
        while waiting:
            folder = self._folders[waiting.pop()]
            for path, number in _names(folder.safe, folders(folder.pending)).items():
                if number == 0:
                    found[path] = None
                    waiting.append(path)
                else:
                    file = self._files[number]
                    choice = hints if _is_hint(path) else files
                    found[path] = _content(file.safe[safe % len(file.safe)], choice(file.pending))
        return State(found, store)

    def states(self, seed: str, *, samples: int) -> Iterator[tuple[str, State]]:
        """Possible disks, each with its name: the extremes, each call alone lost, and some at random."""
        last = self._stores[-1] if self._stores else None
        first = self._stores[0] if self._stores else None
        yield "all kept", self._state(_all, _all, _all, last)
        yield "all lost", self._state(_none, _none, _none, first, safe=0)
        yield "hints kept, the rest lost", self._state(_none, _all, _none, first, safe=0)
        yield "hints lost, the rest kept", self._state(_all, _none, _all, last)
        for call in self._uncertain()[-8:]:
            without = _without(call)
            yield f"only {call!r:.60} lost", self._state(without, _all, without, last)
        for sample in range(samples):
            chance = random.Random(f"{seed}/{sample}")
            store = chance.choice(self._stores) if self._stores else None
            safe = chance.randrange(2)
            yield f"sample {sample}", self._state(_some(chance), _history(chance), _some(chance), store, safe=safe)

    def _uncertain(self) -> list[Call]:
        calls = [call for folder in self._folders.values() for call in folder.pending]
        for file in self._files.values():
            if file.ever_synced and len(file.pending) <= 8:
                calls += file.pending
        return calls


def _is_hint(path: str) -> bool:
    """Files that are never synced: they may hold any mixture of what was ever written to them."""
    return os.path.basename(path) in {"tail", "sequence"} or path.endswith(".index")


def _content(safe: bytes, calls: Sequence[Call]) -> bytes:
    data = bytearray(safe)
    for call in calls:
        if isinstance(call, Wrote):
            data.extend(bytes(max(0, call.position - len(data))))
            data[call.position : call.position + len(call.data)] = call.data
        elif isinstance(call, Truncated):
            del data[call.length :]
            data.extend(bytes(call.length - len(data)))
    return bytes(data)


def _names(safe: dict[str, int], calls: Sequence[Call]) -> dict[str, int]:
    names = dict(safe)
    for call in calls:
        match call:
            case Made(path, number):
                names[path] = number
            case FolderMade(path):
                names[path] = 0
            case Renamed(old, new, number):
                names.pop(old, None)
                names[new] = number
            case Removed(path):
                names.pop(path, None)
    return names


# -- choices


def _all(calls: list[Call]) -> list[Call]:
    return calls


def _none(calls: list[Call]) -> list[Call]:
    return calls[:0]


def _without(lost: Call) -> Choice:
    return lambda calls: [call for call in calls if call is not lost]


def _some(chance: random.Random) -> Choice:
    """Each call with an even chance, and some of the writes torn."""

    def choose(calls: list[Call]) -> list[Call]:
        kept = [call for call in calls if chance.random() < 0.5]
        return [_torn(call, chance) if chance.random() < 0.4 else call for call in kept]

    return choose


def _history(chance: random.Random) -> Choice:
    """The content at some earlier moment, or a mixture."""

    def choose(calls: list[Call]) -> list[Call]:
        if chance.random() < 0.5:
            return calls[: chance.randint(0, len(calls))]
        return _some(chance)(calls)

    return choose


def _torn(call: Call, chance: random.Random) -> Call:
    """A write cut off at a byte, cut off at a sector, with sectors of zeros, or with nothing but zeros."""
    if not isinstance(call, Wrote) or not call.data:
        return call
    length = chance.randrange(len(call.data))
    match chance.randrange(4):
        case 0:
            data = call.data[:length]
        case 1:
            data = call.data[: length - (call.position + length) % SECTOR if length > SECTOR else length]
        case 2:
            sectors = [call.data[at : at + SECTOR] for at in range(0, len(call.data), SECTOR)]
            data = b"".join(sector if chance.random() < 0.5 else bytes(len(sector)) for sector in sectors)
        case _:
            data = bytes(len(call.data))
    return Wrote(call.file, call.position, data)
