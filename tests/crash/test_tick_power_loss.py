"""Cut the power at every call of ticks that merge and sweep: what was committed is there, and ticking goes on."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice

import pytest

import headwater as hw
from headwater.backends import LOGS, STORES
from headwater.clock import Clock
from headwater.files import Files
from headwater.log import EmbeddedLog
from headwater.store import Store
from headwater.tick.state import TickState
from tests.crash import expected, shop
from tests.crash.disk import Disk, State
from tests.crash.expected import Contents
from tests.crash.follower import plus
from tests.crash.hand_engine import drive
from tests.crash.recording_files import (
    Event,
    FolderSynced,
    Made,
    RecordingFiles,
    RecordingStore,
    Removed,
    Stored,
    Synced,
    Wrote,
)
from tests.crash.replay import folder
from tests.inside import store_of
from tests.seed import SEED, THOROUGH

TICKS = 11
CURSORS = {"revenue": 2, "orders": 3, "words": 1}
"""Relations that are read by cursors, each a tick further after so many ticks."""
RECORDED_FROM = 9
"""Ticks before this one are played, but not replayed: the ninth merges, the tenth also forgets and sweeps."""


@contextmanager
def opened(root: str, *, boot: int, files: RecordingFiles | None = None) -> Iterator[hw.Pipeline]:
    """The shop since a start of the machine; with all calls of its store and log noted, if there are `files`."""

    def log(_: str, folder: str, store: Store, clock: Clock) -> EmbeddedLog:
        return EmbeddedLog(os.path.join(folder, "log"), store, files=files or Files(), boot=boot, clock=clock)

    def store(_: str, folder: str) -> Store:
        assert files is not None
        return RecordingStore(os.path.join(folder, "headwater.db"), files)

    LOGS.add("started", log)
    STORES.add("recorded", store)
    parts: shop.Parts = {"log": "started:"}
    if files is not None:
        parts["store"] = "recorded:"
    try:
        with shop.opened(root, views=False, parts=parts) as pipeline:
            yield pipeline
    finally:
        LOGS.remove("started")
        STORES.remove("recorded")


@contextmanager
def recorded(root: str, files: RecordingFiles) -> Iterator[hw.Pipeline]:
    """The shop with all calls of its store, log and driver noted."""
    with opened(root, boot=1, files=files) as pipeline:
        drive(pipeline, files=files)
        shop.declare_views(pipeline)
        yield pipeline


class Played:
    """A run: its calls, from which of them on to cut the power, and what every committed tick held."""

    def __init__(self, root: str, files: RecordingFiles) -> None:
        self.root = root
        self.begin = 0
        self.contents: dict[int, Contents] = {}
        self.rewritten = 0
        with recorded(root, files) as pipeline:
            traffic = shop.Traffic(pipeline, "power")
            for number in range(1, TICKS + 1):
                if number == RECORDED_FROM:
                    self.begin = len(files.events)
                for _ in range(4):
                    traffic.step()
                assert pipeline.tick() is not None
                for name, every in CURSORS.items():
                    if number % every == 0:
                        take_one(pipeline, name)
                expected.check(pipeline)
                self.contents[number] = expected.read(pipeline, number)
                record = store_of(pipeline).tick(number)
                assert record is not None
                self.rewritten += record.detail["rewritten"] if number >= RECORDED_FROM else 0
            self.events: list[Event] = list(files.events)

    def prefixes(self) -> set[int]:
        """After which calls to cut the power: all but most of the writes, of which some at random."""
        dice = random.Random(SEED)
        later = range(self.begin, len(self.events) + 1)
        often = 0.07 * THOROUGH
        return {n for n in later if not isinstance(self.events[n - 1], Wrote) or dice.random() < often}


def replayed(played: Played, *, samples: int = THOROUGH) -> int:
    """Cut the power after each chosen call; the number of disks that were opened."""
    disk, prefixes, done = Disk(played.root), played.prefixes(), set()
    dice = random.Random(f"{SEED}/again")
    for number in range(len(played.events) + 1):
        if number:
            disk.apply(played.events[number - 1])
        if number not in prefixes:
            continue
        for variant, state in disk.states(f"{SEED}/tick/{number}", samples=samples):
            if state.key() not in done:
                done.add(state.key())
                where = f"call {number} of {len(played.events)}, {variant} (seed {SEED!r})"
                check(played, state, where, tick=dice.random() < 0.1)
    return len(done)


def check(played: Played, state: State, where: str, *, tick: bool) -> None:
    """Every tick that the store has can be read as it was; and, if asked, the next one comes out right."""
    with folder() as parent:
        root = os.path.join(parent, "disk")
        state.write_out(played.root, root)
        try:
            with opened(root, boot=2) as pipeline:
                for number, _ in store_of(pipeline).ticks():
                    found = expected.read(pipeline, number)
                    assert found == played.contents[number], f"tick {number} is not what was committed"
                check_cursors(played, pipeline)
                if tick:
                    go_on(pipeline)
        except (AssertionError, hw.HeadwaterError) as error:
            msg = f"power cut after {where}: {error}"
            raise AssertionError(msg) from error


def take_one(pipeline: hw.Pipeline, name: str) -> None:
    """Take a table of changes by a cursor, and acknowledge it."""
    with suppress(StopIteration):
        next(islice(pipeline.changes(name, cursor=name), 1, None))


def check_cursors(played: Played, pipeline: hw.Pipeline) -> None:
    """Behind what a cursor has acknowledged, all that leads from it to the newest tick is there."""
    newest = store_of(pipeline).ticks()[-1][0]
    for cursor in store_of(pipeline).cursors.all():
        total = Counter(played.contents[cursor.tick][cursor.relation]) if not cursor.filling else Counter()
        for table in pipeline.changes(cursor.relation, cursor=cursor.name):
            total = plus(total, table)
        assert total == played.contents[newest][cursor.relation], f"the changes behind {cursor} are not all there"


def go_on(pipeline: hw.Pipeline) -> None:
    drive(pipeline)
    shop.declare_views(pipeline)
    traffic = shop.Traffic(pipeline, "afterwards")
    for _ in range(4):
        traffic.step()
    pipeline.tick()
    expected.check(pipeline)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_committed_tick_survives_a_power_cut_at_any_call() -> None:
    with folder() as root:
        played = Played(root, RecordingFiles())
        assert played.rewritten > 0, "nothing was merged"
        swept = [e for e in played.events[played.begin :] if isinstance(e, Removed) and e.path.endswith(".runs")]
        assert swept, "nothing was swept"
        assert replayed(played) > 50


def test_what_a_tick_wrote_is_on_disk_before_it_is_committed() -> None:
    files = RecordingFiles()
    with folder() as root, recorded(root, files) as pipeline:
        shop.Traffic(pipeline, 1).step()
        pipeline.tick()
        begin = len(files.events)
        shop.Traffic(pipeline, 2).step()
        pipeline.tick()
        events = files.events[begin:]
        state = os.path.join(root, "state")
        (made,) = [event for event in events if isinstance(event, Made) and event.path.startswith(state)]
        last_write = max(
            at for at, event in enumerate(events) if isinstance(event, Wrote) and event.file == made.file
        )
        synced = events.index(Synced(made.file))
        committed = max(at for at, event in enumerate(events) if isinstance(event, Stored))
        assert last_write < synced < committed
        assert FolderSynced(state) in events[events.index(made) : committed]


# -- the check can fail


def test_a_commit_before_the_files_are_on_disk_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TickState, "finish", lambda state: state._file.close())
    with folder() as root, pytest.raises(AssertionError, match="power cut after"):
        replayed(Played(root, RecordingFiles()), samples=0)
