"""Looking rows up by key."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import headwater as hw
from headwater.read import lookup
from tests.read.hand import Hand

_NOON = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("ddl", "keys"),
    [
        ("BOOLEAN", [True, False]),
        ("TINYINT", [-1, 5]),
        ("SMALLINT", [-1, 5]),
        ("INT", [-1, 5]),
        ("BIGINT", [-1, 2**62]),
        ("FLOAT", [0.5, -2.0]),
        ("DOUBLE", [0.1, math.inf]),
        ("DECIMAL(12,2)", [Decimal("1.50"), Decimal("-2.00")]),
        ("DECIMAL(38,3)", [Decimal("12345678901234567890.125"), Decimal(0)]),
        ("STRING", ["", "ada"]),
        ("BINARY", [b"", b"\0\xff"]),
        ("DATE", [dt.date(1969, 1, 1), dt.date(2026, 5, 1)]),
        ("TIMESTAMP", [_NOON, _NOON + dt.timedelta(microseconds=1)]),
        ("TIMESTAMP_NTZ", [dt.datetime(2026, 5, 1), dt.datetime(1960, 5, 1)]),  # noqa: DTZ001
        ("TIME(6)", [dt.time(0), dt.time(23, 59, 59, 999999)]),
        ("INTERVAL DAY TO SECOND", [dt.timedelta(days=-1), dt.timedelta(microseconds=1)]),
    ],
)
def test_a_row_is_found_by_a_key_of_any_type(pipeline: hw.Pipeline, hand: Hand, ddl: str, keys: list[Any]) -> None:
    table = pipeline.table("things", f"id {ddl}, n INT", key="id")
    table.upsert([{"id": key, "n": n} for n, key in enumerate(keys)])
    hand.tick()
    for n, key in enumerate(keys):
        found = hand.reader.lookup("THINGS", key)
        assert found.column("n").to_pylist() == [n]
        assert found.schema == table.schema.arrow


def test_a_key_that_is_not_there_gives_no_rows(pipeline: hw.Pipeline, hand: Hand) -> None:
    table = pipeline.table("things", "id BIGINT, n INT", key="id")
    assert hand.reader.lookup("things", 1).num_rows == 0
    table.upsert([{"id": 1, "n": 1}])
    hand.tick()
    table.delete([1])
    hand.tick()
    assert hand.reader.lookup("things", 1).num_rows == 0
    assert hand.reader.lookup("things", 1, as_of=1).to_pylist() == [{"id": 1, "n": 1}]
    assert hand.reader.lookup("things", 2).schema == table.schema.arrow


@pytest.mark.parametrize("key", [("no", 7), {"id": 7, "country": "no"}, {"ID": 7, "Country": "no"}])
def test_a_key_of_two_columns_is_a_tuple_in_its_order_or_a_dict(hand: Hand, key: Any) -> None:
    hand.view("totals", "id BIGINT, cents BIGINT, country STRING", key=["country", "id"])
    hand.tick(totals=[(7, 100, "no"), (7, 200, "se"), (8, 300, "no")])
    assert hand.reader.lookup("totals", key).column("cents").to_pylist() == [100]


def test_all_rows_of_a_key_are_given_each_as_often_as_it_is_in(hand: Hand) -> None:
    hand.view("totals", "id BIGINT, n INT", key=["id"])
    hand.tick(totals=[(1, 1), (1, 1), (1, 2), (2, 9)])
    assert sorted(hand.reader.lookup("totals", 1).column("n").to_pylist()) == [1, 1, 2]


def test_keys_are_equal_as_in_sql(hand: Hand) -> None:
    hand.view("totals", "x DOUBLE, n INT", key=["x"])
    hand.tick(totals=[(-0.0, 0), (math.nan, 1), (None, 2), (1.0, 3)])
    for key, expected in [(0.0, [0]), (-0.0, [0]), (math.nan, [1]), (None, [2]), (1, [3]), (2.0, [])]:
        assert hand.reader.lookup("totals", key).column("n").to_pylist() == expected, key


def test_keys_whose_hashes_collide_are_told_apart(pipeline: hw.Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    def colliding(arrays: Any) -> Any:
        return np.full(len(arrays[0]), 7, np.int64)

    hand = Hand(pipeline, hashes=colliding)
    monkeypatch.setattr(lookup, "hash_rows", colliding)
    hand.view("totals", "a INT, b STRING", key=["a", "b"])
    hand.tick(totals=[(1, "x"), (1, "y"), (2, "x"), (None, "x"), (1, None)])
    for key in [(1, "x"), (1, "y"), (2, "x"), (None, "x"), (1, None)]:
        assert [tuple(row.values()) for row in hand.reader.lookup("totals", key).to_pylist()] == [key]
    assert hand.reader.lookup("totals", (2, "y")).num_rows == 0


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("1", "expected BIGINT, got str"),
        (2**63, "does not fit BIGINT"),
        (1.5, "BIGINT"),
        (None, "a key column cannot be null"),
        ({"idd": 1}, "is missing|is not in the schema"),
        ({"id": 1, "n": 2}, "is not in the schema"),
        ({}, "is missing"),
        ([1], "expected BIGINT, got list"),
    ],
)
def test_a_key_that_does_not_fit_is_a_schema_error(
    pipeline: hw.Pipeline, hand: Hand, key: Any, reason: str
) -> None:
    pipeline.table("things", "id BIGINT, n INT", key="id")
    with pytest.raises(hw.SchemaError, match=reason) as refused:
        hand.reader.lookup("things", key)
    assert refused.value.where == "things"
    assert refused.value.row is None
    assert refused.value.column is not None
    assert "id BIGINT" in refused.value.hint


@pytest.mark.parametrize("key", [1, (1,), (1, "a", 2), "ab"])
def test_a_wrong_number_of_values_is_an_error_that_names_the_columns(hand: Hand, key: Any) -> None:
    hand.view("totals", "id BIGINT, country STRING", key=["country", "id"])
    with pytest.raises(hw.HeadwaterError, match=r"country, id"):
        hand.reader.lookup("totals", key)


def test_what_has_no_key_cannot_be_looked_up(pipeline: hw.Pipeline, hand: Hand) -> None:
    pipeline.table("bag", "id BIGINT")
    pipeline.table("orders", "id BIGINT", key="id")
    pipeline.stream("clicks", "id BIGINT", key="id")
    hand.view("totals", "id BIGINT")
    for name in ("bag", "clicks", "orders__log", "totals"):
        with pytest.raises(hw.HeadwaterError, match=r"read\(\)"):
            hand.reader.lookup(name, 1)


def test_a_datetime_without_a_zone_is_in_the_pipelines(pipeline: hw.Pipeline, hand: Hand) -> None:
    table = pipeline.table("things", "at TIMESTAMP, n INT", key="at")
    table.upsert([{"at": dt.datetime(2026, 5, 1, 10, tzinfo=dt.UTC), "n": 1}])
    hand.tick()
    assert hand.reader.lookup("things", dt.datetime(2026, 5, 1, 12)).num_rows == 1  # noqa: DTZ001
