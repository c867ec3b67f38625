"""Reading views, tables, streams and logs at one version."""

from __future__ import annotations

import errno
import os
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import headwater as hw
from headwater.catalog.relation import Relation
from headwater.lock import Lock
from headwater.read.contents import Contents
from headwater.read.version import Version
from headwater.state import pins
from headwater.state.pins import Pins
from tests.inside import log_of
from tests.read.hand import Hand, Meddling, rows_of, summed


@pytest.fixture
def orders(pipeline: hw.Pipeline) -> hw.Table:
    return pipeline.table("orders", "id BIGINT, name STRING", key="id", partitions=2)


@pytest.fixture
def clicks(pipeline: hw.Pipeline) -> hw.Stream:
    return pipeline.stream("clicks", "url STRING NOT NULL, n INT", partitions=2, on_error="dead_letter")


# -- what is read


def test_a_table_is_read_as_the_newest_tick_has_it_and_no_later(hand: Hand, orders: hw.Table) -> None:
    orders.upsert([{"id": 1, "name": "ada"}, {"id": 2, "name": "bob"}])
    hand.tick()
    orders.upsert([{"id": 1, "name": "eve"}])
    orders.delete([2])
    assert rows_of(hand.reader.read("orders")) == Counter([(1, "ada"), (2, "bob")])
    hand.tick()
    assert rows_of(hand.reader.read("orders")) == Counter([(1, "eve")])


def test_a_row_that_a_view_has_three_times_is_read_three_times(hand: Hand) -> None:
    hand.view("names", "name STRING")
    hand.tick(names=[("ada",), ("ada",), ("bob",)])
    hand.tick(names=[("ada",), ("ada",), ("ada",)])
    assert hand.reader.read("names").column("name").to_pylist() == ["ada"] * 3


def test_columns_and_types_are_those_declared(hand: Hand) -> None:
    ddl = "at TIMESTAMP NOT NULL, tags ARRAY<STRING>, price DECIMAL(12,2), t TIME(6)"
    hand.view("prices", ddl)
    empty = hand.reader.read("prices").schema
    hand.tick(prices=[(0, ("a", "b"), None, None)])
    table = hand.reader.read("prices")
    assert table.schema == empty
    assert table.schema.field("at") == pa.field("at", pa.timestamp("us", "UTC"), nullable=False)
    assert table.schema.field("price").type == pa.decimal128(12, 2)
    assert table.column("tags").to_pylist() == [["a", "b"]]


def test_a_stream_gives_the_users_columns_up_to_the_cut(hand: Hand, clicks: hw.Stream) -> None:
    clicks.append([{"url": "/a", "n": 1}])
    clicks.append([{"url": "/a", "n": 1}])
    hand.tick()
    clicks.append([{"url": "/later", "n": 2}])
    table = hand.reader.read("clicks")
    assert table.schema == clicks.schema.arrow
    assert rows_of(table) == Counter({("/a", 1): 2})


def test_a_log_gives_every_record_as_it_was_recorded(hand: Hand, orders: hw.Table) -> None:
    orders.upsert([{"id": 1, "name": "ada"}])
    orders.upsert([{"id": 1, "name": "eve"}])
    orders.delete([1])
    hand.tick()
    orders.upsert([{"id": 9, "name": "later"}])
    assert rows_of(hand.reader.read("orders")) == Counter()
    table = hand.reader.read("orders__log")
    assert table.schema == orders.log_schema()
    rows = [(row["_op"], row["_offset"], row["id"], row["name"]) for row in table.to_pylist()]
    assert rows == [("upsert", 0, 1, "ada"), ("upsert", 1, 1, "eve"), ("delete", 2, 1, None)]


def test_dead_letters_are_a_stream_with_a_log_of_its_own(hand: Hand, clicks: hw.Stream) -> None:
    clicks.append([{"url": "/a", "n": "many"}])
    hand.tick()
    letter = hand.reader.read("clicks__dead_letters").to_pylist()
    assert [(row["column"], row["origin"]) for row in letter] == [("n", "append")]
    assert hand.reader.read("clicks__dead_letters__log").column("_op").to_pylist() == ["append"]


