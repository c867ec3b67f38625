"""Two processes that would drive one pipeline: one dies, is stopped, or sits on a lock; the other replaces it."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from headwater import Fenced, LeaseHeld, Pipeline
from headwater.process import ProcessIdentity, _started
from headwater.store import TickRecord
from tests.crash.children import child, told, wait_until, wait_until_dead, wait_until_stopped
from tests.inside import lease_of, log_of, store_of, topic_of

ONE_ROW = [{"id": 1}]


def opened(path: Path) -> Pipeline:
    pipeline = Pipeline("lease", path)
    pipeline.stream("orders", "id INT")
    return pipeline


def stop_yourself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def tick(number: int) -> TickRecord:
    return TickRecord(number, 0, {})


# -- what children do


def hold(pipe: Connection, path: Path) -> None:
    """Become the driver, then do nothing."""
    pipeline = opened(path)
    lease_of(pipeline).acquire()
    pipe.send("held")
    pipe.recv()


def stop_then_commit(pipe: Connection, path: Path) -> None:
    """Become the driver, commit a tick, stop; once continued, try to commit the next one."""
    pipeline = opened(path)
    epoch = lease_of(pipeline).acquire()
    store_of(pipeline).commit(tick(1), epoch=epoch)
    stop_yourself()
    try:
        store_of(pipeline).commit(tick(2), epoch=epoch)
    except Fenced as error:
        pipe.send(str(error))
    pipeline.close()
    pipe.send("closed")
    pipe.recv()


def stop_in_the_store(pipe: Connection, path: Path, *, lease: bool = True) -> None:
    """Stop in the middle of a write of the store."""
    with opened(path) as pipeline:
        begin(pipe, pipeline, lease=lease)
        with store_of(pipeline)._database.write() as connection:
            connection.execute("INSERT INTO kept VALUES ('half', 'done')")
            stop_yourself()


def stop_with(pipe: Connection, path: Path, which: str, *, lease: bool = True) -> None:
    """Stop while holding one of the log's locks."""
    with opened(path) as pipeline:
        begin(pipe, pipeline, lease=lease)
        partition = log_of(pipeline).partition("orders", 0)
        lock = {
            "partition": partition.lock,
            "sync": partition._sync_lock,
            "sequence": log_of(pipeline)._numbers.lock,
        }
        with lock[which]:
            stop_yourself()


def begin(pipe: Connection, pipeline: Pipeline, *, lease: bool) -> None:
    """Become the driver, or wait for a word."""
    if lease:
        lease_of(pipeline).acquire()
    else:
        pipe.send("ready")
        pipe.recv()


# -- the lease


def test_a_second_driver_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    with child(hold, tmp_path) as (holder, pipe):
        assert told(pipe) == "held"
        with opened(tmp_path) as pipeline:
            with pytest.raises(LeaseHeld) as raised:
                lease_of(pipeline).acquire()
            assert f"process {holder.pid}" in raised.value.holder
            topic_of(pipeline, "orders").append(ONE_ROW)


def test_a_killed_drivers_lease_is_free_at_once(tmp_path: Path) -> None:
    with child(hold, tmp_path) as (holder, pipe), opened(tmp_path) as pipeline:
        assert told(pipe) == "held"
        holder.kill()
        started = time.monotonic()
        holder.join()
        assert lease_of(pipeline).acquire() == 2
        assert time.monotonic() - started < 2.0
        store_of(pipeline).commit(tick(1), epoch=2)


def test_two_that_become_the_driver_at_once_do_not_both_succeed(tmp_path: Path) -> None:
    with opened(tmp_path) as first, opened(tmp_path) as second:
        seen = store_of(first).lease()
        assert lease_of(first)._become(seen) == 1
        with pytest.raises((LeaseHeld, Fenced)):
            lease_of(second)._become(seen)


