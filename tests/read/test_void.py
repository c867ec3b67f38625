"""Columns of NULL are Arrow's null to whoever reads them, in every way to read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.read.hand import Hand

SCHEMA = "id BIGINT, n VOID, l ARRAY<VOID>, s STRUCT<n: VOID, k: INT>, m MAP<STRING, VOID>"
LIST = pa.list_(pa.field("element", pa.null()))


@pytest.fixture
def nulls(hand: Hand) -> Hand:
    hand.view("nulls", SCHEMA, key=["id"])
    hand.view("alone", "n VOID")
    hand.view("of_it", "id BIGINT, n VOID")
    hand.tick(nulls=[_row(1), _row(2)], alone=[(None,), (None,)], of_it=[(1, None)])
    hand.tick(nulls=[_row(2), _row(3)], alone=[(None,)], of_it=[(1, None), (1, None)])
    return hand


def _row(number: int) -> tuple[object, ...]:
    return number, None, (None,) * number, _Struct(number), (("x", None),)


class _Struct(dict[str, object]):
    """A struct that can be counted."""

    def __init__(self, number: int) -> None:
        super().__init__(n=None, k=number)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def _plain(number: int) -> dict[str, object]:
    return {"id": number, "n": None, "l": [None] * number, "s": {"n": None, "k": number}, "m": [("x", None)]}


def test_they_are_read_as_of_any_tick(nulls: Hand) -> None:
    found = nulls.reader.read("nulls")
    assert found.schema.field("n").type == pa.null()
    assert found.schema.field("l").type == LIST
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [_plain(2), _plain(3)]
    assert nulls.reader.read("nulls", as_of=1).num_rows == 2
    assert nulls.reader.read("alone").to_pylist() == [{"n": None}]
    assert nulls.reader.read("of_it").to_pylist() == [{"id": 1, "n": None}] * 2


def test_they_are_looked_up(nulls: Hand) -> None:
    assert nulls.reader.lookup("nulls", 3).to_pylist() == [_plain(3)]
    assert nulls.reader.lookup("nulls", 1).num_rows == 0


def test_their_changes_are_told(nulls: Hand) -> None:
    told = [row for table in nulls.reader.changes("nulls", since=1) for row in table.to_pylist()]
    assert sorted((row["_weight"], row["id"], row["n"]) for row in told) == [(-1, 1, None), (1, 3, None)]
    (alone,) = nulls.reader.changes("alone", since=1)
    assert alone.schema.field("n").type == pa.null()
    assert alone.select(["_weight", "n"]).to_pylist() == [{"_weight": -1, "n": None}]


def test_they_are_queried(nulls: Hand) -> None:
    sql = "SELECT n, s.n AS inner_n, m['x'] AS x, count(n) OVER () AS c FROM nulls JOIN alone USING (n) WHERE true"
    assert nulls.pipeline.query(sql).num_rows == 0
    counted = "SELECT n, max(n) AS g, count(*) AS c, count(n) AS d FROM nulls GROUP BY n"
    assert nulls.pipeline.query(counted).to_pylist() == [{"n": None, "g": None, "c": 2, "d": 0}]
    assert nulls.pipeline.query("SELECT n FROM alone").schema.field("n").type == pa.null()
