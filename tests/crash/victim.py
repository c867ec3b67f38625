"""Victim: a small log whose files are harmed, looked at, and put back, thousands of times."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from headwater.errors import LogDamaged
from headwater.log import EmbeddedLog, TopicLog
from headwater.log.entry import Mark
from headwater.log.segment import Stamp, prepare
from headwater.store import SqliteStore
from headwater.testing import ManualClock
from tests.crash.recording_files import RecordingFiles, files_below

SCHEMA = pa.schema([("id", pa.int64())])
ORDERS = TopicLog("orders", 1, SCHEMA, 2)
Outcome = list[int] | LogDamaged
"""The ids that a partition shows, or the damage that it reports."""


def batch_of(*ids: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(ids)}, schema=SCHEMA)


class Victim:
    """A topic of two partitions. Partition 1 holds one record and is never harmed.

    `files` names what may be: `segment`, `sealed` (if there is one), `tail`, `index`, `sequence`.
    """

    def __init__(self, root: str, *, segment_bytes: int = 1 << 20) -> None:
        self.root = root
        self._segment_bytes = segment_bytes
        self._store = SqliteStore(os.path.join(root, "headwater.db"))
        self.whole: dict[str, bytes] = {}
        with self.opened(boot=1) as log:
            log.append("orders", {1: batch_of(1000)})

    @contextmanager
    def opened(self, *, boot: int) -> Iterator[EmbeddedLog]:
        files = RecordingFiles()
        files.adopt(self.root)
        log = EmbeddedLog(
            os.path.join(self.root, "log"),
            self._store,
            files=files,
            clock=ManualClock(),
            boot=boot,
            segment_bytes=self._segment_bytes,
        )
        try:
            log.declare(ORDERS)
            yield log
        finally:
            log.close()

    @property
    def folder(self) -> str:
        return os.path.join(self.root, "log", "orders.1", "0")

    def path(self, kind: str) -> str:
        if kind == "sequence":
            return os.path.join(self.root, "log", "sequence")
        if kind == "tail":
            return os.path.join(self.folder, "tail")
        suffix = ".index" if kind == "index" else ".segment"
        names = sorted(name for name in os.listdir(self.folder) if name.endswith(suffix))
        return os.path.join(self.folder, names[0 if kind in {"sealed", "index"} else -1])

    def append(self, *ids: int) -> None:
        """One acknowledged batch in partition 0."""
        with self.opened(boot=1) as log:
            log.append("orders", {0: batch_of(*ids)})

    def write(self, *ids: int) -> None:
        """One batch in partition 0 that was written, but neither synced nor acknowledged."""
        with self.opened(boot=1) as log:
            partition = log.partition("orders", 0)
            with partition.held():
                partition.write(prepare(batch_of(*ids)), Stamp(log._numbers.take(), 0))

    def frames(self) -> list[tuple[Mark, Mark]]:
        """Where each frame of partition 0 begins and ends."""
        with self.opened(boot=1) as log:
            partition = log.partition("orders", 0)
            with partition.held() as written:
                return [(entry.place, entry.after) for entry in partition.entries(0, written.mark)]

    # -- harming

    def remember(self) -> None:
        """Take this for the state that `restore` goes back to."""
        paths = [path for path in files_below(os.path.join(self.root, "log")) if not path.endswith("lock")]
        for path in paths:
            with open(path, "rb") as file:
                self.whole[path] = file.read()

    def bytes_of(self, kind: str) -> bytes:
        return self.whole[self.path(kind)]

    def restore(self) -> None:
        for path in files_below(os.path.join(self.root, "log")):
            if not path.endswith("lock") and path not in self.whole:
                os.unlink(path)
        for path, data in self.whole.items():
            with open(path, "wb") as file:
                file.write(data)

    def harm(self, path: str, data: bytes) -> None:
        """Put other bytes into a file."""
        with open(path, "wb") as file:
            file.write(data)

    # -- looking

    def outcome(self, log: EmbeddedLog, partition: int = 0) -> Outcome:
        """What a reader gets; any other error than `LogDamaged` is raised."""
        try:
            found = [i for r in log.read("orders", partition, 0) for i in r.batch.column("id").to_pylist()]
            assert all(isinstance(i, int) for i in found)
        except LogDamaged as error:
            return error
        return found

    def close(self) -> None:
        self._store.close()
