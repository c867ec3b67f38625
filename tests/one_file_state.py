"""The files of the state in one file of SQLite's: all that `StateFiles` asks for. It is not part of the product."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

_TABLES = """
CREATE TABLE IF NOT EXISTS files (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE);
CREATE TABLE IF NOT EXISTS parts (file INTEGER, start INTEGER, data BLOB, PRIMARY KEY (file, start));
"""


class OneFileOpened:
    """See `OpenFile`. All of it is in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = pa.py_buffer(data)
        self.size = len(data)

    def read(self, start: int, length: int) -> pa.Buffer:
        """See `OpenFile.read`."""
        start = min(start, self.size)
        return self._data.slice(start, min(length, self.size - start))


class OneFileNew:
    """See `NewFile`."""

    def __init__(self, state: OneFileState, number: int) -> None:
        self._state = state
        self._number = number
        self._end = 0

    def write(self, buffers: Sequence[bytes | memoryview]) -> None:
        """See `NewFile.write`."""
        data = b"".join(buffers)
        if data:
            self._state.run("INSERT INTO parts VALUES (?, ?, ?)", self._number, self._end, data)
            self._end += len(data)

    def truncate(self, length: int) -> None:
        """See `NewFile.truncate`."""
        self._state.run("DELETE FROM parts WHERE file = ? AND start >= ?", self._number, length)
        cut = "UPDATE parts SET data = substr(data, 1, ? - start) WHERE file = ? AND start + length(data) > ?"
        self._state.run(cut, length, self._number, length)
        self._end = length

    def finish(self) -> None:
        """See `NewFile.finish`. Each write survives a killed process, which is enough for a toy."""

    def close(self) -> None:
        """See `NewFile.close`."""


@dataclass(frozen=True)
class OneFileState:
    """See `StateFiles`. Those that lie apart have names that begin with what they are called together."""

    path: str
    together: str = ""

    def run(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement by itself."""
        with closing(sqlite3.connect(self.path, timeout=60, isolation_level=None)) as database:
            database.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; {_TABLES}")
            return database.execute(statement, values).fetchall()

    def _number(self, name: str) -> int:
        found = self.run("SELECT number FROM files WHERE name = ?", self.together + name)
        if not found:
            raise FileNotFoundError(self.place(name))
        number: int = found[0][0]
        return number

    def create(self, name: str, *, steadily: bool = False) -> OneFileNew:
        """See `StateFiles.create`."""
        self.remove(name)
        (made,) = self.run("INSERT INTO files (name) VALUES (?) RETURNING number", self.together + name)
        return OneFileNew(self, made[0])

    def open(self, name: str) -> OneFileOpened:
        """See `StateFiles.open`."""
        parts = self.run("SELECT data FROM parts WHERE file = ? ORDER BY start", self._number(name))
        return OneFileOpened(b"".join(data for (data,) in parts))

    def identity(self, name: str) -> Hashable:
        """See `StateFiles.identity`."""
        return self._number(name), self.size(name)

    def size(self, name: str) -> int:
        """See `StateFiles.size`."""
        ((size,),) = self.run("SELECT coalesce(sum(length(data)), 0) FROM parts WHERE file = ?", self._number(name))
        return int(size)

    def exists(self, name: str) -> bool:
        """See `StateFiles.exists`."""
        return bool(self.run("SELECT 1 FROM files WHERE name = ?", self.together + name))

    def list(self) -> list[str]:
        """See `StateFiles.list`."""
        names = [
            name.removeprefix(self.together)
            for (name,) in self.run("SELECT name FROM files")
            if name.startswith(self.together)
        ]
        return [name for name in names if "/" not in name]

    def remove(self, name: str) -> None:
        """See `StateFiles.remove`."""
        for (number,) in self.run("DELETE FROM files WHERE name = ? RETURNING number", self.together + name):
            self.run("DELETE FROM parts WHERE file = ?", number)

    def claim(self) -> None:
        """See `StateFiles.claim`. There is but one format."""

    def sync(self) -> None:
        """See `StateFiles.sync`. Names are written with their files."""

    def apart(self, name: str) -> OneFileState:
        """See `StateFiles.apart`."""
        return OneFileState(self.path, f"{self.together}{name}/")

    def place(self, name: str) -> str:
        """See `StateFiles.place`."""
        return f"{self.path}:{self.together}{name}"

    def prefetch(self) -> None:
        """See `StateFiles.prefetch`. What is open is in memory."""


def open_one_file_state(url: str, _folder: str, together: str) -> OneFileState:
    """As it is registered for URLs like `one-file:///data/shop.db`."""
    return OneFileState(urlsplit(url).path, f"{together}/")
