"""LocalStateFiles: the files of the state in a folder of this machine."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from headwater.files import Files
from headwater.format import STATE
from headwater.lock import forget_in_child
from headwater.state.files.mapped import MappedFile
from headwater.state.files.prefetch import Prefetch, prefetch
from headwater.state.files.release import release

_STEADILY = 8 << 20
"""So many bytes of a file that is written steadily are not on disk at most."""


@dataclass(frozen=True)
class LocalStateFiles:
    """See `StateFiles`. Files are mapped when they are opened; what is written goes through `files`.

    Where it is sent to, it writes by the system's own calls.
    """

    folder: str
    files: Files = field(default_factory=Files, repr=False, compare=False)

    def __hash__(self) -> int:
        """Of the folder, which is what makes two the same: opened runs are known by it."""
        return hash(self.folder)

    def __reduce__(self) -> tuple[type[LocalStateFiles], tuple[str]]:
        return type(self), (self.folder,)

    def create(self, name: str, *, steadily: bool = False) -> _NewLocalFile:
        """See `StateFiles.create`."""
        path = self.place(name)
        self.files.make_folder(self.folder)
        self.files.remove(path)
        return _NewLocalFile(self.files, path, _STEADILY if steadily else None)

    def open(self, name: str) -> MappedFile:
        """See `StateFiles.open`."""
        return _maps.get(self.place(name))

    def identity(self, name: str) -> Hashable:
        """See `StateFiles.identity`."""
        return _identity(self.place(name))

    def size(self, name: str) -> int:
        """See `StateFiles.size`."""
        return os.stat(self.place(name)).st_size

    def exists(self, name: str) -> bool:
        """See `StateFiles.exists`."""
        return os.path.exists(self.place(name))

    def list(self) -> list[str]:
        """See `StateFiles.list`."""
        try:
            return self.files.list(self.folder)
        except FileNotFoundError:
            return []

    def remove(self, name: str) -> None:
        """See `StateFiles.remove`."""
        held = release.hold(self.place(name))
        try:
            self.files.remove(self.place(name))
        finally:
            release.let_go(held)

    def claim(self) -> None:
        """See `StateFiles.claim`."""
        STATE.mark(self.files, self.folder)

    def sync(self) -> None:
        """See `StateFiles.sync`."""
        self.files.make_folder(self.folder)
        self.files.sync_folder(self.folder)

    def apart(self, name: str) -> LocalStateFiles:
        """See `StateFiles.apart`."""
        return LocalStateFiles(self.place(name), self.files)

    def place(self, name: str) -> str:
        """See `StateFiles.place`."""
        return os.path.join(self.folder, name)

    def prefetch(self) -> None:
        """See `StateFiles.prefetch`."""
        prefetch.begin()


class _NewLocalFile:
    """See `NewFile`."""

    def __init__(self, files: Files, path: str, steadily: int | None) -> None:
        self._files = files
        self._handle = files.open(path, create=True)
        self._end = 0
        self._step = steadily
        self._written_out = 0

    def write(self, buffers: Sequence[bytes | memoryview]) -> None:
        """See `NewFile.write`."""
        self._files.write(self._handle, buffers, self._end)
        self._end += sum(map(len, buffers))
        if self._step is not None and self._end - self._written_out >= self._step:
            self._files.write_out(self._handle, self._written_out, self._end - self._written_out)
            self._written_out = self._end

    def truncate(self, length: int) -> None:
        """See `NewFile.truncate`."""
        self._end, self._written_out = length, min(length, self._written_out)
        self._files.truncate(self._handle, length)

    def finish(self) -> None:
        """See `NewFile.finish`."""
        self._files.sync(self._handle)
        self.close()

    def close(self) -> None:
        """See `NewFile.close`."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            self._files.close(handle)


def _identity(path: str) -> tuple[str, int, int, int]:
    found = os.stat(path)
    return path, found.st_ino, found.st_mtime_ns, found.st_size


class Maps:
    """The files that are mapped, each once while somebody has it. Safe for threads."""

    def __init__(self, prefetch: Prefetch) -> None:
        self._prefetch = prefetch
        self._lock = threading.Lock()
        self._known: weakref.WeakValueDictionary[Hashable, MappedFile] = weakref.WeakValueDictionary()
        forget_in_child(self)

    def after_fork(self) -> None:
        """A thread that the child does not have may hold the lock."""
        self._lock = threading.Lock()

    def get(self, path: str) -> MappedFile:
        """The file at a path, as it is now."""
        identity = _identity(path)
        with self._lock:
            known = self._known.get(identity)
        if known is None:
            known = MappedFile(path)
            with self._lock:
                known = self._known.setdefault(identity, known)
            self._prefetch.soon(known)
        return known


_maps = Maps(prefetch)
