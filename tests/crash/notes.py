"""Notes: what a process that may be killed at any moment wrote down, one JSON document per line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_TAIL = 256 * 1024


class Notes:
    """A file of lines. A line that its writer was killed in does not count, and is cut off by the next writer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o644)
        size = os.fstat(self._handle).st_size
        end = os.pread(self._handle, _TAIL, max(0, size - _TAIL))
        os.ftruncate(self._handle, size - (len(end) - end.rfind(b"\n") - 1))

    def add(self, note: dict[str, Any]) -> None:
        """Write a line; it is there for whoever comes next even if this process dies now."""
        os.write(self._handle, json.dumps(note, separators=(",", ":")).encode() + b"\n")

    def recent(self) -> list[dict[str, Any]]:
        """The last lines, as far as they are of interest to a writer that goes on."""
        size = os.fstat(self._handle).st_size
        lines = os.pread(self._handle, _TAIL, max(0, size - _TAIL)).split(b"\n")
        return [json.loads(line) for line in lines[size > _TAIL : -1]]


def read(path: Path) -> list[dict[str, Any]]:
    """All whole lines of a file that others may be writing."""
    data = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in data.split(b"\n")[:-1]]
