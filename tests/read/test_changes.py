"""What each tick changed."""

from __future__ import annotations

import gc
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater import crashpoint
from headwater.state.pins import Pins
from tests.inside import log_of
from tests.read.hand import Hand, Meddling, rows_of, summed

NAMES = ("orders", "bag", "clicks", "orders__log", "totals")


def busy(hand: Hand, ticks: int, seed: int = 1) -> None:
    """Ticks in which a bit of everything happens, or nothing."""
    chance = random.Random(seed)
    pipeline = hand.pipeline
    orders = pipeline.table("orders", "id BIGINT, n INT", key="id", partitions=3)
    bag = pipeline.table("bag", "word STRING")
    clicks = pipeline.stream("clicks", "n INT", partitions=2)
    hand.view("totals", "n INT, tags ARRAY<STRING>")
    totals: list[tuple[Any, ...]] = []
    for _ in range(ticks):
        if chance.random() < 0.7:
            orders.upsert([{"id": chance.randrange(8), "n": chance.randrange(3)} for _ in range(4)])
            orders.delete([chance.randrange(8)])
        if chance.random() < 0.7:
            bag.append([{"word": chance.choice("abc")} for _ in range(3)])
            bag.delete([{"word": chance.choice("abc")}])
            clicks.append([{"n": chance.randrange(3)} for _ in range(3)])
        if chance.random() < 0.7:
            totals = [(chance.randrange(3), ("x",) * chance.randrange(2)) for _ in range(5)]
        hand.tick(totals=totals)


@pytest.mark.parametrize("seed", range(3))
def test_the_changes_up_to_every_tick_add_up_to_what_is_read_at_it(hand: Hand, seed: int) -> None:
    busy(hand, 12, seed)
    for name in NAMES:
        changes = list(hand.reader.changes(name))
        assert [table.column("_tick").unique().to_pylist() for table in changes] == [
            [n] for n in sorted({table.column("_tick")[0].as_py() for table in changes})
        ]
        for n in range(1, 13):
            assert summed(changes, until=n) == rows_of(hand.reader.read(name, as_of=n)), (name, n)


@pytest.mark.parametrize("name", NAMES)
def test_the_changes_since_a_tick_lead_from_it_to_the_newest(hand: Hand, name: str) -> None:
    busy(hand, 8)
    newest = rows_of(hand.reader.read(name))
    for n in range(1, 9):
        later = list(hand.reader.changes(name, since=n))
        assert all(table.column("_tick")[0].as_py() > n for table in later)
        total = rows_of(hand.reader.read(name, as_of=n))
        for table in later:
            for _, weight, *values in (row.values() for row in table.to_pylist()):
                total[tuple(tuple(v) if isinstance(v, list) else v for v in values)] += weight
        assert +total == newest


@pytest.mark.parametrize("name", NAMES)
def test_the_oldest_kept_version_comes_first_as_insertions(hand: Hand, name: str) -> None:
    busy(hand, 10)
    hand.keep(4, 7, 9)
    changes = list(hand.reader.changes(name))
    assert changes[0].column("_tick")[0].as_py() == 4
    assert min(changes[0].column("_weight").to_pylist()) > 0
    for n in (4, 7, 9, 10):
        assert summed(changes, until=n) == rows_of(hand.reader.read(name, as_of=n)), n


def test_the_tick_and_the_weight_stand_before_the_columns(hand: Hand) -> None:
    busy(hand, 3)
    for name in NAMES:
        for table in hand.reader.changes(name):
            assert table.schema.names == ["_tick", "_weight", *hand.reader.read(name).schema.names]
            assert table.schema.types[:2] == [pa.int64(), pa.int64()]
            assert pa.schema(list(table.schema)[2:]) == hand.reader.read(name).schema


def test_a_tick_that_changed_nothing_is_left_out(hand: Hand) -> None:
    hand.view("totals", "n INT")
    hand.tick(totals=[])
    hand.tick(totals=[(1,)])
    hand.tick(totals=[(1,)])
    hand.tick(totals=[])
    changes = [table.to_pylist() for table in hand.reader.changes("totals")]
    assert changes == [[{"_tick": 2, "_weight": 1, "n": 1}], [{"_tick": 4, "_weight": -1, "n": 1}]]


def test_an_intermediate_tick_that_is_not_kept_still_has_its_changes(hand: Hand) -> None:
    hand.view("totals", "n INT")
    for n in range(1, 7):
        hand.tick(totals=[(n,)])
    hand.keep(2, 5)
    assert [table.column("_tick")[0].as_py() for table in hand.reader.changes("totals", since=3)] == [4, 5, 6]


