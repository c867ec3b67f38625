"""What every log must do. A backend's test module subclasses this and says how to open one."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.change.columns import marked
from headwater.errors import DeclarationChanged, HeadwaterError, SequenceGap
from headwater.log import Cut, Log, LogSlice, TopicDropped, TopicLog
from headwater.position import Position

SCHEMA = pa.schema([pa.field("_op", pa.int8(), nullable=False), ("id", pa.int64()), ("name", pa.string())])
ALTERED = marked(pa.schema([SCHEMA.field("_op"), ("id", pa.float64()), ("tax", pa.int8())]), 1, {}, {"tax": "9"})
Open = Callable[[], Log]


def rows(*ids: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"_op": 0, "id": i, "name": f"n{i}"} for i in ids], schema=SCHEMA)


def later(*ids: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"_op": 0, "id": i, "tax": 5} for i in ids], schema=ALTERED)


def ids(log: Log, topic: str = "orders", partition: int = 0, start: int = 0, end: int | None = None) -> list[int]:
    return [i for records in log.read(topic, partition, start, end) for i in records.batch.column("id").to_pylist()]


def ids_in(log: Log, cut: Cut, after: Cut | None = None) -> dict[tuple[str, int], list[int]]:
    return {
        (topic, partition): ids(log, topic, partition, after.end(topic, partition) if after else 0, end)
        for (topic, partition), end in cut.ends.items()
    }


_READER = """
import importlib, json, sys
for module, kind, fields in json.load(sys.stdin):
    each = getattr(importlib.import_module(module), kind)(**fields)
    for records in each.read():
        print(json.dumps([each.partition, records.partition, records.offset, records.batch.to_pydict()["id"]]))
