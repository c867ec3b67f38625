"""Who a process is, so that a recycled process id is never taken for the one that was meant."""

from __future__ import annotations

import os
import signal
import socket
import time
from dataclasses import dataclass


def boot_id() -> int:
    """A number that is the same until the machine starts again, and another one after that."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return int(file.read().strip().replace("-", "")[:15], 16)
    except OSError:
        return int(time.time() - time.monotonic()) // 60


def _started(pid: int) -> int | None:
    """The process's start time in the kernel's ticks since boot; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process on one machine, for ever: host, boot, id and start time."""

    host: str
    boot: int
    pid: int
    started: int

    @classmethod
    def own(cls) -> ProcessIdentity:
        """The calling process."""
        return cls(socket.gethostname(), boot_id(), os.getpid(), _started(os.getpid()) or 0)

    @property
    def here(self) -> bool:
        """Whether it belongs to this machine since its last start."""
        return self.host == socket.gethostname() and self.boot == boot_id()

    @property
    def alive(self) -> bool:
        """Whether that very process still runs (or is stopped); only meaningful on its own machine."""
        return self.here and _started(self.pid) == self.started

    def kill(self, *, timeout: float = 5.0) -> bool:
        """SIGKILL it if it is still that process, never the caller; True when it is gone."""
        if self.pid == os.getpid():
            return False
        deadline = time.monotonic() + timeout
        while self.alive:
            os.kill(self.pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return self.here

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"