def test_records_between_ticks_that_are_not_kept_belong_to_the_next_that_is(hand: Hand) -> None:
    clicks = hand.pipeline.stream("clicks", "n INT")
    for n in range(1, 7):
        clicks.append([{"n": n}])
        hand.tick()
    hand.keep(2, 5)
    changes = [(t.column("_tick").to_pylist(), t.column("n").to_pylist()) for t in hand.reader.changes("clicks")]
    assert changes == [([2, 2], [1, 2]), ([5, 5, 5], [3, 4, 5]), ([6], [6])]
    with pytest.raises(hw.VersionExpired):
        hand.reader.changes("clicks", since=3)


@pytest.mark.parametrize("name", NAMES)
def test_changes_that_are_gone_are_an_error_that_names_the_oldest_version(hand: Hand, name: str) -> None:
    busy(hand, 8)
    hand.keep(4)
    for since in (1, 3):
        with pytest.raises(hw.VersionExpired) as expired:
            hand.reader.changes(name, since=since)
        assert expired.value.oldest == 4
    assert list(hand.reader.changes(name, since=8)) == []


@pytest.mark.parametrize("since", [9, -1, True, "1", None])
def test_a_tick_that_never_was_cannot_be_begun_at(hand: Hand, since: Any) -> None:
    busy(hand, 8)
    with pytest.raises(hw.HeadwaterError, match="no tick"):
        hand.reader.changes("orders", since=since)


def test_a_view_begins_with_the_tick_that_filled_it(hand: Hand) -> None:
    hand.tick()
    hand.view("totals", "n INT")
    assert list(hand.reader.changes("totals")) == []
    with pytest.raises(hw.NotReached):
        hand.reader.changes("totals", since=1)
    hand.tick(totals=[(1,)])
    assert [table.to_pylist() for table in hand.reader.changes("totals")] == [[{"_tick": 2, "_weight": 1, "n": 1}]]
    with pytest.raises(hw.VersionExpired) as expired:
        hand.reader.changes("totals", since=1)
    assert expired.value.oldest == 2


def test_records_lost_to_retention_are_not_skipped_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_SEGMENT_BYTES", "1")
    with hw.Pipeline("small", tmp_path / "small") as pipeline:
        hand = Hand(pipeline)
        clicks = pipeline.stream("clicks", "n INT")
        for n in range(1, 7):
            clicks.append([{"n": n}])
            hand.tick()
        following = hand.reader.changes("clicks", since=2, follow=True)
        begun = log_of(pipeline).trim("clicks", 0, before=4)
        assert begun > 2
        for since in (1, 2):
            with pytest.raises(hw.VersionExpired) as expired:
                hand.reader.changes("clicks", since=since)
            assert expired.value.oldest == begun
        with pytest.raises(hw.VersionExpired):
            next(following)
        changes = list(hand.reader.changes("clicks"))
        for n in range(begun, 7):
            assert summed(changes, until=n) == rows_of(hand.reader.read("clicks", as_of=n))


def test_an_oldest_version_that_is_forgotten_while_it_is_read_is_given_up_for_the_next(hand: Hand) -> None:
    orders = hand.pipeline.table("orders", "id BIGINT", key="id")
    for n in range(1, 4):
        orders.upsert([{"id": n}])
        hand.tick()
    reader = hand.open_reader(Meddling(hand.store, "tick", lambda: hand.keep(3)))
    [rows] = reader.changes("orders")
    assert sorted(row["id"] for row in rows.to_pylist()) == [1, 2, 3]
    assert rows.column("_tick").to_pylist() == [3] * 3


# -- following


@pytest.mark.parametrize("name", NAMES)
def test_a_follower_sees_every_tick_as_it_comes(hand: Hand, name: str) -> None:
    busy(hand, 2)
    following = hand.reader.changes(name, follow=True)
    seen: list[pa.Table] = []

    def follow() -> None:
        seen.extend(following)

    thread = threading.Thread(target=follow)
    thread.start()
    busy(hand, 6, seed=5)
    newest = rows_of(hand.reader.read(name))
    deadline = time.monotonic() + 20
    while summed(list(seen)) != newest and time.monotonic() < deadline:
        time.sleep(0.01)
    following.close()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert summed(seen) == newest
    for n in range(2, 9):
        assert summed(seen, until=n) == rows_of(hand.reader.read(name, as_of=n))


