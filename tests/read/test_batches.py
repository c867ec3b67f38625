"""However much a tick changes, it comes in tables of bounded size."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.read import batches
from headwater.read.batches import bounded
from tests.read.hand import Hand, rows_of, summed
from tests.read.test_changes import NAMES, busy


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_ROWS", 1)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("since", [0, 1])
def test_large_ticks_come_in_several_tables_in_order(hand: Hand, name: str, since: int) -> None:
    busy(hand, 8)
    tables = list(hand.reader.changes(name, since=since))
    ticks = [table["_tick"].unique().to_pylist() for table in tables]
    assert all(len(each) == 1 for each in ticks)
    assert ticks == sorted(ticks)
    assert max(table.num_rows for table in tables) == 1
    assert len({each for [each] in ticks}) < len(ticks)
    if since == 0:
        for n in range(1, 9):
            assert summed(tables, until=n) == rows_of(hand.reader.read(name, as_of=n))


@pytest.mark.parametrize("name", NAMES)
def test_a_small_tick_is_one_table(hand: Hand, name: str) -> None:
    busy(hand, 8)
    ticks = [table["_tick"][0].as_py() for table in hand.reader.changes(name)]
    assert len(set(ticks)) == len(ticks)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", NAMES)
def test_a_tick_is_acknowledged_with_its_last_table(hand: Hand, name: str) -> None:
    busy(hand, 5)
    whole = list(hand.reader.changes(name))
    ticks = [table["_tick"][0].as_py() for table in whole]
    for taken in range(1, len(whole)):
        changes = hand.open_reader().changes(name, cursor=f"after {taken}")
        for _ in range(taken):
            next(changes)
        changes.close()
        again = list(hand.open_reader().changes(name, cursor=f"after {taken}"))
        begun = ticks.index(ticks[taken - 1])  # all of the tick that it was working on
        assert [table.to_pylist() for table in again] == [table.to_pylist() for table in whole[begun:]]


def test_wide_rows_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 1000)
    table = pa.table({"text": ["x" * length for length in [1] * 50 + [5000] + [300] * 9]})
    parts = list(bounded(table))
    assert pa.concat_tables(parts).equals(table)
    assert all(part.nbytes <= 1000 or part.num_rows == 1 for part in parts)
    assert len(parts) < 15


@pytest.mark.usefixtures("small")
def test_many_rows_under_one_key_are_several_tables(hand: Hand) -> None:
    hand.view("totals", "n INT, k INT", key=["k"])
    hand.tick(totals=[(n, 1) for n in range(20)])
    tables = list(hand.reader.changes("totals"))
    assert max(table.num_rows for table in tables) == 1
    assert summed(tables) == rows_of(hand.reader.read("totals"))
