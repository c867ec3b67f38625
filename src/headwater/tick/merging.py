"""Merging beside the ticks: what would take a tick too long is merged by a thread; a later tick takes it over."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.state.files import StateFiles
from headwater.state.merge import Crowd, merge_crowd
from headwater.state.run import Run
from headwater.state.run_file import RunFile
from headwater.state.threads import give_way


@dataclass(frozen=True)
class Merge:
    """Runs of an arrangement that are to be merged, and those that take their place once it is done."""

    arrangement: str
    schema: pa.Schema
    crowd: Crowd
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True)
class Merged:
    """What a tick merged: so many bytes; what is `crowded` is left to be merged beside the ticks.

    What was `seen` to be done there was taken over, if it could be.
    """

    rewritten: int
    crowded: tuple[Merge, ...]
    seen: Merge | None


class _StoppedError(Exception):
    """Nobody needs it any more."""


class Merging:
    """One merge at a time. Nothing of it counts until a tick takes it over. For the driver's thread alone."""

    def __init__(self, files: StateFiles) -> None:
        self._files = files
        self._stop = threading.Event()
        self._epoch = 0
        self._failed: set[str] = set()
        self._thread: threading.Thread | None = None
        self._now: Merge | None = None
        self._done: Merge | None = None
        self._file: RunFile | None = None

    @property
    def done(self) -> Merge | None:
        """What can be taken over."""
        return None if self._thread is None or self._thread.is_alive() else self._done

    def busy(self, arrangement: str) -> Collection[Run]:
        """The runs of an arrangement that are being merged."""
        return self._now.crowd.runs if self._now is not None and self._now.arrangement == arrangement else ()

    def may_merge(self, arrangement: str) -> bool:
        """Whether it can be merged here: not if that has failed, so that ticks do it, and tell why they cannot."""
        return arrangement not in self._failed

    @property
    def files(self) -> list[str]:
        """The names of files that no tick names, and are needed."""
        return [] if self._file is None else [self._file.name]

    def drive(self, epoch: int) -> None:
        """Be of an epoch: what was done in another one may have been swept away by whoever drove in between."""
        if epoch != self._epoch:
            self.close()
            self._stop.clear()
            self._failed.clear()
            self._epoch = epoch

    def committed(self, crowded: Sequence[Merge], seen: Merge | None, name: str) -> None:
        """A tick was committed, which has `seen` what was done and took it over if it could.

        That is forgotten (sweeping removes its file, if nothing names it), and the next begun if there is something
        to do. `name` begins the names of files that it makes.
        """
        if self._thread is not None and not self._thread.is_alive() and self._done is seen:
            self._forget()
        waiting = [each for each in crowded if self.may_merge(each.arrangement)]
        if self._thread is None and waiting:
            self._now = max(waiting, key=lambda each: len(each.crowd.runs))
            self._file = RunFile(self._files, f"{name}-{uuid.uuid4().hex[:8]}.runs", steadily=True)
            self._thread = threading.Thread(target=self._run, name="headwater-merge", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        assert self._now is not None
        assert self._file is not None
        give_way()
        try:
            made = merge_crowd(self._files, self._now.schema, self._now.crowd, self._file, self._pause)
            self._file.finish()
        except _StoppedError:
            self._file.abandon()
        except (HeadwaterError, OSError, pa.ArrowException, MemoryError):
            self._failed.add(self._now.arrangement)
            self._file.abandon()
        else:
            self._done = Merge(self._now.arrangement, self._now.schema, self._now.crowd, made)

    def _pause(self) -> None:
        if self._stop.is_set():
            raise _StoppedError

    def _forget(self) -> None:
        self._thread = self._now = self._done = self._file = None

    def close(self) -> None:
        """Stop; what is half done is removed."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._forget()
