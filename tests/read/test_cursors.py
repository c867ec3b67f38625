"""Cursors: a reader's place that outlives it, and what is kept for it."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.read.backlog import Backlog, Limits
from headwater.state.files import LocalStateFiles
from headwater.state.pins import Pins
from headwater.tick.cursors import LateCursors
from tests.read.hand import Hand, Meddling, rows_of, summed
from tests.read.test_changes import NAMES, busy

DAY = 86_400


def ticks_of(tables: list[pa.Table]) -> list[int]:
    return [table["_tick"][0].as_py() for table in tables]


def numbers(hand: Hand, *contents: int) -> None:
    """A view that has one number at each tick."""
    hand.view("totals", "n INT")
    for n in contents:
        hand.tick(totals=[(n,)])


def take(hand: Hand, count: int, name: str = "totals") -> list[pa.Table]:
    """Take some tables by a cursor, as a process that dies before it asks for the next one."""
    changes = hand.open_reader().changes(name, cursor="mine", follow=True)
    taken = [next(changes) for _ in range(count)]
    changes.close()
    return taken


# -- where a reader goes on


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("taken", [1, 2, 3])
def test_a_reader_goes_on_behind_what_it_acknowledged(hand: Hand, name: str, taken: int) -> None:
    busy(hand, 12)
    first = take(hand, taken, name)
    rest = list(hand.open_reader().changes(name, cursor="mine"))
    assert ticks_of(rest)[0] == ticks_of(first)[-1]  # what it was working on comes again
    assert rest[0].equals(first[-1])
    assert summed([*first[:-1], *rest]) == rows_of(hand.reader.read(name))
    assert list(hand.open_reader().changes(name, cursor="mine")) == []


@pytest.mark.parametrize("name", NAMES)
def test_what_came_while_no_reader_was_there_is_all_there(hand: Hand, name: str) -> None:
    busy(hand, 3)
    first = list(hand.reader.changes(name, cursor="mine"))
    busy(hand, 9, seed=5)
    hand.keep()
    assert len(hand.store.ticks()) == 1
    rest = list(hand.open_reader().changes(name, cursor="mine"))
    assert summed([*first, *rest]) == rows_of(hand.reader.read(name))


def test_a_tick_is_acknowledged_when_the_table_after_it_is_asked_for(hand: Hand) -> None:
    numbers(hand, 1, 2, 3)
    changes = hand.reader.changes("totals", cursor="mine")
    acknowledged = []
    for _ in changes:
        [cursor] = hand.store.cursors.all()
        acknowledged.append(0 if cursor.filling else cursor.tick)
    assert acknowledged == [0, 1, 2]
    [cursor] = hand.store.cursors.all()
    assert (cursor.relation, cursor.tick, cursor.behind) == ("totals", 3, None)


def test_a_version_that_was_not_taken_to_its_end_comes_again_the_same(hand: Hand) -> None:
    numbers(hand, 1)
    [first] = take(hand, 1)
    hand.tick(totals=[(2,)])
    hand.keep()
    again = list(hand.open_reader().changes("totals", cursor="mine"))
    assert again[0].equals(first)
    assert summed(again) == Counter([(2,)])


def test_since_counts_only_when_the_cursor_is_new(hand: Hand) -> None:
    numbers(hand, 1, 2, 3, 4)
    assert ticks_of(list(hand.reader.changes("totals", since=2, cursor="mine"))) == [3, 4]
    assert list(hand.reader.changes("totals", since=1, cursor="mine")) == []
    assert ticks_of(list(hand.reader.changes("totals", since=1, cursor="other"))) == [2, 3, 4]


@pytest.mark.parametrize("name", ["totals", "clicks"])
def test_a_cursor_that_cannot_begin_is_not_made(hand: Hand, name: str) -> None:
    busy(hand, 8)
    hand.keep(4)
    for since in (1, 9, -1):
        with pytest.raises(hw.HeadwaterError):
            hand.reader.changes(name, since=since, cursor="mine")
    assert hand.store.cursors.all() == []


def test_a_cursor_may_begin_before_there_is_anything(hand: Hand) -> None:
    hand.view("totals", "n INT")
    assert list(hand.reader.changes("totals", cursor="mine")) == []
    assert hand.store.cursors.all() == []
    hand.tick(totals=[(1,)])
    assert summed(hand.reader.changes("totals", cursor="mine")) == Counter([(1,)])


def test_a_version_that_is_forgotten_as_a_cursor_begins_is_given_up_for_the_next(hand: Hand) -> None:
    numbers(hand, 1, 2, 3)
    reader = hand.open_reader(Meddling(hand.store, "tick", lambda: hand.keep(3)))
    [rows] = reader.changes("totals", cursor="mine")
    assert rows.to_pylist() == [{"_tick": 3, "_weight": 1, "n": 3}]


@pytest.mark.parametrize("cursor", ["", "x" * 201, "a\nb", 7, True, b"mine"])
def test_a_cursor_is_a_name(hand: Hand, cursor: object) -> None:
    numbers(hand, 1)
    with pytest.raises(hw.HeadwaterError, match="cursor is"):
        hand.reader.changes("totals", cursor=cursor)  # type: ignore[arg-type]


def test_a_cursor_is_on_one_relation(hand: Hand) -> None:
    busy(hand, 3)
    list(hand.reader.changes("orders", cursor="mine"))
    with pytest.raises(hw.HeadwaterError, match="is on orders"):
        hand.reader.changes("orders__log", cursor="mine")


def test_a_reader_with_a_cursor_pins_nothing(hand: Hand) -> None:
    numbers(hand, 1, 2, 3)
    for since in (0, 1):
        changes = hand.reader.changes("totals", cursor=f"from {since}", since=since)
        for _ in changes:
            assert Pins(str(hand.state)).held() == set()


# -- one reader at a time


@pytest.mark.parametrize("name", ["totals", "clicks"])
def test_of_two_readers_the_later_goes_on_and_the_earlier_is_told(hand: Hand, name: str) -> None:
    busy(hand, 10)
    earlier = hand.open_reader().changes(name, cursor="mine")
    next(earlier), next(earlier)
    later = list(hand.open_reader().changes(name, cursor="mine"))
    with pytest.raises(hw.Fenced, match="another reader has taken"):
        next(earlier)
    [cursor] = hand.store.cursors.all()
    assert cursor.tick == ticks_of(later)[-1]


@pytest.mark.parametrize("name", ["totals", "clicks"])
def test_of_two_who_begin_a_cursor_at_once_one_is_told(hand: Hand, name: str) -> None:
    busy(hand, 10)
    both = [hand.open_reader().changes(name, cursor="mine") for _ in range(2)]
    next(both[0]), next(both[0])
    with pytest.raises(hw.Fenced):
        next(both[1]), next(both[1])
    assert len(list(both[0])) > 1


def test_a_reader_whose_cursor_is_removed_is_told(hand: Hand) -> None:
    numbers(hand, 1, 2, 3)
    changes = hand.reader.changes("totals", cursor="mine")
    next(changes)
    hand.store.cursors.remove("mine")
    with pytest.raises(hw.HeadwaterError, match="was removed"):
        next(changes)


def test_a_cursor_goes_with_its_relation(hand: Hand) -> None:
    busy(hand, 3)
    for name in NAMES:
        list(hand.reader.changes(name, cursor=f"on {name}"))
    hand.pipeline.drop("orders")
    assert {cursor.relation for cursor in hand.store.cursors.all()} == {"bag", "clicks", "totals"}
    hand.pipeline.drop("clicks")
    hand.pipeline.drop("totals")
    assert {cursor.relation for cursor in hand.store.cursors.all()} == {"bag"}


# -- a view that is replaced


def test_a_cursor_goes_on_with_what_replaces_its_view(hand: Hand) -> None:
    numbers(hand, 1, 2)
    first = take(hand, 2)
    hand.tick(totals=[(3,)])
    hand.switch("totals", "n INT")
    hand.tick(totals=[(3,)])
    hand.tick(totals=[(4,)])
    hand.keep()
    rest = list(hand.open_reader().changes("totals", cursor="mine"))
    assert ticks_of(rest) == [2, 3, 5]
    assert summed([first[0], *rest]) == Counter([(4,)])


def test_a_cursor_on_a_view_that_gets_other_columns_is_told(hand: Hand) -> None:
    numbers(hand, 1, 2)
    take(hand, 2)
    hand.switch("totals", "n BIGINT")
    hand.tick()
    with pytest.raises(hw.HeadwaterError, match="replaced at tick 3 by a query with other columns"):
        hand.open_reader().changes("totals", cursor="mine")


# -- how far a reader may be behind


def late(hand: Hand, **limits: float) -> LateCursors:
    return LateCursors(hand.store, LocalStateFiles(str(hand.state)), Limits(**limits))  # type: ignore[arg-type]


def test_a_cursor_that_is_too_long_behind_is_given_up_and_this_is_told_before_and_after(
    hand: Hand, caplog: pytest.LogCaptureFixture
) -> None:
    numbers(hand, 1, 2)
    take(hand, 2)
    hand.keep()
    behind = hand.store.ticks()[-1][1]
    keeper = late(hand, seconds=7 * DAY)
    for days in (1, 5.7, 5.8, 6, 6.9):
        keeper.give_up(behind + int(days * DAY * 1_000_000))
    [warning] = [record.getMessage() for record in caplog.records]
    assert "cursor 'mine' on totals: it is 5.70 days" in warning
    assert "given up behind 7 days or 10 GB" in warning
    keeper.give_up(behind + int(7.01 * DAY * 1_000_000))
    assert "was given up: it was 7.01 days" in caplog.records[-1].getMessage()
    hand.tick(totals=[(3,)])
    hand.keep()
    with pytest.raises(hw.VersionExpired, match=r"given up at tick 1: it was 7\.01 days") as expired:
        hand.open_reader().changes("totals", cursor="mine")
    assert expired.value.oldest == 3
    assert "begin anew with another cursor and since=0" in expired.value.hint
    assert summed(hand.reader.changes("totals", cursor="another")) == Counter([(3,)])


def test_a_cursor_that_is_too_much_behind_is_given_up(hand: Hand, caplog: pytest.LogCaptureFixture) -> None:
    numbers(hand, 1)
    take(hand, 1)
    size = 0
    for n in range(2, 12):
        before = set(os.listdir(hand.state))
        hand.tick(totals=[(n,)])
        size += sum((hand.state / name).stat().st_size for name in {*os.listdir(hand.state)} - before)
        hand.keep()
        late(hand, bytes=size).give_up(0)
        assert [cursor.given_up for cursor in hand.store.cursors.all()] == [""]
        [lag] = Backlog(hand.store, LocalStateFiles(str(hand.state))).lags(0)
        assert lag.bytes == size
    late(hand, bytes=size - 1).give_up(0)
    [cursor] = hand.store.cursors.all()
    assert "GB behind" in cursor.given_up
    assert "was given up" in caplog.records[-1].getMessage()
    hand.keep()
    assert hand.store.details(cursor.changes[0], after=0, until=99) == []


def test_what_is_measured_of_a_cursor_follows_it(hand: Hand) -> None:
    numbers(hand, 1, 2, 3, 4)
    backlog = Backlog(hand.store, LocalStateFiles(str(hand.state)))
    changes = hand.reader.changes("totals", cursor="mine")
    measured = []
    for _ in changes:
        [lag] = backlog.lags(0)
        [fresh] = Backlog(hand.store, LocalStateFiles(str(hand.state))).lags(0)
        assert lag == fresh
        measured.append(lag.bytes)
    assert measured == sorted(measured, reverse=True)
    assert backlog.lags(0)[0].bytes == 0 < measured[-1]
    [cursor] = hand.store.cursors.all()
    list(hand.reader.changes("totals", since=1, cursor="earlier"))
    hand.store.cursors.remove("earlier")
    hand.store.cursors.change(None, replace(cursor, name="earlier", tick=1))
    assert backlog.lags(0)[0].bytes > 0


def test_a_reader_that_waits_is_not_behind(hand: Hand) -> None:
    numbers(hand, 1)
    hand.view("quiet", "n INT")
    hand.tick(quiet=[(1,)], totals=[(2,)])
    list(hand.reader.changes("quiet", cursor="mine"))
    for n in range(3, 6):
        hand.tick(totals=[(n,)])
        hand.keep()
    late(hand, seconds=1).give_up(10**15)
    assert list(hand.reader.changes("quiet", cursor="mine")) == []
    hand.tick(quiet=[(2,)])
    assert ticks_of(list(hand.reader.changes("quiet", cursor="mine"))) == [6]


def test_a_reader_whose_cursor_is_given_up_while_it_works_is_told(hand: Hand) -> None:
    numbers(hand, 1, 2, 3)
    changes = hand.reader.changes("totals", cursor="mine")
    next(changes)
    [cursor] = hand.store.cursors.all()
    hand.store.cursors.change(cursor, replace(cursor, given_up="it was 8.00 days behind"))
    with pytest.raises(hw.VersionExpired, match="given up"):
        next(changes)


def test_a_damaged_cursor_is_told(hand: Hand) -> None:
    numbers(hand, 1, 2)
    list(hand.reader.changes("totals", cursor="mine"))
    with sqlite3.connect(Path(hand.pipeline.path, "headwater.db")) as database:
        database.execute("UPDATE cursors SET tick = 1")
    with pytest.raises(hw.Unavailable, match="cursor mine in the metadata store is damaged"):
        hand.reader.changes("totals", cursor="mine")
    assert len(hand.store.faults()) == 1
