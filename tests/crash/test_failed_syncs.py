"""An fsync fails while others wait for the same disk: each is told, or its frame is safe."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from headwater.errors import SequenceGap, Unavailable
from headwater.log import TopicLog
from headwater.log.entry import Entry
from headwater.log.segment import Stamp, prepare
from tests.crash.disk import Disk
from tests.crash.faulty_files import FailingFiles, Killed
from tests.crash.ledger import SCHEMA, Ledger, batch_of
from tests.crash.replay import Replay, folder
from tests.crash.run import Run
from tests.crash.scenarios import with_the_other_at

ORDERS = TopicLog("orders", 1, SCHEMA)


class _FailingSyncs(FailingFiles):
    """The next syncs of segments fail, as many as `failing` says, or one write to the file that `refused` names.

    If `left` is set, the process is killed after so many calls.
    """

    failing = 0
    left: int | None = None
    refused = ""

    def before(self, call: str, path: str) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                raise Killed
        if call == "write" and os.path.basename(path) == self.refused:
            self.refused = ""
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if call == "sync" and path.endswith(".segment") and self.failing:
            self.failing -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def written(run: Run, row: int, log: int) -> tuple[Entry, int]:
    """A frame that one of the logs has written and not yet synced, with the generation it belongs to."""
    partition = run.logs[log].partition("orders", 0)
    with partition.held() as held:
        stamp = Stamp(run.logs[log]._numbers.take(), run.clock.now())
        entry = partition.write(prepare(batch_of([row])), stamp)
        return entry, held.generation


def two_logs(root: str) -> tuple[Run, _FailingSyncs]:
    files = _FailingSyncs()
    run = Run(root, Ledger((ORDERS,), next_row=100), files=files)
    run.open()
    run.open()
    run.append("orders", {0: 1}, log=run.logs[0])
    return run, files


def rows(run: Run, log: int) -> list[int]:
    return [row for r in run.logs[log].read("orders", 0, 0) for row in r.batch.column("id").to_pylist()]


def test_whoever_waits_for_a_frame_that_another_took_back_is_told() -> None:
    with folder() as root:
        run, files = two_logs(root)
        (mine, generation), (other, other_generation) = written(run, 1, log=0), written(run, 2, log=1)
        files.failing = 1
        with pytest.raises(Unavailable, match="the batch is not stored"):
            run.logs[0].partition("orders", 0).sync(mine, generation)
        with pytest.raises(Unavailable, match="the batch is not stored"):
            run.logs[1].partition("orders", 0).sync(other, other_generation)
        assert rows(run, 0) == rows(run, 1) == [100]
        run.close()


def test_it_is_told_also_when_another_frame_has_taken_the_place() -> None:
    """The new frame is longer or shorter, so that no frame begins or ends where the lost one did."""
    with folder() as root:
        run, files = two_logs(root)
        (mine, generation), (other, other_generation) = written(run, 1, log=0), written(run, 2, log=1)
        files.failing = 1
        with pytest.raises(Unavailable):
            run.logs[0].partition("orders", 0).sync(mine, generation)
        run.append("orders", {0: 20})
        with pytest.raises(Unavailable, match="the batch is not stored"):
            run.logs[1].partition("orders", 0).sync(other, other_generation)
        assert rows(run, 1) == list(range(100, 121))
        run.close()


def test_a_frame_that_another_has_synced_before_it_could_be_taken_back_is_stored_for_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first one's fsync fails; before it can take anything back, that of a log goes well that was opened since.

    The kernel has told the failure, and would tell the late one nothing: the pages must have been written again.
    """
    with folder() as root:
        run, files = two_logs(root)
        (mine, generation), (other, other_generation) = written(run, 1, log=0), written(run, 2, log=1)
        first, second = (log.partition("orders", 0) for log in run.logs[:2])
        is_safe_anyway = first._commit._is_safe_anyway

        def after_the_other(*arguments: Any, **options: Any) -> bool:
            run.open().partition("orders", 0).sync(other, other_generation)
            return is_safe_anyway(*arguments, **options)

        monkeypatch.setattr(first._commit, "_is_safe_anyway", after_the_other)
        files.failing = 1
        first.sync(mine, generation)
        second.sync(other, other_generation)
        assert files.failing == 0
        assert rows(run, 0) == rows(run, 1) == [100, 1, 2]
        disk = Disk(root)
        for event in run.files.events:
            disk.apply(event)
        run.close()
        for number, (_, state) in enumerate(disk.states("both", samples=5)):
            copy = os.path.join(root, f"copy {number}")
            state.write_out(root, copy)
            after = Run(copy, Ledger((ORDERS,)), boot=2)
            after.open()
            assert rows(after, 0) == [100, 1, 2]
            after.close()


@pytest.mark.parametrize("meanwhile", ["nobody", "another append"])
def test_whoever_waits_is_told_also_when_the_one_that_takes_back_is_killed_at_it(meanwhile: str) -> None:
    """At any call: then the waiting one's frame is gone and he is told, or it is there and on disk.

    Not at the very first call after the failed fsync, which makes the pages dirty again: if its process is killed
    just before that, nobody who opens the file later can know of the failure.
    """
    killed, number = True, 1
    while killed:
        number += 1
        with folder() as root:
            run, files = two_logs(root)
            (mine, generation), (other, other_generation) = written(run, 1, log=0), written(run, 2, log=1)
            files.failing, files.left = 1, number + 1
            killed = is_killed_at_syncing(run, mine, generation)
            files.left = None
            late = run.open()
            if meanwhile == "another append":
                run.append("orders", {0: 2}, log=late)
            stored = is_synced(run, other, other_generation)
            run.append("orders", {0: 1}, log=late)
            assert stored in (2 in rows(run, 1), None), f"killed at call {number}"
            assert rows(run, 1)[-1] == run.ledger.next_row - 1
            run.close()
    assert number > 5


