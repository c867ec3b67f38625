"""What a process and all that it started take of the machine: memory of their own, mapped files, processor time."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import NamedTuple

_EVERY = 0.5
_TICKS = os.sysconf("SC_CLK_TCK")


class Memory(NamedTuple):
    """Bytes of memory that belong to no file, and of files that are mapped."""

    anonymous: int
    mapped: int


class Peak:
    """Watches the memory of a process and its descendants while the block runs: the most of each kind.

    `anonymous` is what belonged to no file, every half second.
    """

    def __init__(self, root: int | None = None) -> None:
        self.memory = Memory(0, 0)
        self.anonymous: list[int] = []
        self._root = root or os.getpid()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        stopped = False
        while not stopped:
            now = memory(self._root)
            self.memory = Memory(*map(max, self.memory, now))
            self.anonymous.append(now.anonymous)
            stopped = self._stop.wait(_EVERY)


def growth(anonymous: Sequence[int]) -> float:
    """How many times as much there was in the last quarter as in the second: Java takes its heap in the first."""
    quarter = max(1, len(anonymous) // 4)
    return median(anonymous[-quarter:]) / median(anonymous[quarter : 2 * quarter] or anonymous)


def memory(root: int) -> Memory:
    """The memory of a process and all that descend from it."""
    fields = [_status(process) for process in family(root)]
    return Memory(*(sum(int(each.get(kind, "0 kB").split()[0]) * 1024 for each in fields) for kind in _KINDS))


_KINDS = ("RssAnon", "RssFile")


def processor_seconds(root: int) -> float:
    """The processor time, of both kinds, that a process and its living descendants have used."""
    return sum(processor_seconds_of(process) for process in family(root))


def family(root: int) -> set[int]:
    """A process and all that descend from it."""
    processes = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    parents = {process: int(_status(process).get("PPid", "0")) for process in processes}
    found = {root}
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _status(process: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return {}  # ended in this moment
    return dict(line.split(":", 1) for line in lines if ":" in line)


def processor_seconds_of(process: int) -> float:
    """The processor time that one process has used; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) / _TICKS
