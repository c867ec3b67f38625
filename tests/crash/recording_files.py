"""RecordingFiles: the file-system calls of a run, as a list that `disk.py` can replay after a power cut.

Files are told apart by a number of their own (as by an inode), because a file keeps its bytes when it is renamed.
What is not recorded: lock files, which hold nothing, and SQLite's files. SQLite is trusted: after each of its
commits the whole database is noted as one event.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from headwater.files import Files
from headwater.store import SqliteStore
from headwater.store.database import Database


@dataclass(frozen=True, slots=True)
class Made:
    """A new file's name in its folder."""

    path: str
    file: int


@dataclass(frozen=True, slots=True)
class FolderMade:
    path: str


@dataclass(frozen=True, slots=True)
class Wrote:
    file: int
    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncated:
    file: int
    length: int


@dataclass(frozen=True, slots=True)
class Synced:
    """An fsync. After one that failed the kernel takes the file's pages for clean: no later one writes them."""

    file: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class FolderSynced:
    path: str


@dataclass(frozen=True, slots=True)
class Renamed:
    old: str
    new: str
    file: int


@dataclass(frozen=True, slots=True)
class Removed:
    path: str


@dataclass(frozen=True, slots=True)
class Stored:
    """SQLite committed; one that is not `lasting` is so only after the next one that is."""

    data: bytes
    lasting: bool


Event = Made | FolderMade | Wrote | Truncated | Synced | FolderSynced | Renamed | Removed | Stored


class RecordingFiles(Files):
    """The real file system, noting every call that changes it in `events`. It leaves the real fsync out.

    Shared by all logs of a run, whose calls then stand in one order. `before` is called before each noted call.
    """

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []
        self._names: dict[str, int] = {}
        self._handles: dict[int, int] = {}
        self._count = 0

    def adopt(self, root: str) -> None:
        """Know the files that are in a folder already, numbered as `Disk.of_folder` does."""
        for path in files_below(root):
            if path not in self._names:
                self._names[path] = self._number()

    def _number(self) -> int:
        self._count += 1
        return self._count

    def before(self, call: str, path: str) -> None:
        """For subclasses: raise here and the call does not happen."""

    def before_commit(self) -> None:
        """The same for a commit of the store."""

    def path_of(self, handle: int) -> str:
        file = self._handles[handle]
        return next(path for path, number in self._names.items() if number == file)

    def open(self, path: str, *, create: bool = False) -> int:
        new = create and path not in self._names
        if new:
            self.before("open", path)
        handle = super().open(path, create=create)
        if new:
            self._names[path] = self._number()
            self.events.append(Made(path, self._names[path]))
        self._handles[handle] = self._names[path]
        return handle

    def close(self, handle: int) -> None:
        self._handles.pop(handle, None)
        super().close(handle)

    def write(self, handle: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
        data = b"".join(buffers)
        self.before("write", self.path_of(handle))
        super().write(handle, [data], position)
        self.events.append(Wrote(self._handles[handle], position, data))

    def truncate(self, handle: int, length: int) -> None:
        self.before("truncate", self.path_of(handle))
        super().truncate(handle, length)
        self.events.append(Truncated(self._handles[handle], length))

    def sync(self, handle: int) -> None:
        try:
            self.before("sync", self.path_of(handle))
        except OSError:
            self.events.append(Synced(self._handles[handle], failed=True))
            raise
        self.syncs += 1
        self.events.append(Synced(self._handles[handle]))

    def sync_folder(self, path: str) -> None:
        self.before("sync_folder", path)
        self.syncs += 1
        self.events.append(FolderSynced(path))

    def make_folder(self, path: str) -> None:
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for folder in reversed(missing):
            self.before("make_folder", folder)
            os.mkdir(folder)
            self.events.append(FolderMade(folder))
            self.sync_folder(os.path.dirname(folder))

    def rename(self, old: str, new: str) -> None:
        self.before("rename", old)
        super().rename(old, new)
        file = self._names[new] = self._names.pop(old)
        self.events.append(Renamed(old, new, file))

    def remove(self, path: str) -> None:
        if path in self._names:
            self.before("remove", path)
            super().remove(path)
            # The number stays known for handles that are still open.
            self._names[f"{path} (removed {self._number()})"] = self._names.pop(path)
            self.events.append(Removed(path))


class RecordingStore(SqliteStore):
    """A store that notes what SQLite holds after each commit, among the calls of the files."""

    def __init__(self, path: str, files: RecordingFiles) -> None:
        super().__init__(path, database=_RecordingDatabase(path, files))


class _RecordingDatabase(Database):
    def __init__(self, path: str, files: RecordingFiles) -> None:
        self._files = files
        self._lasting = True
        super().__init__(path, committed=self._note)

    @contextmanager
    def write(self, *, durable: bool = True, timeout: float | None = None) -> Iterator[sqlite3.Connection]:
        self._files.before_commit()
        self._lasting = durable
        with super().write(durable=durable, timeout=timeout) as connection:
            yield connection

    def _note(self, path: str) -> None:
        connection = sqlite3.connect(path)
        try:
            self._files.events.append(Stored(connection.serialize(), self._lasting))
        finally:
            connection.close()


def files_below(root: str) -> list[str]:
    """All files in a folder and its folders, in one order."""
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
