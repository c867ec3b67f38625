"""Files that fail: a disk that refuses a call, and a process that is killed at one."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from enum import Enum

from tests.crash.recording_files import RecordingFiles, Synced


class Fault(Enum):
    """How long the disk refuses: one call, or all of them until `heal`."""

    ONCE = "once"
    LASTING = "lasting"


class FailingFiles(RecordingFiles):
    """Files whose fsync may fail (in `before`), told as Linux tells it."""

    def __init__(self) -> None:
        super().__init__()
        self._owed: set[int] = set()

    def close(self, handle: int) -> None:
        self._owed.discard(handle)
        super().close(handle)

    def sync(self, handle: int) -> None:
        """A file's failure is told once through each of its handles that were open then."""
        file = self._handles[handle]
        if handle in self._owed:
            self._owed.discard(handle)
            self.events.append(Synced(file, failed=True))
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        try:
            super().sync(handle)
        except OSError:
            self._owed |= {other for other, its in self._handles.items() if its == file and other != handle}
            raise


class FaultyFiles(FailingFiles):
    """The n-th call that changes anything raises an OSError. A write may have been half done before it."""

    def __init__(self, *, number: int, code: int, fault: Fault = Fault.ONCE, half: bool = False) -> None:
        super().__init__()
        self.failed: list[str] = []
        self._fail_at = number
        self._code = code
        self._fault = fault
        self._half = half
        self._calls = 0
        self._healed = False

    def heal(self) -> None:
        """The disk works from now on. Handles that were not told of a failed fsync still will be."""
        self._healed = True

    def before(self, call: str, path: str) -> None:
        if self._refuses():
            self.failed.append(f"{call} {os.path.basename(path)}")
            raise OSError(self._code, os.strerror(self._code), path)

    def _refuses(self) -> bool:
        if self._healed:
            return False
        self._calls += 1
        return self._calls == self._fail_at or (self._fault is Fault.LASTING and self._calls > self._fail_at)

    def write(self, handle: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
        if self._half and not self._healed and self._calls + 1 == self._fail_at:
            data = b"".join(buffers)
            self._fail_at += 1
            super().write(handle, [data[: len(data) // 2]], position)
        super().write(handle, buffers, position)


class Killed(BaseException):
    """The process is no more; only `except BaseException` can notice, and nothing that it does has an effect."""


class MortalFiles(RecordingFiles):
    """The process is killed at the n-th call: neither that call nor any after it happens, until `revive`."""

    def __init__(self, *, number: int) -> None:
        super().__init__()
        self._left = number
        self._mortal = True

    @property
    def died(self) -> bool:
        return self._left <= 0

    def revive(self) -> None:
        self._mortal = False

    def before(self, call: str, path: str) -> None:
        self._left -= self._mortal
        if self._mortal and self._left <= 0:
            raise Killed

    def before_commit(self) -> None:
        self.before("commit", "")
