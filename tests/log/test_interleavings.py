"""What must hold when one process is in the middle of something and another comes by, case by case."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headwater import Pipeline, Stream, crashpoint
from tests.inside import log_of, topic_of

A_WHILE = 0.2


def opened(path: Path) -> Pipeline:
    pipeline = Pipeline("test", path)
    for name in ("orders", "clicks"):
        pipeline.stream(name, "id INT")
    return pipeline


def stream(pipeline: Pipeline, name: str) -> Stream:
    topic = topic_of(pipeline, name)
    assert isinstance(topic, Stream)
    return topic


@contextmanager
def halted(point: str, doing: Callable[[], Any]) -> Iterator[tuple[Future[Any], threading.Event]]:
    """Do something in a thread until it reaches a crash point, where it waits for the event (set at the end)."""
    reached, go_on = threading.Event(), threading.Event()

    def halt() -> None:
        reached.set()
        go_on.wait(20)

    with ThreadPoolExecutor(1) as threads:
        crashpoint.arm(point, action=halt)
        try:
            future = threads.submit(doing)
            assert reached.wait(20)
            yield future, go_on
        finally:
            crashpoint.arm(None)
            go_on.set()


def still_runs(future: Future[Any]) -> bool:
    try:
        future.result(A_WHILE)
    except StillRunning:
        return True
    return False


def test_an_append_takes_its_number_only_when_it_holds_the_lock(tmp_path: Path) -> None:
    with opened(tmp_path) as pipeline:
        last: list[int] = []
        crashpoint.arm("append.locked", action=lambda: last.append(log_of(pipeline)._numbers.last()))
        try:
            stream(pipeline, "orders").append([{"id": 1}])
        finally:
            crashpoint.arm(None)
        (records,) = log_of(pipeline).read("orders", 0, 0)
        assert records.sequence > last[0]


def test_a_cut_waits_for_whoever_took_an_earlier_number(tmp_path: Path) -> None:
    """One appends 1 and is halted before anyone can see it; 2 is acknowledged elsewhere: no cut has 2 without 1."""
    with (
        opened(tmp_path) as pipeline,
        opened(tmp_path) as other,
        ThreadPoolExecutor(1) as threads,
        halted("append.written", lambda: stream(pipeline, "orders").append([{"id": 1}])) as (_, go_on),
    ):
        stream(other, "clicks").append([{"id": 2}])
        cutting = threads.submit(log_of(other).cut, ["clicks", "orders"])
        assert still_runs(cutting)
        go_on.set()
        assert cutting.result(20).ends == {("clicks", 0): 1, ("orders", 0): 1}


def test_what_is_cut_is_made_lasting_first(tmp_path: Path) -> None:
    with (
        opened(tmp_path) as pipeline,
        opened(tmp_path) as other,
        halted("append.before_sync", lambda: stream(pipeline, "orders").append([{"id": 1}])),
    ):
        before = log_of(other).files.syncs
        assert log_of(other).cut(["orders"]).rows == 1
        assert log_of(other).files.syncs > before


def test_an_append_returns_only_after_the_sync_that_covers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one is in its sync another writes: that sync began too early for it, so it waits for the next."""
    with opened(tmp_path) as pipeline, opened(tmp_path) as other, ThreadPoolExecutor(2) as threads:
        stream(pipeline, "orders").append([{"id": 0}])
        stream(other, "orders").append([{"id": 0}])
        syncing, go_on = threading.Event(), threading.Event()

        def slow(_: int) -> None:
            syncing.set()
            go_on.wait(20)

        monkeypatch.setattr(log_of(pipeline).files, "sync", slow)
        first = threads.submit(stream(pipeline, "orders").append, [{"id": 1}])
        assert syncing.wait(20)
        before = log_of(other).files.syncs
        second = threads.submit(stream(other, "orders").append, [{"id": 2}])
        waited = still_runs(second)
        go_on.set()
        assert waited
        first.result(20)
        second.result(20)
        assert log_of(other).files.syncs > before


@pytest.mark.parametrize("point", ["append.written", "append.published"])
def test_nobody_reads_what_is_not_yet_synced_without_syncing_it(tmp_path: Path, point: str) -> None:
    with (
        opened(tmp_path) as pipeline,
        opened(tmp_path) as other,
        halted(point, lambda: stream(pipeline, "orders").append([{"id": 1}])),
    ):
        before = log_of(other).files.syncs
        seen = sum(records.batch.num_rows for records in log_of(other).read("orders", 0, 0))
        assert seen == 0 or log_of(other).files.syncs > before


def test_readers_and_cuts_stop_at_an_undecided_transaction_and_go_on_when_it_commits(tmp_path: Path) -> None:
    with opened(tmp_path) as pipeline, opened(tmp_path) as other:

        def commit() -> None:
            with pipeline.transaction() as transaction:
                transaction.append("orders", [{"id": 1}])
                transaction.append("clicks", [{"id": 1}])

        def seen() -> list[int]:
            return [number for table in stream(other, "orders").tail() for number in table["id"].to_pylist()]

        with halted("transaction.synced", commit) as (future, go_on):
            stream(other, "orders").append([{"id": 2}])
            assert seen() == []
            assert list(log_of(other).read("orders", 0, 0)) == []
            assert log_of(other).cut(["orders", "clicks"]).rows == 0
            go_on.set()
            future.result(20)
        assert seen() == [1, 2]
        assert log_of(other).cut(["orders", "clicks"]).rows == 3