def test_a_stream_whose_beginning_was_trimmed_begins_where_its_log_does(
    pipeline: hw.Pipeline, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_SEGMENT_BYTES", "1")
    with hw.Pipeline("small", pipeline.path + "-small") as other:
        small = Hand(other)
        ticks = other.stream("numbers", "n INT")
        for n in range(4):
            ticks.append([{"n": n}])
        small.tick()
        first = log_of(other).trim("numbers", 0, before=2)
        assert first > 0
        assert small.reader.read("numbers").column("n").to_pylist() == list(range(first, 4))


# -- names


@pytest.mark.parametrize("name", ["ORDERS", "Orders__Log", "CLICKS", "Totals"])
def test_names_are_found_in_any_case(hand: Hand, orders: hw.Table, clicks: hw.Stream, name: str) -> None:
    hand.view("totals", "n BIGINT")
    hand.tick(totals=[])
    assert hand.reader.read(name).num_rows == 0


@pytest.mark.parametrize("name", ["order", "totals__log", "__log", "orders__dead_letters", "", 7, None])
def test_an_unknown_name_is_an_error_that_lists_those_there_are(hand: Hand, orders: hw.Table, name: Any) -> None:
    hand.view("totals", "n BIGINT")
    with pytest.raises(hw.HeadwaterError, match="orders, totals"):
        hand.reader.read(name)


# -- versions


def test_before_the_first_tick_everything_is_empty(hand: Hand, orders: hw.Table, clicks: hw.Stream) -> None:
    hand.view("totals", "n BIGINT")
    orders.upsert([{"id": 1, "name": "ada"}])
    for name in ("orders", "orders__log", "clicks", "totals"):
        table = hand.reader.read(name)
        assert table.num_rows == 0
        assert table.num_columns > 0


def test_every_kept_version_is_read_as_it_was(hand: Hand, orders: hw.Table, clicks: hw.Stream) -> None:
    for n in range(5):
        orders.upsert([{"id": n % 3, "name": str(n)}])
        clicks.append([{"url": "/", "n": n}])
        hand.tick()
    for n in range(1, 6):
        assert rows_of(hand.reader.read("orders", as_of=n)) == hand.contents["orders"][n]
        assert sorted(hand.reader.read("clicks", as_of=n).column("n").to_pylist()) == list(range(n))
        assert hand.reader.read("orders__log", as_of=n).num_rows == n


@pytest.mark.parametrize("as_of", [0, 3, -1, True, "1", 1.0])
def test_a_tick_that_never_was_is_an_error(hand: Hand, orders: hw.Table, as_of: Any) -> None:
    hand.tick()
    hand.tick()
    with pytest.raises(hw.HeadwaterError, match="no tick") as refused:
        hand.reader.read("orders", as_of=as_of)
    assert not isinstance(refused.value, hw.VersionExpired)


def test_a_version_that_is_gone_is_an_error_that_names_the_oldest(hand: Hand, orders: hw.Table) -> None:
    for _ in range(6):
        hand.tick()
    hand.keep(3, 5)
    for gone in (1, 2, 4):
        with pytest.raises(hw.VersionExpired) as expired:
            hand.reader.read("orders", as_of=gone)
        assert expired.value.oldest == 3
    assert hand.reader.read("orders", as_of=5).num_rows == 0


def test_a_view_has_no_versions_before_it_was_filled(hand: Hand, orders: hw.Table) -> None:
    hand.tick()
    hand.view("totals", "n BIGINT")
    with pytest.raises(hw.NotReached, match="filled") as early:
        hand.reader.read("totals")
    assert early.value.retry
    hand.tick()
    hand.tick(totals=[(1,)])
    hand.tick()
    assert rows_of(hand.reader.read("totals", as_of=3)) == Counter([(1,)])
    with pytest.raises(hw.VersionExpired) as expired:
        hand.reader.read("totals", as_of=2)
    assert expired.value.oldest == 3
    hand.keep(1, 4)
    with pytest.raises(hw.VersionExpired) as expired:
        hand.reader.read("totals", as_of=1)
    assert expired.value.oldest == 4


def test_a_version_swept_before_it_could_be_pinned_is_given_up_for_the_newest(hand: Hand, orders: hw.Table) -> None:
    orders.upsert([{"id": 1, "name": "ada"}])
    hand.tick()

    def sweep() -> None:
        orders.upsert([{"id": 1, "name": "eve"}])
        hand.tick()
        hand.keep(2)

    reader = hand.open_reader(Meddling(hand.store, "ticks", sweep))
    assert rows_of(reader.read("orders")) == Counter([(1, "eve")])


def test_a_manifest_that_was_forgotten_while_it_was_read_is_not_believed(hand: Hand, orders: hw.Table) -> None:
    orders.upsert([{"id": 1, "name": "ada"}])
    hand.tick()
    orders.upsert([{"id": 1, "name": "eve"}])
    hand.tick()
    hand.tick()
    reader = hand.open_reader(Meddling(hand.store, "tick", lambda: hand.keep(3)))
    with pytest.raises(hw.VersionExpired) as expired:
        reader.read("orders", as_of=1)
    assert expired.value.oldest == 3


def test_a_version_swept_in_spite_of_its_pin_is_given_up_for_the_newest(
    hand: Hand, orders: hw.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.upsert([{"id": 1, "name": "ada"}])
    hand.tick()
    as_it_is = Contents.rows

    def swept_first(contents: Contents, relation: Relation, version: Version) -> pa.Table:
        if version.number == 1:
            hand.rewrite()
            hand.keep(hand.tick())
        return as_it_is(contents, relation, version)

    monkeypatch.setattr(Contents, "rows", swept_first)
    assert rows_of(hand.reader.read("orders")) == Counter([(1, "ada")])
    assert hand.store.ticks()[0][0] == 2


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_cannot_be_written_can_be_read(
    hand: Hand, orders: hw.Table, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    orders.upsert([{"id": 1, "name": "ada"}])
    hand.tick()
    orders.upsert([{"id": 2, "name": "eve"}])
    hand.tick()
    following = hand.reader.changes("orders", follow=True)
    assert next(following).num_rows == 1
    refuse_new_files(monkeypatch, code)
    both = Counter([(1, "ada"), (2, "eve")])
    assert rows_of(hand.reader.read("orders")) == both
    assert rows_of(hand.reader.read("orders", as_of=1)) == Counter([(1, "ada")])
    assert hand.reader.lookup("orders", 2).num_rows == 1
    assert hand.reader.query("SELECT count(*) FROM orders JOIN orders__log USING (id)").num_rows == 1
    assert summed(list(hand.reader.changes("orders"))) == both
    assert next(following).num_rows == 1
    following.close()
    assert not list((hand.state / "pins").iterdir())


def refuse_new_files(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Let pins be made by a disk that is full, which still makes empty files, or may not be written at all."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(pins, "_write", refuse)
    if code == errno.EROFS:
        monkeypatch.setattr(os, "makedirs", refuse)


def test_without_a_pin_a_version_that_is_swept_is_given_up_for_the_newest(
    hand: Hand, orders: hw.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.upsert([{"id": 1, "name": "ada"}])
    hand.tick()
    as_it_is = Contents.rows

    def swept_first(contents: Contents, relation: Relation, version: Version) -> pa.Table:
        if version.number == 1:
            assert not Pins(str(hand.state)).held()
            orders.upsert([{"id": 1, "name": "eve"}])
            hand.rewrite()
            hand.keep(hand.tick())
        return as_it_is(contents, relation, version)

    monkeypatch.setattr(Contents, "rows", swept_first)
    monkeypatch.setattr(pins, "_write", mock.Mock(side_effect=OSError(errno.ENOSPC, "full")))
    assert rows_of(hand.reader.read("orders")) == Counter([(1, "eve")])
    with pytest.raises(hw.VersionExpired):
        hand.reader.read("orders", as_of=1)


def test_the_version_is_pinned_while_it_is_read_and_no_longer(hand: Hand, orders: hw.Table) -> None:
    hand.tick()
    pins = Pins(str(hand.state))
    seen: list[set[int]] = []
    reader = hand.open_reader(Meddling(hand.store, "arrangements", lambda: seen.append(pins.held())))
    reader.read("orders")
    assert seen == [{1}]
    assert pins.held() == set()


def test_rows_stay_valid_after_their_files_were_swept(hand: Hand, orders: hw.Table) -> None:
    orders.upsert([{"id": n, "name": str(n)} for n in range(1000)])
    hand.tick()
    table = hand.reader.read("orders")
    for path in hand.state.glob("*.runs"):
        path.unlink()
    assert sum(table.column("id").to_pylist()) == 499_500


def test_a_file_that_is_missing_though_its_version_is_kept_is_told(hand: Hand, orders: hw.Table) -> None:
    orders.upsert([{"id": 1, "name": "ada"}])
    hand.tick()
    for path in hand.state.glob("*.runs"):
        path.unlink()
    with pytest.raises(hw.Unavailable, match="missing"):
        hand.reader.read("orders")


# -- read your writes


def test_a_read_waits_until_a_tick_has_the_position(hand: Hand, orders: hw.Table) -> None:
    earlier = orders.upsert([{"id": 1, "name": "ada"}])
    hand.tick()
    position = orders.upsert([{"id": 2, "name": "bob"}])
    assert set(earlier.in_topic("orders")) != set(position.in_topic("orders"))
    for after in (position, str(position), earlier | position):
        with pytest.raises(hw.NotReached) as timed_out:
            hand.reader.read("orders", after=after, timeout=0)
        assert timed_out.value.retry
    waiting = threading.Timer(0.1, hand.tick)
    waiting.start()
    assert hand.reader.read("orders", after=position, timeout=20).num_rows == 2
    assert hand.reader.lookup("orders", 2, after=position).num_rows == 1
    waiting.join()


def test_a_read_that_waits_for_a_position_waits_for_the_view_to_be_filled_too(hand: Hand, orders: hw.Table) -> None:
    position = orders.upsert([{"id": 1, "name": "ada"}])
    hand.tick()
    hand.view("totals", "n BIGINT")
    waiting = threading.Timer(0.1, lambda: hand.tick(totals=[(1,)]))
    waiting.start()
    assert hand.reader.read("totals", after=position, timeout=20).num_rows == 1
    waiting.join()


def test_a_wait_that_timed_out_says_whether_anything_drives(hand: Hand, orders: hw.Table) -> None:
    position = orders.upsert([{"id": 1, "name": "ada"}])
    with pytest.raises(hw.NotReached) as alone:
        hand.reader.read("orders", after=position, timeout=0.05)
    assert "no process drives" in alone.value.hint
    lock = Lock(f"{hand.pipeline.path}/lease.{hand.store.lease().epoch}")
    with lock, pytest.raises(hw.NotReached) as driven:
        hand.reader.read("orders", after=position, timeout=0.05)
    assert "process 4711 drives" in driven.value.hint
    lock.close()


def test_a_tick_that_lacks_the_position_is_refused(hand: Hand, orders: hw.Table) -> None:
    hand.tick()
    position = orders.upsert([{"id": 1, "name": "ada"}])
    hand.tick()
    assert hand.reader.read("orders", as_of=2, after=position).num_rows == 1
    with pytest.raises(hw.NotReached) as lacking:
        hand.reader.read("orders", as_of=1, after=position)
    assert not lacking.value.retry


@pytest.mark.parametrize("after", ["nothing@0:1", "orders@2:1", "totals@0:1", "gibberish", 5])
def test_a_position_that_can_never_be_reached_is_refused_at_once(hand: Hand, orders: hw.Table, after: Any) -> None:
    hand.view("totals", "n BIGINT")
    with pytest.raises(hw.HeadwaterError) as refused:
        hand.reader.read("orders", after=after)
    assert not isinstance(refused.value, hw.NotReached)


@pytest.mark.parametrize("timeout", ["1", None, True])
def test_a_timeout_is_a_number_of_seconds(hand: Hand, orders: hw.Table, timeout: Any) -> None:
    position = orders.upsert([{"id": 1, "name": "ada"}])
    with pytest.raises(hw.HeadwaterError, match="timeout"):
        hand.reader.read("orders", after=position, timeout=timeout)


# -- life


def test_many_threads_read_while_versions_come_and_go(hand: Hand, orders: hw.Table) -> None:
    hand.tick()
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                rows = rows_of(hand.reader.read("orders"))
                if len({name for _, name in rows}) > 1 or len(rows) not in {0, 20}:
                    wrong.append(rows)
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in range(12):
        orders.upsert([{"id": each, "name": str(n)} for each in range(20)])
        hand.keep(hand.tick(), *Pins(str(hand.state)).held())
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_closed_pipeline_is_told(hand: Hand, orders: hw.Table) -> None:
    hand.tick()
    hand.pipeline.close()
    calls: list[Callable[[], object]] = [
        lambda: hand.reader.read("orders"),
        lambda: hand.reader.lookup("orders", 1),
        lambda: hand.reader.changes("orders"),
        lambda: hand.reader.query("SELECT 1"),
    ]
    for call in calls:
        with pytest.raises(hw.HeadwaterError, match="closed"):
            call()