"""


def read_elsewhere(slices: Sequence[LogSlice]) -> list[list[Any]]:
    """What another process reads from slices that travelled to it as plain data."""
    data = [[type(each).__module__, type(each).__qualname__, asdict(each)] for each in slices]  # type: ignore[call-overload]
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", _READER]
    done = subprocess.run(command, input=json.dumps(data), capture_output=True, text=True, check=True, cwd=root)
    return [json.loads(line) for line in done.stdout.splitlines()]


class LogContract:
    @pytest.fixture
    def open_log(self) -> Open:
        """A function that opens the same log anew, as another process would, with its topics declared."""
        raise NotImplementedError

    @pytest.fixture
    def topics(self) -> list[TopicLog]:
        return [
            TopicLog("orders", 1, SCHEMA),
            TopicLog("clicks", 2, SCHEMA, partitions=3),
            TopicLog("hints", 3, SCHEMA, durable=False),
            TopicLog("letters", 4, SCHEMA),
        ]

    @pytest.fixture
    def log(self, open_log: Open) -> Iterator[Log]:
        opened = open_log()
        yield opened
        opened.close()

    # -- altering

    def test_records_are_read_with_the_columns_that_their_topic_has_now(self, log: Log, open_log: Open) -> None:
        log.append("orders", {0: rows(1)})
        log.declare(TopicLog("orders", 1, ALTERED))
        log.append("orders", {0: later(2)})
        other = open_log()
        other.declare(TopicLog("orders", 1, ALTERED))
        wanted = [{"_op": 0, "id": 1.0, "tax": 9}, {"_op": 0, "id": 2.0, "tax": 5}]
        for each in (log, other):
            assert [row for found in each.read("orders", 0, 0) for row in found.batch.to_pylist()] == wanted
            slices = each.slices("orders", after=Cut(), until=each.cut(["orders"]))
            assert [row for of in slices for found in of.read() for row in found.batch.to_pylist()] == wanted

    def test_whoever_knows_the_earlier_columns_alone_appends_on(self, log: Log, open_log: Open) -> None:
        other = open_log()
        other.append("orders", {0: rows(1)}, producer="p", sequence=1)
        log.declare(TopicLog("orders", 1, ALTERED))
        log.append("orders", {0: later(2)})
        other.append("orders", {0: rows(3)}, producer="p", sequence=2)
        transaction = other.transaction()
        transaction.append("orders", {0: rows(4)})
        transaction.commit()
        log.append("orders", {0: rows(5)})
        log.append("orders", {0: later(6)})
        found = [row for found in log.read("orders", 0, 0) for row in found.batch.to_pylist()]
        assert [(row["id"], row["tax"]) for row in found] == [(1, 9), (2, 5), (3, 9), (4, 9), (5, 9), (6, 5)]
        assert [records.offset for records in log.read("orders", 0, 0)] == list(range(6))

    def test_whoever_knows_the_earlier_columns_alone_does_not_read_later_ones_as_those(
        self, log: Log, open_log: Open
    ) -> None:
        other = open_log()
        log.declare(TopicLog("orders", 1, ALTERED))
        log.append("orders", {0: later(1)})
        with pytest.raises(DeclarationChanged, match="altered"):
            list(other.read("orders", 0, 0))
        with pytest.raises(DeclarationChanged, match="altered"):
            list(log.read("orders", 0, 0, columns=SCHEMA))

    def test_an_altered_topic_is_not_turned_back(self, log: Log) -> None:
        log.declare(TopicLog("orders", 1, ALTERED))
        log.declare(TopicLog("orders", 1, SCHEMA))
        log.append("orders", {0: later(1)})
        (records,) = log.read("orders", 0, 0)
        assert records.batch.schema.names == ALTERED.names

    # -- appending and reading

    def test_what_was_appended_is_read_in_order_by_everyone(self, log: Log, open_log: Open) -> None:
        assert log.append("orders", {0: rows(1, 2)}) == Position.of("orders", {0: 2})
        assert log.append("orders", {0: rows(3)}) == Position.of("orders", {0: 3})
        assert ids(open_log()) == [1, 2, 3]

    def test_an_empty_topic_has_no_records(self, log: Log) -> None:
        assert ids(log) == []
        assert log.append("orders", {}) == Position.of("orders", {})
        assert log.cut(["orders"]).rows == 0

    def test_reading_starts_and_ends_at_any_offset_also_inside_a_batch(self, log: Log) -> None:
        log.append("orders", {0: rows(*range(10))})
        log.append("orders", {0: rows(*range(10, 20))})
        for start in range(21):
            for end in range(start, 21):
                assert ids(log, start=start, end=end) == list(range(start, end))

    def test_records_carry_their_offset_and_time_of_receipt(self, log: Log) -> None:
        log.append("orders", {0: rows(1, 2)})
        log.append("orders", {0: rows(3)})
        first, second = log.read("orders", 0, 0)
        assert (first.offset, first.end, second.offset, second.end) == (0, 2, 2, 3)
        assert 0 < first.received_at <= second.received_at
        assert first.sequence < second.sequence
        (inner,) = log.read("orders", 0, 1, 2)
        assert (inner.offset, inner.batch.column("id").to_pylist()) == (1, [2])

    def test_values_come_back_as_they_were(self, log: Log) -> None:
        batch = pa.RecordBatch.from_pylist(
            [{"_op": 2, "id": None, "name": "æ\0x"}, {"_op": 1, "id": -(2**63), "name": None}], schema=SCHEMA
        )
        log.append("orders", {0: batch})
        (records,) = log.read("orders", 0, 0)
        assert records.batch.equals(batch)

    def test_a_batch_over_several_partitions_is_in_all_of_them(self, log: Log) -> None:
        position = log.append("clicks", {0: rows(1), 2: rows(2, 3)})
        assert position == Position.of("clicks", {0: 1, 2: 2})
        assert [ids(log, "clicks", p) for p in range(3)] == [[1], [], [2, 3]]

    def test_a_large_batch_is_stored_whole(self, log: Log) -> None:
        text = "x" * 1000
        batch = pa.RecordBatch.from_arrays(
            [pa.array([0] * 40_000, pa.int8()), pa.array(range(40_000)), pa.array([text] * 40_000)], schema=SCHEMA
        )
        log.append("orders", {0: batch})
        assert ids(log) == list(range(40_000))

    def test_records_without_fsync_are_read_at_once_by_others(self, log: Log, open_log: Open) -> None:
        log.append("hints", {0: rows(1)})
        assert ids(open_log(), "hints") == [1]

    def test_an_unknown_topic_or_partition_is_an_error(self, log: Log) -> None:
        with pytest.raises(HeadwaterError, match="no topic called nothing"):
            log.append("nothing", {0: rows(1)})
        with pytest.raises(HeadwaterError, match="no partition 7"):
            log.append("orders", {7: rows(1)})

    def test_many_threads_lose_nothing_and_keep_each_ones_order(self, log: Log, open_log: Open) -> None:
        def produce(writer: int) -> None:
            own = open_log() if writer % 2 else log
            for number in range(30):
                own.append("orders", {0: rows(writer * 1000 + number)})

        threads = [threading.Thread(target=produce, args=(writer,)) for writer in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = ids(log)
        assert sorted(found) == sorted(w * 1000 + n for w in range(6) for n in range(30))
        for writer in range(6):
            mine = [i for i in found if i // 1000 == writer]
            assert mine == sorted(mine)

    def test_reading_can_start_at_a_time(self, log: Log) -> None:
        for number in range(60):
            log.append("orders", {0: rows(number, number)})
        found = list(log.read("orders", 0, 0))
        for records in found:
            first = next(other.offset for other in found if other.received_at >= records.received_at)
            assert log.offset_at("orders", 0, records.received_at) == first
            assert log.offset_at("orders", 0, records.received_at + 1) > records.offset
        assert log.offset_at("orders", 0, 0) == 0
        assert log.offset_at("orders", 0, found[-1].received_at + 1) == 120

    # -- idempotent producers

    def test_the_same_sequence_again_stores_once_and_returns_the_same_position(
        self, log: Log, open_log: Open
    ) -> None:
        first = log.append("orders", {0: rows(1)}, producer="p", sequence=7)
        log.append("orders", {0: rows(9)})
        assert log.append("orders", {0: rows(1)}, producer="p", sequence=7) == first
        assert open_log().append("orders", {0: rows(1)}, producer="p", sequence=7) == first
        assert ids(log) == [1, 9]

    def test_an_old_sequence_again_returns_its_position_however_long_ago_it_was(
        self, log: Log, open_log: Open
    ) -> None:
        positions = [log.append("orders", {0: rows(n)}, producer="p", sequence=n) for n in range(20)]
        other = open_log()
        assert [other.append("orders", {0: rows(n)}, producer="p", sequence=n) for n in range(20)] == positions
        assert ids(log) == list(range(20))

    def test_a_skipped_sequence_is_a_gap_and_stores_nothing(self, log: Log, open_log: Open) -> None:
        log.append("orders", {0: rows(1)}, producer="p", sequence=7)
        with pytest.raises(SequenceGap, match="sequence 9 after 7"):
            open_log().append("orders", {0: rows(3)}, producer="p", sequence=9)
        log.append("orders", {0: rows(2)}, producer="p", sequence=8)
        assert ids(log) == [1, 2]

    def test_a_producers_first_sequence_may_be_any_number(self, log: Log) -> None:
        log.append("orders", {0: rows(1)}, producer="p", sequence=1_000_000)
        log.append("orders", {0: rows(2)}, producer="q", sequence=0)
        log.append("orders", {0: rows(3)}, producer="r", sequence=-5)
        log.append("orders", {0: rows(4)}, producer="r", sequence=-4)
        assert ids(log) == [1, 2, 3, 4]

    def test_sequences_are_per_topic_over_all_its_partitions(self, log: Log, open_log: Open) -> None:
        log.append("clicks", {0: rows(1)}, producer="p", sequence=1)
        second = log.append("clicks", {1: rows(2), 2: rows(3)}, producer="p", sequence=2)
        log.append("orders", {0: rows(1)}, producer="p", sequence=50)
        log.append("clicks", {0: rows(4)}, producer="p", sequence=3)
        assert open_log().append("clicks", {1: rows(2), 2: rows(3)}, producer="p", sequence=2) == second
        with pytest.raises(SequenceGap):
            open_log().append("clicks", {2: rows(9)}, producer="p", sequence=5)
        assert [ids(log, "clicks", p) for p in range(3)] == [[1, 4], [2], [3]]

    def test_an_empty_batch_uses_its_sequence_up(self, log: Log, open_log: Open) -> None:
        first = log.append("orders", {}, producer="p", sequence=1)
        assert open_log().append("orders", {}, producer="p", sequence=1) == first
        log.append("orders", {0: rows(2)}, producer="p", sequence=2)
        assert ids(log) == [2]

    def test_a_producer_without_a_sequence_is_an_error(self, log: Log) -> None:
        with pytest.raises(HeadwaterError, match="producer and a sequence"):
            log.append("orders", {0: rows(1)}, producer="p")
        with pytest.raises(HeadwaterError, match="producer and a sequence"):
            log.append("orders", {0: rows(1)}, sequence=1)
        for producer, sequence in (("", 1), ("p" * 201, 1), ("p", 2**63), ("p", True), ("p", 1.0)):
            with pytest.raises(HeadwaterError, match=r"producer is|sequence is"):
                log.append("orders", {0: rows(1)}, producer=producer, sequence=sequence)  # type: ignore[arg-type]
        assert ids(log) == []

    def test_what_is_set_aside_is_stored_once_with_the_batch(self, log: Log, open_log: Open) -> None:
        for opened in (log, open_log()):
            opened.append("orders", {0: rows(1)}, producer="p", sequence=1, aside=("letters", {0: rows(66)}))
        for opened in (log, open_log()):
            opened.append("orders", {}, producer="p", sequence=2, aside=("letters", {0: rows(67)}))
        assert ids(log) == [1]
        assert ids(log, "letters") == [66, 67]

    # -- transactions

    def test_a_transaction_is_seen_whole_or_not_at_all(self, log: Log, open_log: Open) -> None:
        other = open_log()
        transaction = log.transaction()
        transaction.append("orders", {0: rows(1)})
        transaction.append("clicks", {0: rows(2), 2: rows(3)})
        transaction.append("orders", {0: rows(4)})
        assert ids(other) == []
        position = transaction.commit()
        assert position == Position.of("orders", {0: 2}) | Position.of("clicks", {0: 1, 2: 1})
        assert (ids(other), ids(other, "clicks"), ids(other, "clicks", 2)) == ([1, 4], [2], [3])

    def test_an_aborted_transaction_leaves_nothing(self, log: Log) -> None:
        transaction = log.transaction()
        transaction.append("orders", {0: rows(1)})
        transaction.abort()
        transaction.abort()
        with pytest.raises(HeadwaterError, match="has ended"):
            transaction.append("orders", {0: rows(1)})
        with pytest.raises(HeadwaterError, match="has ended"):
            transaction.commit()
        assert ids(log) == []

    def test_a_transaction_that_was_never_ended_blocks_nobody(self, log: Log, open_log: Open) -> None:
        forgotten = log.transaction()
        forgotten.append("orders", {0: rows(1)})
        other = open_log()
        other.append("orders", {0: rows(2)})
        assert ids(log) == [2]
        assert other.cut(["orders"]).rows == 1

    def test_a_transaction_may_be_larger_than_what_is_kept_in_memory(self, log: Log) -> None:
        big = pa.RecordBatch.from_arrays(
            [pa.array([0] * 9_000, pa.int8()), pa.array(range(9_000)), pa.array(["y" * 1000] * 9_000)],
            schema=SCHEMA,
        )
        transaction = log.transaction()
        for _ in range(9):
            transaction.append("orders", {0: big})
            transaction.append("clicks", {1: rows(5)})
        transaction.commit()
        assert ids(log) == list(range(9_000)) * 9
        assert ids(log, "clicks", 1) == [5] * 9

    # -- cuts

    def test_a_cut_has_everything_that_was_acknowledged(self, log: Log, open_log: Open) -> None:
        log.append("orders", {0: rows(1, 2)})
        log.append("clicks", {1: rows(3)})
        log.append("hints", {0: rows(4)})
        cut = open_log().cut(["orders", "clicks", "hints"])
        assert cut.rows == 4
        assert ids_in(log, cut) == {("orders", 0): [1, 2], ("clicks", 1): [3], ("hints", 0): [4]}

    def test_cuts_follow_each_other_without_gap_or_overlap(self, log: Log) -> None:
        chance = random.Random(7)
        written = 0
        seen: list[int] = []
        cut: Cut | None = None
        for _ in range(40):
            for _ in range(chance.randrange(3)):
                size = chance.randrange(1, 4)
                log.append("clicks", {chance.randrange(3): rows(*range(written, written + size))})
                written += size
            after, cut = cut, log.cut(["clicks"], after=cut, target=chance.choice([1, 3, None]))
            found = [i for part in ids_in(log, cut, after).values() for i in part]
            assert len(found) == cut.rows
            seen += found
        last = log.cut(["clicks"], after=cut)
        seen += [i for part in ids_in(log, last, cut).values() for i in part]
        assert sorted(seen) == list(range(written))

    def test_a_cut_with_a_target_takes_whole_batches_in_the_order_of_their_appends(self, log: Log) -> None:
        for number in range(10):
            log.append("clicks", {number % 3: rows(number, number)})
        cut: Cut | None = None
        taken = []
        for _ in range(5):
            after, cut = cut, log.cut(["clicks"], after=cut, target=5)
            assert cut.rows == 4
            taken.append(sorted({i for part in ids_in(log, cut, after).values() for i in part}))
        assert taken == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
        assert log.cut(["clicks"], after=cut, target=5).rows == 0

    def test_a_batch_larger_than_the_target_is_still_taken(self, log: Log) -> None:
        log.append("orders", {0: rows(*range(50))})
        log.append("orders", {0: rows(50)})
        cut = log.cut(["orders"], target=1)
        assert cut.rows == 50
        assert log.cut(["orders"], after=cut, target=1).rows == 1

    def test_a_cut_never_splits_a_transaction_or_a_batch_over_partitions(self, log: Log) -> None:
        for number in range(8):
            transaction = log.transaction()
            transaction.append("orders", {0: rows(number)})
            transaction.append("clicks", {number % 3: rows(number), (number + 1) % 3: rows(number)})
            transaction.commit()
            log.append("clicks", {0: rows(100 + number), 1: rows(100 + number)})
        cut: Cut | None = None
        for _ in range(16):
            after, cut = cut, log.cut(["orders", "clicks"], after=cut, target=1)
            found = sorted(i for part in ids_in(log, cut, after).values() for i in part)
            assert cut.rows == len(found)
            assert len(set(found)) == 1
            assert len(found) == (3 if found[0] < 100 else 2)

    def test_a_cut_survives_being_written_down(self, log: Log) -> None:
        log.append("clicks", {0: rows(1), 2: rows(2)})
        cut = log.cut(["clicks", "orders"])
        assert Cut.from_dict(cut.as_dict()) == cut

    def test_cuts_are_causal_under_concurrent_appends(self, log: Log, open_log: Open) -> None:
        """Each writer appends n to partition a, is acknowledged, then n to partition b of the other topic."""
        stop = threading.Event()
        written = [0]

        def produce() -> None:
            own = open_log()
            while not stop.is_set():
                number = written[0]
                own.append("hints", {0: rows(number)})
                own.append("clicks", {number % 3: rows(number)})
                own.append("orders", {0: rows(number)})
                written[0] += 1

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            cut: Cut | None = None
            for _ in range(60):
                cut = log.cut(["orders", "clicks", "hints"], after=cut)
                clicks = sum(cut.end("clicks", p) for p in range(3))
                assert cut.end("hints", 0) >= clicks >= cut.end("orders", 0)
        finally:
            stop.set()
            thread.join()

    # -- slices

    def test_slices_have_what_is_between_two_cuts_and_any_process_can_read_them(self, log: Log) -> None:
        log.append("clicks", {0: rows(1), 1: rows(2, 3)})
        first = log.cut(["clicks"])
        log.append("clicks", {1: rows(4), 2: rows(5, 6)})
        log.append("clicks", {1: rows(7)})
        second = log.cut(["clicks"])
        log.append("clicks", {1: rows(8)})
        slices = log.slices("clicks", after=first, until=second)
        before = log.slices("clicks", after=Cut(), until=first)
        assert log.slices("clicks", after=second, until=second) == []
        log.close()
        assert read_elsewhere(before) == [[0, 0, 0, [1]], [1, 1, 0, [2, 3]]]
        assert read_elsewhere(slices) == [[1, 1, 2, [4]], [1, 1, 3, [7]], [2, 2, 0, [5, 6]]]

    def test_slices_have_nothing_of_a_transaction_that_was_not_committed(self, log: Log, open_log: Open) -> None:
        log.append("orders", {0: rows(1)})
        for end in ("commit", "abort"):
            transaction = log.transaction()
            transaction.append("orders", {0: rows(2)})
            getattr(transaction, end)()
        log.append("orders", {0: rows(3)})
        slices = open_log().slices("orders", after=Cut(), until=log.cut(["orders"]))
        assert [i for each in slices for records in each.read() for i in records.batch.to_pydict()["id"]] == [
            1,
            2,
            3,
        ]

    def test_slices_of_much_are_several_each_of_a_size_that_it_tells(self, log: Log) -> None:
        text = pa.array(["z" * 1000] * 10_000)
        for number in range(4):
            numbers = pa.array(range(number * 10_000, (number + 1) * 10_000))
            batch = pa.RecordBatch.from_arrays([pa.array([0] * 10_000, pa.int8()), numbers, text], schema=SCHEMA)
            log.append("orders", {0: batch})
        slices = log.slices("orders", after=Cut(), until=log.cut(["orders"]))
        found = [[i for records in each.read() for i in records.batch.to_pydict()["id"]] for each in slices]
        assert [i for part in found for i in part] == list(range(40_000))
        assert len(slices) > 1
        for each, part in zip(slices, found, strict=True):
            assert each.bytes == pytest.approx(1000 * len(part), rel=0.1)

    # -- waiting and keeping house

    def test_no_lock_stays_taken_once_what_took_it_is_done(self, log: Log) -> None:
        log.append("clicks", {1: rows(1)})
        log.cut(["clicks"])
        for what, lock in log.locks():
            assert what
            assert lock.acquire(timeout=0)
            lock.release()

    def test_a_waiting_reader_is_woken_by_another_ones_append(self, log: Log, open_log: Open) -> None:
        news = log.watch(["orders", "clicks"])
        timer = threading.Timer(0.05, lambda: open_log().append("clicks", {2: rows(1)}))
        timer.start()
        assert news.wait(20) is True
        timer.join()
        news.close()
        assert ids(log, "clicks", 2) == [1]

    def test_a_reader_without_news_waits_until_its_timeout(self, log: Log) -> None:
        assert log.watch(["orders"]).wait(0.01) is False

    def test_news_that_came_before_the_wait_is_not_missed(self, log: Log, open_log: Open) -> None:
        news = log.watch(["orders"])
        open_log().append("orders", {0: rows(1)})
        assert news.wait(20) is True

    def test_trimming_keeps_what_comes_after_and_is_never_undone(self, log: Log, open_log: Open) -> None:
        for number in range(200):
            log.append("orders", {0: rows(number)}, producer="p", sequence=number)
        first = log.trim("orders", 0, 150)
        assert 0 < first <= 150
        other = open_log()
        assert other.start("orders", 0) == log.start("orders", 0) == first
        assert ids(other) == list(range(first, 200))
        assert log.trim("orders", 0, 10) == first
        log.verify("orders")

    def test_producers_are_remembered_over_trimming(self, log: Log, open_log: Open) -> None:
        first = log.append("orders", {0: rows(-1)}, producer="old", sequence=4)
        for number in range(200):
            log.append("orders", {0: rows(number)}, producer="p", sequence=number)
        assert log.trim("orders", 0, 190) > 1
        other = open_log()
        assert other.append("orders", {0: rows(-1)}, producer="old", sequence=4) == first
        with pytest.raises(SequenceGap):
            other.append("orders", {0: rows(-1)}, producer="old", sequence=6)
        forgotten = other.append("orders", {0: rows(3)}, producer="p", sequence=3)
        assert 4 <= forgotten.in_topic("orders")[0] <= 200
        assert ids(log)[-1] == 199

    def test_a_reader_goes_on_behind_what_is_trimmed_under_it(self, log: Log, open_log: Open) -> None:
        for number in range(200):
            log.append("orders", {0: rows(number)})
        other = open_log()
        reading = other.read("orders", 0, 0)
        seen = [next(reading).offset]
        first = log.trim("orders", 0, 150)
        seen += [records.offset for records in reading]
        assert seen == sorted(set(seen))
        assert set(seen) >= set(range(first, 200))
        assert ids(other) == list(range(first, 200))

    def test_a_reader_that_lost_the_segment_it_reads_goes_on_behind_it(self, log: Log, open_log: Open) -> None:
        for number in range(200):
            log.append("orders", {0: rows(number)})
        other = open_log()
        reading = other.read("orders", 0, 0)
        assert next(reading).offset == 0
        first = log.trim("orders", 0, 150)
        other.size("orders")  # lists the folder anew
        assert [records.offset for records in reading] == list(range(first, 200))

    def test_a_reader_that_has_trimmed_segments_open_goes_on(self, log: Log, open_log: Open) -> None:
        for number in range(200):
            log.append("orders", {0: rows(number)})
        other = open_log()
        other.size("orders")  # opens all segments
        reading = other.read("orders", 0, 0)
        seen = [next(reading).offset]
        first = log.trim("orders", 0, 150)
        seen += [records.offset for records in reading]
        assert seen == sorted(set(seen))
        assert set(seen) >= set(range(first, 200))

    def test_an_offset_is_found_by_time_though_others_trimmed(self, log: Log, open_log: Open) -> None:
        for number in range(200):
            log.append("orders", {0: rows(number)})
        other = open_log()
        next(other.read("orders", 0, 0))
        first = log.trim("orders", 0, 150)
        assert other.offset_at("orders", 0, 0) == first

    def test_size_counts_records_and_bytes(self, log: Log) -> None:
        before = log.size("clicks")
        log.append("clicks", {0: rows(1, 2), 1: rows(3)})
        after = log.size("clicks")
        assert (before.records, after.records) == (0, 3)
        assert after.bytes > before.bytes

    def test_a_dropped_topic_is_gone_and_its_writers_are_told(self, log: Log, open_log: Open) -> None:
        other = open_log()
        other.append("orders", {0: rows(1)})
        log.drop("orders")
        with pytest.raises(HeadwaterError, match="no topic called orders"):
            ids(log)
        with pytest.raises(HeadwaterError, match="dropped"):
            other.append("orders", {0: rows(2)})

    def test_whatever_is_asked_of_a_topic_that_another_dropped_says_so(self, log: Log, open_log: Open) -> None:
        other = open_log()
        other.append("orders", {0: rows(1)})
        reading = other.read("orders", 0, 0)
        cut = other.cut(["orders"])
        transaction = other.transaction()
        transaction.append("orders", {0: rows(2)})
        log.drop("orders")
        asked: list[Callable[[], object]] = [
            lambda: other.append("orders", {0: rows(2)}),
            lambda: other.append("orders", {0: rows(2)}, producer="p", sequence=1),
            transaction.commit,
            lambda: other.cut(["clicks", "orders"]),
            lambda: list(reading),
            lambda: list(other.read("orders", 0, 0)),
            lambda: other.slices("orders", after=Cut(), until=cut),
            lambda: other.offset_at("orders", 0, 0),
            lambda: other.trim("orders", 0, 0),
            lambda: other.size("orders"),
            lambda: other.verify("orders"),
        ]
        for ask in asked:
            with pytest.raises(TopicDropped, match="orders: the topic was dropped"):
                ask()
        assert other.append("clicks", {0: rows(1)}).ends

    def test_offsets_increase_over_everything(self, log: Log) -> None:
        for number in range(30):
            log.append("orders", {0: rows(*range(number % 4))})
        found = [(records.offset, records.end) for records in log.read("orders", 0, 0)]
        assert all(first[1] <= second[0] for first, second in pairwise(found))
