"""The file-system calls that the log makes, as one object that is passed in.

Tests pass another one: to record every call, to fail the n-th, to fill the disk. Nothing below `log/` calls
`os` for files directly. Paths are `str`; a handle is a file descriptor.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from headwater.errors import Unavailable

_MANY = 1 << 16
_system = ctypes.CDLL(None) if hasattr(ctypes.CDLL(None), "sync_file_range") else None
if _system is not None:
    _system.sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
_WRITTEN_OUT = 7
"""Linux's SYNC_FILE_RANGE_WAIT_BEFORE, _WRITE and _WAIT_AFTER."""


def allow_many_files() -> None:
    """Raise this process's limit of open files, as far as it may by itself: a partition keeps several open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY if hard == resource.RLIM_INFINITY else min(hard, _MANY)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # the old limit may do
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def advice(error: OSError) -> str:
    """What to do about an error of the system."""
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return "raise the limit of open files (ulimit -n), or open fewer partitions"
    return "check the disk's free space, its health and the permissions"


@contextmanager
def disk_errors_told() -> Iterator[None]:
    """Turn an error of the system into one for users. Serves as a decorator too, but not of generators."""
    try:
        yield
    except OSError as error:
        msg = f"the disk refused: {error.strerror or error}"
        raise Unavailable(msg, where=str(error.filename or ""), hint=advice(error), retry=True) from error


class Files:
    """The real file system. Safe for threads; counts its fsyncs in `syncs`."""

    def __init__(self) -> None:
        self.syncs = 0

    def open(self, path: str, *, create: bool = False) -> int:
        """Open for reading and writing; with `create`, make it if it is missing."""
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)

    def close(self, handle: int) -> None:
        """Give the handle back."""
        os.close(handle)

    def size(self, handle: int) -> int:
        """The length of the file in bytes."""
        return os.fstat(handle).st_size

    def read(self, handle: int, length: int, position: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""
        data = os.pread(handle, length, position)
        if len(data) in {length, 0}:
            return data
        parts = [data]
        got = len(data)
        while got < length and (more := os.pread(handle, length - got, position + got)):
            parts.append(more)
            got += len(more)
        return b"".join(parts)

    def write(self, handle: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
        """Write all buffers one behind the other, whatever number of calls that takes."""
        pending = [memoryview(buffer).cast("B") for buffer in buffers]
        while pending:
            done = os.pwritev(handle, pending, position)
            position += done
            while pending and done >= len(pending[0]):
                done -= len(pending.pop(0))
            if done:
                pending[0] = pending[0][done:]

    def truncate(self, handle: int, length: int) -> None:
        """Cut the file to `length` bytes."""
        os.ftruncate(handle, length)

    def sync(self, handle: int) -> None:
        """Return when the file's bytes are on disk."""
        self.syncs += 1
        os.fdatasync(handle)

    def begin_sync(self, handle: int, start: int, length: int) -> None:
        """Have the system begin to put bytes on disk, without waiting for it, so that a later sync is short."""
        if hasattr(os, "posix_fadvise"):
            with suppress(OSError):  # it is a hint; and what is dirty is not dropped by it, only written
                os.posix_fadvise(handle, start, length, os.POSIX_FADV_DONTNEED)

    def write_out(self, handle: int, start: int, length: int) -> None:
        """Return when the disk has these bytes, so that a later sync, of whichever file, is short.

        That makes nothing lasting: the file may still be as long as it was before.
        """
        if _system is None or _system.sync_file_range(handle, start, length, _WRITTEN_OUT):
            os.fdatasync(handle)

    def sync_folder(self, path: str) -> None:
        """Return when the folder's entries are on disk."""
        self.syncs += 1
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents, lastingly; no error if it is there."""
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for folder in reversed(missing):
            try:
                os.mkdir(folder)
            except FileExistsError:
                continue
            self.sync_folder(os.path.dirname(folder))

    def list(self, path: str) -> list[str]:
        """The names in a folder, in no order."""
        return os.listdir(path)

    def exists(self, path: str) -> bool:
        """Whether anything is there."""
        return os.path.exists(path)

    def rename(self, old: str, new: str) -> None:
        """Put `old` in the place of `new`, at once for all who look."""
        os.replace(old, new)

    def remove(self, path: str) -> None:
        """Take a file away; no error if it is gone already."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
