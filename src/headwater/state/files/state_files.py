"""The protocol of wherever the files of the state are. `tests/contracts/state_files.py` is its specification."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

import pyarrow as pa


class NewFile(Protocol):
    """A file that is being written. For one thread at a time; all methods raise OSError if it cannot be."""

    def write(self, buffers: Sequence[bytes | memoryview]) -> None:
        """Write buffers, one behind the other, at the end. Whoever opens the file from then on finds them."""
        ...

    def truncate(self, length: int) -> None:
        """Take back what was written behind so many bytes."""
        ...

    def finish(self) -> None:
        """Return when all of it is lasting, but for its name; it is closed."""
        ...

    def close(self) -> None:
        """Write no more, without making it lasting; done again, or once it is finished, it does nothing."""
        ...


class OpenFile(Protocol):
    """A file as it was when it was opened. Safe for threads. It needs not be closed, and holds no descriptor."""

    @property
    def size(self) -> int:
        """How many bytes it has."""
        ...

    def read(self, start: int, length: int) -> pa.Buffer:
        """These bytes, fewer only at the end of the file; they stay as they are when it is removed.

        They need not be in memory before they are looked at.
        """
        ...


class StateFiles(Protocol):
    """Files with names of their own, which never change once they are finished. Safe for threads and processes.

    It is plain data, so that it can be sent to workers: any process that has it can open a file by its name, and
    those of the same place are equal. What is not there is a FileNotFoundError, all else that goes wrong another
    OSError.
    """

    def create(self, name: str, *, steadily: bool = False) -> NewFile:
        """Begin a file, in the place of whoever had its name before, who may still be read.

        `steadily`: it may become large, and nobody else is to wait for what it has not put on disk yet.
        """
        ...

    def open(self, name: str) -> OpenFile:
        """Open a file, finished or not, for reading at any place."""
        ...

    def identity(self, name: str) -> Hashable:
        """What tells a file from all others that ever had its name, and from itself when it was shorter."""
        ...

    def size(self, name: str) -> int:
        """How many bytes a file has."""
        ...

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        ...

    def list(self) -> list[str]:
        """The names of all files, in no order; what is never taken for the truth."""
        ...

    def remove(self, name: str) -> None:
        """Take a file away; no error if it is gone already. Whoever has it open can go on reading."""
        ...

    def claim(self) -> None:
        """Say lastingly in which format the files are, unless that is said; HeadwaterError if it is another."""
        ...

    def sync(self) -> None:
        """Return when the names of all files that are finished are lasting."""
        ...

    def apart(self, name: str) -> StateFiles:
        """Other files, which lie beside these under a common name and are not listed with them."""
        ...

    def place(self, name: str) -> str:
        """Where a file is, for people."""
        ...

    def prefetch(self) -> None:
        """From now on, have what this process opens ready before it is asked for, as far as that costs nobody."""
        ...