def test_a_stopped_driver_that_was_replaced_is_fenced_and_deletes_nothing(tmp_path: Path) -> None:
    with child(stop_then_commit, tmp_path) as (holder, pipe), opened(tmp_path) as pipeline:
        wait_until_stopped(holder)
        with pytest.raises(LeaseHeld):
            lease_of(pipeline).acquire()
        pipeline.take_over()
        store_of(pipeline).commit(tick(2), epoch=lease_of(pipeline).epoch)
        before = {path for path in tmp_path.rglob("*") if path.is_file()}
        os.kill(holder.pid or 0, signal.SIGCONT)
        assert "epoch 1 was replaced by 2" in told(pipe)
        assert told(pipe) == "closed"
        assert before <= {path for path in tmp_path.rglob("*") if path.is_file()}
        last = store_of(pipeline).last_tick()
        assert last is not None
        assert last.number == 2
        with opened(tmp_path) as third, pytest.raises(LeaseHeld):
            lease_of(third).acquire()


def test_a_driver_stopped_inside_a_write_of_the_store_is_killed_and_nothing_of_it_stays(tmp_path: Path) -> None:
    with child(stop_in_the_store, tmp_path) as (holder, _), opened(tmp_path) as pipeline:
        wait_until_stopped(holder)
        pipeline.take_over()
        wait_until_dead(holder)
        assert store_of(pipeline).kept("half") is None
        store_of(pipeline).commit(tick(1), epoch=lease_of(pipeline).epoch)


def identity(pid: int) -> ProcessIdentity:
    """Another process of this machine."""
    return dataclasses.replace(ProcessIdentity.own(), pid=pid, started=_started(pid) or 0)


def someone_else(holder: ProcessIdentity) -> ProcessIdentity:
    """The process that had this number before."""
    return dataclasses.replace(holder, started=holder.started - 1)


def elsewhere(holder: ProcessIdentity) -> ProcessIdentity:
    """A process of the same number on another machine."""
    return dataclasses.replace(holder, host="elsewhere")


def before_the_restart(holder: ProcessIdentity) -> ProcessIdentity:
    """A process of the same number before the machine started."""
    return dataclasses.replace(holder, boot=holder.boot + 1)


@pytest.mark.slow
@pytest.mark.parametrize("almost", [someone_else, elsewhere, before_the_restart])
def test_a_process_that_only_has_the_drivers_number_is_not_killed(
    tmp_path: Path, almost: Callable[[ProcessIdentity], ProcessIdentity]
) -> None:
    with child(partial(stop_in_the_store, lease=False), tmp_path) as (process, pipe), opened(tmp_path) as pipeline:
        assert told(pipe) == "ready"
        recorded = almost(identity(process.pid or 0))
        store_of(pipeline).raise_epoch(dataclasses.asdict(recorded), seen=0)
        pipe.send("go on")
        wait_until_stopped(process)
        with pytest.raises(LeaseHeld) as raised:
            pipeline.take_over()
        assert str(process.pid) in raised.value.holder
        assert process.is_alive()
        os.kill(process.pid or 0, signal.SIGCONT)
        wait_until(lambda: store_of(pipeline).kept("half") == "done")


@pytest.mark.slow
@pytest.mark.parametrize("which", ["partition", "sync", "sequence"])
def test_a_driver_stopped_while_it_holds_a_lock_of_the_log_is_killed(tmp_path: Path, which: str) -> None:
    with child(stop_with, tmp_path, which) as (holder, _), opened(tmp_path) as pipeline:
        wait_until_stopped(holder)
        pipeline.take_over()
        wait_until_dead(holder)
        topic_of(pipeline, "orders").append(ONE_ROW)
        assert log_of(pipeline).cut(["orders"]).rows == 1


@pytest.mark.slow
@pytest.mark.parametrize("which", ["partition", "sync", "sequence"])
def test_another_process_stopped_while_it_holds_a_lock_of_the_log_is_named_and_lives(
    tmp_path: Path, which: str
) -> None:
    with child(partial(stop_with, lease=False), tmp_path, which) as (process, pipe), opened(tmp_path) as pipeline:
        assert told(pipe) == "ready"
        pipe.send("go on")
        wait_until_stopped(process)
        with pytest.raises(LeaseHeld) as raised:
            pipeline.take_over()
        assert str(process.pid) in str(raised.value)
        assert process.is_alive()
        os.kill(process.pid or 0, signal.SIGCONT)
        topic_of(pipeline, "orders").append(ONE_ROW)
