"""The disk refuses the n-th call, for every n: the caller is told, nothing is half there, and the log goes on."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

import pytest

from headwater import crashpoint
from headwater.errors import HeadwaterError, LogDamaged, SequenceGap, Unavailable
from headwater.log import TopicLog
from tests.crash.disk import Disk
from tests.crash.faulty_files import Fault, FaultyFiles
from tests.crash.ledger import SCHEMA, Ledger
from tests.crash.recording_files import RecordingFiles
from tests.crash.replay import Replay, folder
from tests.crash.run import Run
from tests.crash.scenarios import SCENARIOS, Scenario
from tests.seed import THOROUGH, every

ORDERS = TopicLog("orders", 1, SCHEMA)


@dataclass(frozen=True)
class Kind:
    """A way in which a disk fails."""

    code: int
    fault: Fault = Fault.ONCE
    half: bool = False

    def at(self, number: int) -> FaultyFiles:
        return FaultyFiles(number=number, code=self.code, fault=self.fault, half=self.half)

    @property
    def told(self) -> bool:
        """Whether an error means for certain that nothing is stored: it can be kept only if the disk lets it."""
        return self.fault is Fault.ONCE


_MANY_CALLS = 100_000
KINDS = (
    Kind(errno.EIO),
    Kind(errno.ENOSPC, half=True),
    Kind(errno.ENOSPC, Fault.LASTING, half=True),
    Kind(errno.EIO, Fault.LASTING),
)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_refused_call_is_told_and_harms_nothing_that_was_or_will_be_acknowledged(scenario: Scenario) -> None:
    """Every other number with one kind of fault and one moment of a power cut, in turn; all of them if thorough."""
    with folder() as root:
        run = Run(root, scenario.ledger(), segment_bytes=scenario.segment_bytes)
        assert run.log
        first = 1 if scenario is SCENARIOS[0] else run.now()
        run.close()
    for number in every(2, _MANY_CALLS, first):
        kinds = KINDS if THOROUGH > 1 else (KINDS[number // 2 % len(KINDS)],)
        failed = [fails(scenario, number, kind) for kind in kinds]
        if not any(failed):
            return
    pytest.fail("it never came to an end")


def fails(scenario: Scenario, number: int, kind: Kind) -> bool:
    """Play a scenario on a disk that refuses one call, and check all promises; False if it needed fewer calls."""
    files, ledger = kind.at(number), scenario.ledger()
    try:
        with folder() as root:
            run = Run(
                root,
                ledger,
                files=files,
                segment_bytes=scenario.segment_bytes,
                may_fail=True,
                certain=kind.told,
            )
            play_as_far_as_it_goes(scenario, run)
            files.heal()
            assert all(isinstance(error, Unavailable | SequenceGap) for error in run.errors), run.errors
            if kind.told and (number % 8 < 4 or THOROUGH > 1):
                power_cut(scenario, root, run, f"fault at call {number}")
            run.use_each_log()
            run.may_fail = False
            run.check()
            run.go_on()
            reopened = Run(root, ledger, files=files, segment_bytes=scenario.segment_bytes)
            reopened.check()
            reopened.close()
            run.close()
            if number % 8 >= 4 or THOROUGH > 1:
                power_cut(scenario, root, run, f"fault at call {number}, then appends")
    except Exception as error:
        msg = f"{scenario.name} with {kind} at call {number} ({files.failed[:1]}): {error}"
        raise AssertionError(msg) from error
    return bool(files.failed)


def play_as_far_as_it_goes(scenario: Scenario, run: Run) -> None:
    """What is not an append may break the scenario off, but only with an error that is meant for users."""
    try:
        scenario.play(run)
    except HeadwaterError as error:
        run.errors.append(error)
    finally:
        crashpoint.arm(None)


def power_cut(scenario: Scenario, root: str, run: Run, name: str) -> None:
    replay = Replay(f"{scenario.name}, {name}", samples=THOROUGH, segment_bytes=scenario.segment_bytes)
    replay.whole(Disk(root), root, run.files.events, run.ledger.until(run.now()))


def test_an_error_of_the_disk_is_not_taken_for_damage() -> None:
    """Reading may fail and go well again; nothing is truncated or reported as lost."""

    class Unreadable(RecordingFiles):
        broken = False

        def read(self, handle: int, length: int, position: int) -> bytes:
            if self.broken:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().read(handle, length, position)

    with folder() as root:
        files = Unreadable()
        run = Run(root, Ledger((ORDERS,)), files=files)
        run.append("orders", {0: 2})
        run.close()
        for boot in (1, 2):
            again = Run(root, run.ledger, files=files, boot=boot)
            again.open()
            files.broken = True
            with pytest.raises(Unavailable) as raised:
                again.check()
            assert not isinstance(raised.value, LogDamaged)
            files.broken = False
            again.check()
            again.close()
