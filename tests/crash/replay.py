"""Replay: every prefix of a run's calls, as disks that a power cut could leave, each opened and checked."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager

from tests.crash.disk import Disk
from tests.crash.ledger import Ledger
from tests.crash.recording_files import Event
from tests.crash.run import Run
from tests.seed import SEED

_MEMORY = "/dev/shm"


@contextmanager
def folder() -> Iterator[str]:
    """A new folder, in memory where there is such a place: what is tested here does not need a real disk."""
    path = tempfile.mkdtemp(prefix="disk-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Replay:
    """Replays runs and counts the disks that were opened.

    `samples` random disks are tried for each prefix besides the extremes. One of `again` disks is not only opened:
    what its recovery and the appends after it did is recorded and replayed as well, for a second power cut.
    """

    def __init__(self, name: str, *, samples: int = 2, again: int = 0, segment_bytes: int = 1 << 20) -> None:
        self.states = 0
        self._name = name
        self._samples = samples
        self._again = again
        self._segment_bytes = segment_bytes
        self._chance = random.Random(f"{SEED}/{name}")
        self._done: set[tuple[object, ...]] = set()

    def every_prefix(
        self,
        disk: Disk,
        root: str,
        events: list[Event],
        ledger: Ledger,
        *,
        only: Container[int] | None = None,
        boot: int = 2,
        after: str = "",
    ) -> None:
        """Cut the power after each of the events, or after those that `only` has."""
        for prefix in range(len(events) + 1):
            if prefix:
                disk.apply(events[prefix - 1])
            if only is None or prefix in only:
                self._cut(disk, root, ledger.until(prefix), boot, f"{after}call {prefix} of {len(events)}")

    def whole(self, disk: Disk, root: str, events: list[Event], ledger: Ledger) -> None:
        """Only after the last call."""
        for event in events:
            disk.apply(event)
        self._cut(disk, root, ledger.until(len(events)), 2, f"all {len(events)} calls")

    def _cut(self, disk: Disk, root: str, ledger: Ledger, boot: int, where: str) -> None:
        for variant, state in disk.states(f"{SEED}/{self._name}/{where}", samples=self._samples):
            key = (boot, state.key(), ledger.promises())
            if key not in self._done:
                self._done.add(key)
                with folder() as parent:
                    copy = os.path.join(parent, "disk")
                    state.write_out(root, copy)
                    self._open(copy, ledger.until(0), boot, f"{where}, {variant}")

    def _open(self, root: str, ledger: Ledger, boot: int, where: str) -> None:
        self.states += 1
        again = self._again > 0 and self._chance.randrange(self._again) == 0 and boot == 2
        disk = Disk.of_folder(root)
        run = Run(root, ledger, boot=boot, segment_bytes=self._segment_bytes)
        self._blaming(where, run.go_on)
        events = list(run.files.events)
        run.close()
        if again:
            self.every_prefix(disk, root, events, run.ledger, boot=boot + 1, after=f"{where}; again: ")

    def _blaming(self, where: str, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            msg = f"power cut in {self._name!r} after {where} (seed {SEED!r}, state {self.states}): {error}"
            raise AssertionError(msg) from error
