"""Handles that outlive what they stand for: drops, forks, closed pipelines, several pipelines on one folder."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.pipeline import declared
from tests.inside import topic_of


def rows_of(topic: hw.Stream | hw.Table) -> list[dict[str, Any]]:
    return [row for table in topic.tail() for row in table.to_pylist()]


def test_a_handle_from_before_a_drop_cannot_write_to_the_new_topic(pipeline: hw.Pipeline) -> None:
    old = pipeline.stream("t", "a STRING")
    pipeline.drop("t")
    new = pipeline.stream("t", "n BIGINT, m BIGINT")
    new.append([{"n": 1, "m": 1}])
    with pytest.raises(hw.HeadwaterError, match="declared anew"):
        old.append([{"a": "hello"}])
    with pytest.raises(hw.HeadwaterError, match="declared anew"):
        list(old.tail())
    assert [row["n"] for row in rows_of(new)] == [1]


def test_a_topic_of_another_pipeline_is_refused_in_a_transaction(pipeline: hw.Pipeline, tmp_path: Path) -> None:
    pipeline.stream("t", "n INT")
    with hw.Pipeline("other", tmp_path / "other") as other:
        theirs = other.stream("t", "s STRING")
        with pytest.raises(hw.HeadwaterError, match="another pipeline"), pipeline.transaction() as tx:
            tx.append(theirs, [{"s": "x"}])


def test_a_drop_and_a_new_declaration_are_seen_by_other_processes(tmp_path: Path) -> None:
    with hw.Pipeline("p", tmp_path) as a, hw.Pipeline("p", tmp_path) as b:
        a.stream("t", "x INT")
        stale = b.stream("t", "x INT")
        a.drop("t")
        with pytest.raises(hw.HeadwaterError, match="dropped"):
            stale.append([{"x": 1}])
        with pytest.raises(hw.HeadwaterError, match="dropped"):
            rows_of(stale)
        with pytest.raises(hw.HeadwaterError, match="there is no"):
            b.drop("t")
        fresh = a.stream("t", "y STRING")
        fresh.append([{"y": "new"}])
        again = b.stream("t", "y STRING")
        again.append([{"y": "newer"}])
        assert [row["y"] for row in rows_of(fresh)] == ["new", "newer"]
        b.drop("t")
        assert declared(a) == {}


def test_dead_letters_go_with_their_topic_and_a_refused_declaration_leaves_none(pipeline: hw.Pipeline) -> None:
    pipeline.stream("u", "n INT", on_error="dead_letter").append([{"n": "x"}])
    pipeline.drop("u")
    assert declared(pipeline) == {}
    pipeline.stream("u", "n INT", on_error="dead_letter", durability="none")
    pipeline.stream("v", "n INT")
    with pytest.raises(hw.DeclarationChanged):
        pipeline.stream("v", "n INT", on_error="dead_letter")
    assert "v__dead_letters" not in declared(pipeline)


def test_a_closed_pipeline_says_so_and_touches_no_file_of_others(tmp_path: Path) -> None:
    pipeline = hw.Pipeline("p", tmp_path / "p")
    clicks = pipeline.stream("clicks", "n INT")
    clicks.append([{"n": 1}])
    pipeline.close()
    mine = [(tmp_path / f"mine{n}").open("w+b") for n in range(12)]
    for call in (
        lambda: clicks.append([{"n": 2}]),
        lambda: pipeline.stream("new", "n INT"),
        lambda: rows_of(clicks),
    ):
        with pytest.raises(hw.HeadwaterError, match="closed"):
            call()
    for file in mine:
        assert os.fstat(file.fileno()).st_size == 0
        file.close()


def test_closing_while_threads_append_hangs_nobody(tmp_path: Path) -> None:
    pipeline = hw.Pipeline("p", tmp_path)
    clicks = pipeline.stream("clicks", "n INT")
    acknowledged: list[int] = []
    started = threading.Event()

    def produce(first: int) -> None:
        for n in range(first, first + 100_000):
            try:
                clicks.append([{"n": n}])
            except hw.HeadwaterError:
                return
            acknowledged.append(n)
            started.set()

    threads = [threading.Thread(target=produce, args=(k * 1_000_000,), daemon=True) for k in range(3)]
    for thread in threads:
        thread.start()
    assert started.wait(20)
    pipeline.close()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    with hw.Pipeline("p", tmp_path) as again:
        found = [row["n"] for row in rows_of(again.stream("clicks", "n INT"))]
    assert set(acknowledged) <= set(found)


def test_a_forked_child_and_its_parent_lose_nothing_of_each_other(tmp_path: Path) -> None:
    pipeline = hw.Pipeline("p", tmp_path)
    items = pipeline.table("items", "id BIGINT", key="id", partitions=4)
    items.upsert([{"id": n} for n in range(10)])
    fork = multiprocessing.get_context("fork")
    parent_closed = fork.Event()

    def child() -> None:
        items.upsert([{"id": n} for n in range(100, 110)])
        assert parent_closed.wait(20)
        items.upsert([{"id": n} for n in range(200, 210)])

    process = fork.Process(target=child)
    process.start()
    items.upsert([{"id": n} for n in range(300, 310)])
    pipeline.close()
    parent_closed.set()
    process.join(30)
    assert process.exitcode == 0
    with hw.Pipeline("p", tmp_path) as again:
        found = sorted(row["id"] for row in rows_of(topic_of(again, "items")))
    assert found == [n + k for k in (0, 100, 200, 300) for n in range(10)]


def test_children_forked_while_threads_append_do_not_hang(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    with hw.Pipeline("p", tmp_path) as pipeline:
        items = pipeline.table("items", "id BIGINT", key="id", partitions=2)
        stop = threading.Event()

        def produce() -> None:
            while not stop.is_set():
                items.upsert([{"id": 1}, {"id": 2}])

        threads = [threading.Thread(target=produce) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for number in range(8):
                process = fork.Process(target=items.upsert, args=([{"id": 100 + number}, {"id": 200 + number}],))
                process.start()
                process.join(30)
                assert process.exitcode == 0
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        counts = Counter(row["id"] for row in rows_of(items))
    assert all(counts[100 + number] == counts[200 + number] == 1 for number in range(8))


def test_a_tail_shows_no_half_batch(tmp_path: Path) -> None:
    with hw.Pipeline("p", tmp_path) as writer, hw.Pipeline("p", tmp_path) as reader:
        pairs = writer.table("pairs", "id BIGINT, n BIGINT", key="id", partitions=2)
        other = reader.table("pairs", "id BIGINT, n BIGINT", key="id", partitions=2)
        stop = threading.Event()
        apart = [0, next(i for i in range(1, 100) if _partition(pairs, i) != _partition(pairs, 0))]

        def produce() -> None:
            n = 0
            while not stop.is_set():
                pairs.upsert([{"id": i, "n": n} for i in apart])
                n += 1

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            for _ in range(15):
                counts = Counter(row["n"] for row in rows_of(other))
                assert set(counts.values()) <= {2}
        finally:
            stop.set()
            thread.join()


def _partition(table: hw.Table, number: int) -> int:
    parts = table.divide(table.checked([{"id": number, "n": 0}], "upsert").batch, "upsert")
    return int(next(iter(parts)))


def test_a_retry_returns_the_whole_position_however_the_partitions_went_on(pipeline: hw.Pipeline) -> None:
    items = pipeline.table("items", "id BIGINT", key="id", partitions=2)
    both = [{"id": n} for n in range(10)]
    first = items.upsert(both, producer="p", sequence=0)
    assert len(first.ends) == 2
    one = next(n for n in range(100) if items.upsert([{"id": n}]).ends[0][1] == 1)
    for sequence in range(1, 8):
        items.upsert([{"id": one}], producer="p", sequence=sequence)
    assert items.upsert(both, producer="p", sequence=0) == first


def test_errors_travel_between_processes() -> None:
    for error in (
        hw.LogDamaged("harmed", segment="s", byte=7, hint="h"),
        hw.LeaseHeld("held", holder="process 1"),
        hw.VersionExpired("gone", oldest=3),
        hw.SchemaError("bad", row=1, column="c", where="t"),
        hw.SequenceGap("gap", retry=True),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert vars(again) == vars(error)
        assert str(again) == str(error)


def test_a_tail_since_a_position_of_another_topic_is_refused(pipeline: hw.Pipeline) -> None:
    clicks = pipeline.stream("clicks", "n INT")
    clicks.append([{"n": 1}])
    assert list(clicks.tail(since=hw.Position.parse("CLICKS@0:1"))) == []
    for wrong in (hw.Position.parse("other@0:1"), "other@0:1"):
        with pytest.raises(hw.HeadwaterError):
            clicks.tail(since=wrong)


def test_threads_that_declare_the_same_topic_at_once_all_can_use_it(pipeline: hw.Pipeline) -> None:
    failures: list[BaseException] = []
    barrier = threading.Barrier(6)

    def declare(number: int) -> None:
        try:
            barrier.wait()
            for round_ in range(5):
                table = pipeline.table(f"t{round_}", "id BIGINT", key="id", partitions=2)
                table.upsert([{"id": number}, {"id": number + 10}], producer=f"p{number}", sequence=0)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=declare, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert all(len(rows_of(topic)) == 12 for topic in declared(pipeline).values())
    assert all(a != b for a, b in pairwise(sorted(declared(pipeline))))