@pytest.mark.parametrize("meanwhile", ["nobody", "another append"])
def test_whoever_came_after_the_failure_is_told_also_when_the_one_that_takes_back_is_killed_at_it(
    meanwhile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He wrote between the failed fsync and the taking back, through a handle that is told of no failure."""
    number = 1
    while is_killed_with_a_late_one(number, meanwhile, monkeypatch):
        number += 1
    assert number > 4


def is_killed_with_a_late_one(number: int, meanwhile: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    with folder() as root:
        run, files = two_logs(root)
        mine, generation = written(run, 1, log=0)
        commit = run.logs[0].partition("orders", 0)._commit
        late: list[tuple[Entry, int]] = []
        is_safe_anyway = commit._is_safe_anyway

        def after_the_late_one(*arguments: Any, **options: Any) -> bool:
            run.open()
            late.append(written(run, 2, log=2))
            files.left = number
            return is_safe_anyway(*arguments, **options)

        monkeypatch.setattr(commit, "_is_safe_anyway", after_the_late_one)
        files.failing = 1
        killed = is_killed_at_syncing(run, mine, generation)
        files.left = None
        if meanwhile == "another append":
            run.append("orders", {0: 20}, log=run.open())
        stored = is_synced(run, *late[0], log=2)
        run.append("orders", {0: 1}, log=run.logs[2])
        assert stored in (2 in rows(run, 2), None), f"killed at call {number}"
        assert rows(run, 2)[-1] == run.ledger.next_row - 1
        run.close()
        return killed


def is_killed_at_syncing(run: Run, entry: Entry, generation: int) -> bool:
    try:
        run.logs[0].partition("orders", 0).sync(entry, generation)
    except Killed:
        return True
    except Unavailable:
        return False
    pytest.fail("the sync went well")


def is_synced(run: Run, entry: Entry, generation: int, *, log: int = 1) -> bool | None:
    """Whether a log is told that its frame is stored, or that this is not clear.

    If it is told so, the frame must survive a power cut.
    """
    try:
        run.logs[log].partition("orders", 0).sync(entry, generation)
    except Unavailable as error:
        return None if "not clear" in error.what else False
    disk = Disk(run.root)
    for event in run.files.events:
        disk.apply(event)
    for number, (_, state) in enumerate(disk.states("waiting", samples=2)):
        copy = os.path.join(run.root, f"copy {number}")
        state.write_out(run.root, copy)
        after = Run(copy, Ledger((ORDERS,)), boot=2)
        after.open()
        assert 2 in rows(after, 0)
        after.close()
    return True


def test_a_frame_that_could_not_be_announced_does_not_come_back_with_a_power_cut() -> None:
    """It was written whole, the tail file could not be written, and the caller was told that nothing is stored."""
    with folder() as root:
        run, files = two_logs(root)
        run.may_fail, files.refused = True, "tail"
        refused = run.append("orders", {0: 1})
        assert refused.refused
        Replay("not announced").whole(Disk(root), root, run.files.events, run.ledger.until(run.now()))
        run.close()


def test_records_that_are_taken_back_while_they_are_cut_are_not_in_the_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with folder() as root:
        run, files = two_logs(root)
        entry, generation = written(run, 1, log=0)
        first, second = (log.partition("orders", 0) for log in run.logs[:2])
        sync_to = type(second).sync_to

        def fail_before(partition: object, until: object) -> object:
            files.failing = 1
            with pytest.raises(Unavailable):
                first.sync(entry, generation)
            return sync_to(partition, until)  # type: ignore[arg-type]

        monkeypatch.setattr(type(second), "sync_to", fail_before)
        with pytest.raises(Unavailable, match="taken back while they were being cut"):
            run.logs[1].cut(["orders"])
        monkeypatch.undo()
        cut = run.logs[1].cut(["orders"])
        assert (cut.rows, cut.end("orders", 0)) == (1, 1)
        run.close()


def test_a_tail_file_that_does_not_tell_never_makes_a_failure_take_acknowledged_records_back() -> None:
    """How far the disk was synced is unreadable, and then an fsync fails."""
    with folder() as root:
        run, files = two_logs(root)
        run.append("orders", {0: 3})

        def harm() -> None:
            tail = os.path.join(root, "log", "orders.1", "0", "tail")
            with open(tail, "r+b") as file:
                file.seek(140)
                file.write(b"harm")
            files.failing = 1

        run.may_fail, run.certain = True, False
        with_the_other_at("append.before_sync", harm)
        run.append("orders", {0: 1})
        assert "not clear" in str(run.errors[0])
        run.may_fail = False
        run.check()
        run.go_on()
        run.close()


def test_a_refused_sequence_that_the_producer_skipped_is_not_called_stored_later() -> None:
    """The first one of all, so that its successor does not show the gap."""
    with folder() as root:
        run, files = two_logs(root)
        files.failing, run.may_fail = 1, True
        refused = run.append("orders", {0: 1}, producer="shop", sequence=0)
        run.may_fail = False
        run.append("orders", {0: 1}, producer="shop", sequence=1)
        with pytest.raises(SequenceGap, match="sequence 0, which was never stored"):
            run.try_append(refused, "orders")
        run.check()
        run.close()
