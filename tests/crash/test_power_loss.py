"""Cut the power at every call of a run: nothing acknowledged is lost, nothing is half there, no cut disappears."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from headwater.log import TopicLog
from headwater.log.commit import Commit
from headwater.log.group_commit import GroupCommit
from headwater.log.segment import prepare
from tests.crash.disk import Disk
from tests.crash.faulty_files import Killed, MortalFiles
from tests.crash.ledger import SCHEMA, Ledger, Operation, batch_of, text_of
from tests.crash.recording_files import RecordingFiles, Truncated
from tests.crash.replay import Replay, folder
from tests.crash.run import Run
from tests.crash.scenarios import (
    SCENARIOS,
    Scenario,
    appends_that_span_partitions,
    rolls,
    single_appends,
    ticks,
    transactions,
    with_the_other_at,
)
from tests.seed import THOROUGH

each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


def played(scenario: Scenario, root: str, files: RecordingFiles) -> tuple[Run, int]:
    """A run of a scenario, and how many calls it took to open the log."""
    run = Run(root, scenario.ledger(), files=files, segment_bytes=scenario.segment_bytes)
    assert run.log
    opened = run.now()
    scenario.play(run)
    run.check()
    run.close()
    return run, opened


def replayed(scenario: Scenario, files: RecordingFiles, *, samples: int = THOROUGH, again: int = 0) -> int:
    """Play a scenario, then replay every prefix of its calls; returns how many disks were opened.

    Opening the log takes the same calls in all scenarios, so only the first one is replayed from its beginning.
    """
    with folder() as root:
        run, opened = played(scenario, root, files)
        replay = Replay(scenario.name, samples=samples, again=again, segment_bytes=scenario.segment_bytes)
        events = run.files.events
        prefixes = range(0 if scenario is SCENARIOS[0] else opened, len(events) + 1)
        replay.every_prefix(Disk(root), root, events, run.ledger, only=prefixes)
    return replay.states


@pytest.mark.slow
@each_scenario
def test_nothing_acknowledged_is_lost_when_the_power_fails_at_any_call(scenario: Scenario) -> None:
    assert replayed(scenario, RecordingFiles()) > 30


@pytest.mark.slow
@each_scenario
def test_a_second_power_cut_during_or_after_recovery_loses_nothing_either(scenario: Scenario) -> None:
    with folder() as root:
        run, _ = played(scenario, root, RecordingFiles())
        replay = Replay(f"{scenario.name}, twice", samples=0, again=1, segment_bytes=scenario.segment_bytes)
        chosen = range(len(run.files.events) // 2, len(run.files.events), max(1, 120 // THOROUGH))
        replay.every_prefix(Disk(root), root, run.files.events, run.ledger, only=chosen)
    assert replay.states > 10


@pytest.mark.slow
@each_scenario
def test_a_power_cut_after_a_kill_and_a_restart_loses_nothing(scenario: Scenario) -> None:
    """The restarted process trusts the page cache; what it acknowledges on top of that must last all the same."""
    with folder() as root:
        calls = played(scenario, root, MortalFiles(number=1 << 30))[0].now()
    step = max(1, 10 // THOROUGH)
    for number in range(1 + sum(scenario.name.encode()) % step, calls, step):
        files = MortalFiles(number=number)
        with folder() as root:
            ledger = scenario.ledger()
            play_until_killed(scenario, root, files, ledger)
            files.revive()
            restarted = Run(root, ledger, files=files, segment_bytes=scenario.segment_bytes)
            restarted.go_on()
            restarted.close()
            name = f"{scenario.name}, killed at call {number}"
            replay = Replay(name, samples=THOROUGH, segment_bytes=scenario.segment_bytes)
            replay.whole(Disk(root), root, files.events, ledger)


def test_a_topic_that_one_process_began_to_make_and_another_finished_survives_a_power_cut() -> None:
    """The first one is killed at any call, and the second appends nothing that would sync what the first left."""
    scenario = Scenario(nothing)
    with folder() as root:
        calls = played(scenario, root, MortalFiles(number=1 << 30))[0].now()
    for number in range(1, calls):
        files, ledger = MortalFiles(number=number), scenario.ledger()
        with folder() as root:
            play_until_killed(scenario, root, files, ledger)
            files.revive()
            finishing = Run(root, ledger, files=files)
            finishing.open()
            finishing.close()
            replay = Replay(f"making a topic, killed at call {number}", samples=0)
            replay.whole(Disk(root), root, files.events, ledger)


def nothing(run: Run) -> None:
    assert run.log


def play_until_killed(scenario: Scenario, root: str, files: MortalFiles, ledger: Ledger) -> None:
    run: Run | None = None
    try:
        run = Run(root, ledger, files=files, segment_bytes=scenario.segment_bytes)
        scenario.play(run)
    except Killed:
        pass
    finally:
        if run is not None:
            run.abandon()


def test_frames_that_recovery_cut_off_do_not_come_back_behind_new_ones() -> None:
    """Of two frames the first is torn. Recovery cuts off both, and a new frame fills just the first one's place.

    If the cut was not yet on disk when the power failed again, the second frame lies whole behind the new one.
    """
    with folder() as root:
        ledger = Ledger((TopicLog("orders", 1, SCHEMA),), next_row=101)
        run = Run(root, ledger)
        other = run.open()
        run.append("orders", {0: 1})
        with_the_other_at("append.before_sync", lambda: run.append("orders", {0: 1}, log=other))
        torn = run.append("orders", {0: 1})
        run.close()
        segment = os.path.join(root, "log", "orders.1", "0", f"{0:020d}.segment")
        change(segment, at=find(segment, text_of(torn.rows["orders", 0][0])))
        os.truncate(os.path.join(os.path.dirname(segment), "tail"), 0)
        known = dataclasses.replace(
            ledger,
            operations=[ledger.operations[0], *(as_not_acknowledged(o) for o in ledger.operations[1:])],
            next_row=next(row for row in range(200, 999) if same_size((row, row + 1), torn.rows["orders", 0])),
        )
        disk = Disk.of_folder(root)
        recovered = Run(root, known.until(1 << 30), boot=2)
        recovered.append("orders", {0: 2})
        recovered.close()
        assert [event.length for event in recovered.files.events if isinstance(event, Truncated)]
        Replay("cut off").every_prefix(disk, root, recovered.files.events, recovered.ledger, boot=3)


def find(path: str, text: str) -> int:
    with open(path, "rb") as file:
        return file.read().index(text.encode())


def change(path: str, *, at: int) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def as_not_acknowledged(operation: Operation) -> Operation:
    return dataclasses.replace(operation, acknowledged=None, position=None)


def same_size(some: Sequence[int], others: Sequence[int]) -> bool:
    return prepare(batch_of(some)).size == prepare(batch_of(others)).size


def test_without_fsync_offsets_that_a_reader_may_have_seen_are_never_given_to_other_records() -> None:
    """Over three boots, each of which loses what was appended in it and seen."""
    used: set[int] = set()
    with folder() as parent:
        root = os.path.join(parent, "0")
        os.mkdir(root)
        for boot in range(1, 4):
            disk = Disk.of_folder(root)
            run = Run(root, Ledger((TopicLog("metrics", 1, SCHEMA, durable=False),)), boot=boot)
            run.append("metrics", {0: 3})
            run.read()
            run.close()
            offsets = {offset for _, _, offset, _ in run.ledger.seen}
            assert len(offsets) == 3
            assert not offsets & used, f"boot {boot} gave {offsets & used} out again"
            used |= offsets
            for event in run.files.events:
                disk.apply(event)
            lost = dict(disk.states("", samples=0))["all lost"]
            lost.write_out(root, os.path.join(parent, str(boot)))
            root = os.path.join(parent, str(boot))


def test_sequence_numbers_never_go_down_though_all_frames_that_carried_them_are_lost() -> None:
    """A cut of a durable topic names a number that only lost frames of another one had."""
    topics = (TopicLog("metrics", 1, SCHEMA, durable=False), TopicLog("orders", 2, SCHEMA))
    cuts = []
    with folder() as parent:
        root = os.path.join(parent, "0")
        os.mkdir(root)
        for boot in range(1, 4):
            disk = Disk.of_folder(root)
            run = Run(root, Ledger(topics), boot=boot)
            for _ in range(5):
                run.append("metrics", {0: 1})
            cuts.append(run.log.cut(["orders"]).sequence)
            run.close()
            for event in run.files.events:
                disk.apply(event)
            dict(disk.states("", samples=0))["all lost"].write_out(root, os.path.join(parent, str(boot)))
            root = os.path.join(parent, str(boot))
    assert cuts[0] >= 5
    assert cuts == sorted(set(cuts))


# -- the check can fail


class _Forgetful(RecordingFiles):
    """Says that it synced frames, or the names of later segments, but did not."""

    def __init__(self, *, files: bool = False, folders: bool = False) -> None:
        super().__init__()
        self._forget_files = files
        self._forget_folders = folders

    def sync(self, handle: int) -> None:
        if not (self._forget_files and self.path_of(handle).endswith(".segment")):
            super().sync(handle)

    def sync_folder(self, path: str) -> None:
        if not (self._forget_folders and len([name for name in os.listdir(path) if ".segment" in name]) > 1):
            super().sync_folder(path)


@pytest.mark.parametrize("play", [single_appends, transactions, rolls, ticks])
def test_skipping_fsync_of_files_is_noticed(play: Callable[[Run], None]) -> None:
    with pytest.raises(AssertionError, match=r"power cut in .*(was acknowledged|of tick|is half there)"):
        replayed(Scenario(play), _Forgetful(files=True))


def test_skipping_fsync_of_folders_is_noticed() -> None:
    with pytest.raises(AssertionError, match=r"power cut in .* was acknowledged"):
        replayed(Scenario(rolls, segment_bytes=1000), _Forgetful(folders=True))


def test_a_decision_that_is_stored_before_the_frames_are_synced_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def decide_first(commit: Commit, stored: Any, identity: bytes | None, **options: object) -> object:
        if identity is not None:
            commit._decide(identity, {}, stored.values(), explicit=True)
        return finish(commit, stored, identity, **options)  # type: ignore[arg-type]

    finish = Commit._finish
    monkeypatch.setattr(Commit, "_finish", decide_first)
    with pytest.raises(AssertionError, match="is half there"):
        replayed(Scenario(appends_that_span_partitions), RecordingFiles())


def test_acknowledging_before_the_sync_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupCommit, "wait", lambda *_, **__: None)
    with pytest.raises(AssertionError, match="was acknowledged"):
        replayed(Scenario(single_appends), RecordingFiles())