def test_a_follower_may_begin_before_there_is_anything(hand: Hand) -> None:
    hand.view("totals", "n INT")
    following = hand.reader.changes("totals", follow=True)
    waiting = threading.Timer(0.1, lambda: (hand.tick(), hand.tick(totals=[(1,)]), hand.tick(totals=[(2,)])))
    waiting.start()
    assert summed([next(following), next(following)]) == Counter([(2,)])
    waiting.join()


def test_a_follower_misses_no_tick_whose_driver_died_before_it_told(hand: Hand) -> None:
    hand.view("totals", "n INT")
    following = hand.reader.changes("totals", follow=True)

    def die() -> None:
        raise KeyboardInterrupt

    def commit() -> None:
        crashpoint.arm("tick.stored", action=die)
        with suppress(KeyboardInterrupt):
            hand.tick(totals=[(1,)])

    driver = threading.Timer(0.1, commit)
    driver.start()
    assert summed([next(following)]) == Counter([(1,)])
    driver.join()


def test_a_wait_ends_when_another_thread_closes_it(hand: Hand) -> None:
    hand.view("totals", "n INT")
    hand.tick(totals=[(1,)])
    following = hand.reader.changes("totals", follow=True)
    next(following)
    closing = threading.Timer(0.2, following.close)
    closing.start()
    assert list(following) == []
    closing.join()


def test_a_follower_of_something_dropped_is_told(hand: Hand) -> None:
    hand.view("totals", "n INT")
    hand.tick(totals=[(1,)])
    following = hand.reader.changes("totals", follow=True)
    next(following)
    stored = hand.store.find("totals")
    assert stored is not None
    hand.store.forget(stored)
    with pytest.raises(hw.HeadwaterError, match="dropped"):
        next(following)


def test_a_slow_follower_keeps_what_it_has_not_seen(hand: Hand) -> None:
    hand.view("totals", "n INT")
    hand.tick(totals=[(1,)])
    following = hand.reader.changes("totals", follow=True)
    seen = [next(following)]
    for n in range(2, 8):
        hand.tick(totals=[(n,)])
        hand.keep(n, *Pins(str(hand.state)).held())
    seen += [next(following) for _ in range(6)]
    assert [table.column("_tick")[0].as_py() for table in seen] == list(range(1, 8))
    assert summed(seen) == Counter([(7,)])


def test_a_follower_whose_changes_were_swept_nevertheless_is_told(hand: Hand) -> None:
    hand.view("totals", "n INT")
    hand.tick(totals=[(1,)])
    following = hand.reader.changes("totals", follow=True)
    next(following)
    for n in range(2, 5):
        hand.tick(totals=[(n,)])
    hand.keep(4)
    with pytest.raises(hw.VersionExpired) as expired:
        next(following)
    assert expired.value.oldest == 4


# -- letting go


def test_the_pin_moves_along_and_is_gone_with_the_last_table(hand: Hand) -> None:
    hand.view("totals", "n INT")
    pins = Pins(str(hand.state))
    for n in range(3):
        hand.tick(totals=[(n,)])
    changes = hand.reader.changes("totals", since=1)
    assert pins.held() == {1}
    next(changes)
    assert pins.held() == {1}
    assert len(list(changes)) == 1
    assert pins.held() == set()
    following = hand.reader.changes("totals", since=1, follow=True)
    next(following), next(following)
    threading.Timer(0.2, lambda: hand.tick(totals=[(9,)])).start()
    next(following)
    assert pins.held() == {3}
    following.close()


def test_closing_or_forgetting_lets_go(hand: Hand) -> None:
    busy(hand, 4)
    pins = Pins(str(hand.state))
    unstarted = hand.reader.changes("orders", since=2)
    started = hand.reader.changes("clicks", follow=True)
    next(started)
    forgotten = hand.reader.changes("totals", since=3, follow=True)
    assert pins.held() == {1, 2, 3}
    unstarted.close()
    unstarted.close()
    assert list(unstarted) == []
    started.close()
    del forgotten
    gc.collect()
    assert list((hand.state / "pins").iterdir()) == []


def test_an_error_lets_go(hand: Hand) -> None:
    busy(hand, 4)
    hand.keep(3)
    with pytest.raises(hw.VersionExpired):
        hand.reader.changes("clicks", since=1)
    assert Pins(str(hand.state)).held() == set()
