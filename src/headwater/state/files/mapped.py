"""MappedFile: a file as memory, without a descriptor that stays open."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref

import pyarrow as pa

from headwater.files import allow_many_files
from headwater.state.files.release import release

_system = ctypes.CDLL(None, use_errno=True)
_system.mmap.restype = ctypes.c_void_p
_system.mmap.argtypes = (*(ctypes.c_void_p, ctypes.c_size_t), *(ctypes.c_int,) * 3, ctypes.c_long)
_system.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_FAILED = ctypes.c_void_p(-1).value


class MappedFile:
    """See `OpenFile`. A page is read when it is touched; it is unmapped once nobody has any bytes of it.

    Python's own maps each keep their file open, and there may be more of them than a process may open. Arrow's
    `memory_map` asks the system to read all of it ahead.
    """

    def __init__(self, path: str) -> None:
        with open(path, "rb", opener=_opened) as file:
            self.size = os.fstat(file.fileno()).st_size
            self.address = _mapped(file.fileno(), self.size, path) if self.size else 0
        if self.size:  # not at the end of the process, when threads may still read
            release.begin(self.size)
            weakref.finalize(self, release.soon, self.size, _system.munmap, self.address, self.size).atexit = False

    def read(self, start: int, length: int) -> pa.Buffer:
        """See `OpenFile.read`."""
        length = min(length, self.size - start)
        return pa.foreign_buffer(self.address + start, length, self) if length > 0 else pa.py_buffer(b"")


def _opened(path: str, flags: int) -> int:
    allow_many_files()
    return os.open(path, flags | os.O_CLOEXEC)


def _mapped(handle: int, size: int, path: str) -> int:
    address: int | None = _system.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, handle, 0)
    if address is None or address == _FAILED:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    return address
