"""A follower in another process hears of news promptly, and waits for it without spinning."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
import pytest

from headwater import Pipeline, crashpoint
from tests.crash.children import child, told
from tests.inside import topic_of

PROMPTLY = 1.0
"""Far more than it takes, for a busy machine; a follower that only polled now and then would still be too late."""


def opened(path: Path) -> Pipeline:
    pipeline = Pipeline("news", path)
    pipeline.stream("orders", "id INT", partitions=2)
    pipeline.stream("loose", "id INT", durability="none")
    return pipeline


def follow(pipe: Connection, path: Path, topic: str) -> None:
    """Tell every row's id as it comes."""
    for table in opened(path)._topic(topic).tail(follow=True):
        for number in table["id"].to_pylist():
            pipe.send(number)


def hears(pipe: Connection, *, within: float = PROMPTLY) -> object:
    assert pipe.poll(within), f"nothing was heard within {within} s"
    return pipe.recv()


@pytest.mark.parametrize("topic", ["orders", "loose"])
def test_a_follower_sees_what_is_there_and_then_what_another_process_appends(tmp_path: Path, topic: str) -> None:
    with opened(tmp_path) as pipeline, child(follow, tmp_path, topic) as (_, pipe):
        topic_of(pipeline, topic).append([{"id": 0}])
        assert told(pipe) == 0
        waits = []
        for number in range(1, 21):
            started = time.monotonic()
            topic_of(pipeline, topic).append([{"id": number}])
            assert hears(pipe) == number
            waits.append(time.monotonic() - started)
        assert sorted(waits)[10] < 0.2


def test_a_follower_sees_a_transaction_when_it_is_decided_and_not_before(tmp_path: Path) -> None:
    with opened(tmp_path) as pipeline, child(follow, tmp_path, "orders") as (_, pipe):
        topic_of(pipeline, "orders").append([{"id": 0}])
        assert told(pipe) == 0
        undecided = []
        crashpoint.arm("transaction.synced", action=lambda: undecided.append(pipe.poll(0.3)))
        try:
            with pipeline.transaction() as transaction:
                transaction.append("orders", [{"id": 1}])
                transaction.append("loose", [{"id": 1}])
        finally:
            crashpoint.arm(None)
        assert undecided == [False]
        assert hears(pipe) == 1


def stop_undecided(pipe: Connection, path: Path) -> None:
    """Write a transaction's frames, then wait undecided."""

    def wait() -> None:
        pipe.send("undecided")
        pipe.recv()

    crashpoint.arm("transaction.synced", action=wait)
    with opened(path) as pipeline, pipeline.transaction() as transaction:
        transaction.append("orders", [{"id": 13}])
        transaction.append("loose", [{"id": 13}])


@pytest.mark.slow
def test_a_follower_goes_on_behind_a_transaction_whose_owner_died(tmp_path: Path) -> None:
    with opened(tmp_path) as pipeline, child(follow, tmp_path, "loose") as (_, pipe):
        with child(stop_undecided, tmp_path) as (_, other):
            assert told(other) == "undecided"
            topic_of(pipeline, "loose").append([{"id": 14}])
            assert not pipe.poll(0.3)
        assert hears(pipe, within=5.0) == 14


@pytest.mark.slow
def test_a_follower_without_news_hardly_uses_the_processor(tmp_path: Path) -> None:
    with opened(tmp_path) as pipeline, child(follow, tmp_path, "orders") as (process, pipe):
        topic_of(pipeline, "orders").append([{"id": 0}])
        assert told(pipe) == 0
        follower = psutil.Process(process.pid)
        assert cpu(follower, over=0.5) >= 0
        assert cpu(follower, over=2.0) < 0.05 * 2.0


def cpu(process: psutil.Process, *, over: float) -> float:
    """The processor time that a process uses in some seconds."""
    used: Callable[[], float] = lambda: sum(process.cpu_times()[:2])  # noqa: E731
    before = used()
    time.sleep(over)
    return used() - before
