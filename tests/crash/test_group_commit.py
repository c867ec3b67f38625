"""Appends that wait for the disk at the same time share its syncs; declarations at the same time agree or not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from headwater import DeclarationChanged, Pipeline
from headwater.pipeline.reopen import declared
from tests.crash.children import child, told
from tests.inside import log_of, topic_of

WRITERS = 8
APPENDS = 100
WARM_UP = 10


def opened(path: Path) -> Pipeline:
    pipeline = Pipeline("crowd", path)
    pipeline.stream("orders", "writer INT, number INT")
    return pipeline


def append(pipeline: Pipeline, writer: int, count: int) -> None:
    topic = pipeline.stream("orders", "writer INT, number INT")
    for number in range(count):
        topic.append([{"writer": writer, "number": number}])


def append_and_count(pipe: Connection, path: Path, writer: int) -> None:
    """Append, warmed up and together with the others; tell how many syncs that took here."""
    pipeline = opened(path)
    append(pipeline, writer, WARM_UP)
    pipe.send("warm")
    pipe.recv()
    before = log_of(pipeline).files.syncs
    append(pipeline, writer, APPENDS)
    pipe.send(log_of(pipeline).files.syncs - before)


def rows(pipeline: Pipeline) -> int:
    return sum(table.num_rows for table in topic_of(pipeline, "orders").tail())


@pytest.mark.slow
def test_eight_processes_share_their_syncs(tmp_path: Path) -> None:
    with ExitStack() as stack:
        crew = [stack.enter_context(child(append_and_count, tmp_path, number)) for number in range(WRITERS)]
        assert [told(pipe) for _, pipe in crew] == ["warm"] * WRITERS
        for _, pipe in crew:
            pipe.send("go")
        syncs = sum(told(pipe) for _, pipe in crew)
    assert syncs / (WRITERS * APPENDS) < 0.5
    with opened(tmp_path) as pipeline:
        assert rows(pipeline) == WRITERS * (WARM_UP + APPENDS)


@pytest.mark.slow
def test_eight_threads_share_their_syncs(tmp_path: Path) -> None:
    with opened(tmp_path) as pipeline:
        append(pipeline, 0, WARM_UP)
        before = log_of(pipeline).files.syncs
        threads = [threading.Thread(target=append, args=(pipeline, number, APPENDS)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (log_of(pipeline).files.syncs - before) / (WRITERS * APPENDS) < 0.5
        assert rows(pipeline) == WARM_UP + WRITERS * APPENDS


# -- declaring at once


def the_same(pipeline: Pipeline, number: int) -> None:
    pipeline.stream("orders", "id INT", partitions=2)
    pipeline.table("items", "id INT, name STRING", key="id", on_error="dead_letter")


def each_their_own(pipeline: Pipeline, number: int) -> None:
    pipeline.stream("orders", "id INT", partitions=number + 1)


def declare_at_once(pipe: Connection, path: Path, declare: Callable[[Pipeline, int], None], number: int) -> None:
    """Open a pipeline that may not exist yet and declare; tell how it went."""
    pipe.send("here")
    pipe.recv()
    try:
        with Pipeline("crowd", path) as pipeline:
            declare(pipeline, number)
        pipe.send("declared")
    except DeclarationChanged as error:
        pipe.send(str(error))


def outcomes(path: Path, declare: Callable[[Pipeline, int], None]) -> list[str]:
    with ExitStack() as stack:
        arguments = [(declare_at_once, path, declare, number) for number in range(WRITERS)]
        crew = [stack.enter_context(child(*one)) for one in arguments]
        assert [told(pipe) for _, pipe in crew] == ["here"] * WRITERS
        for _, pipe in crew:
            pipe.send("go")
        return [told(pipe) for _, pipe in crew]


def test_many_processes_may_open_and_declare_the_same_at_once(tmp_path: Path) -> None:
    assert outcomes(tmp_path / "new", the_same) == ["declared"] * WRITERS
    with Pipeline("crowd", tmp_path / "new") as pipeline:
        assert set(declared(pipeline)) == {"orders", "items", "items__dead_letters"}
        assert topic_of(pipeline, "orders").partitions == 2


def test_of_many_processes_that_declare_differently_at_once_one_wins_and_the_others_are_told(
    tmp_path: Path,
) -> None:
    found = outcomes(tmp_path / "new", each_their_own)
    winner = found.index("declared")
    assert found.count("declared") == 1
    for number, message in enumerate(found):
        if number != winner:
            assert f"partitions is {winner + 1} and would become {number + 1}" in message
