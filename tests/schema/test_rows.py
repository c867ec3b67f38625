# ruff: noqa: DTZ001 (datetimes without a zone are part of what is tested)
from __future__ import annotations

import datetime as dt
import json
import math
from collections import OrderedDict, defaultdict, namedtuple
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql.types import VariantVal

from headwater.errors import SchemaError
from headwater.schema import Checked, check, check_keys, parse

OSLO = "Europe/Oslo"
UTC = dt.UTC


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    SMALL = 1


def one(kind: str, value: object, timezone: str = "UTC") -> Checked:
    return check(parse(f"a {kind}"), [{"a": value}], timezone=timezone)


def stored(kind: str, value: object, timezone: str = "UTC") -> Any:
    """What is stored for one value, in a row of its own and among others."""
    checked = one(kind, value, timezone)
    assert not checked.bad, checked.bad
    assert checked.batch.column(0).type == parse(f"a {kind}").arrow.types[0]
    return checked.batch.column(0)[0].as_py()


def refusal(kind: str, value: object, timezone: str = "UTC") -> str:
    checked = one(kind, value, timezone)
    assert checked.batch.num_rows == 0, checked.batch.to_pylist()
    (bad,) = checked.bad
    assert (bad.row, bad.column) == (0, "a")
    return bad.reason


TAKEN = [
    ("BOOLEAN", True, True),
    ("BOOLEAN", np.bool_(False), False),
    ("TINYINT", -128, -128),
    ("SMALLINT", 32767, 32767),
    ("INT", -(2**31), -(2**31)),
    ("BIGINT", 2**63 - 1, 2**63 - 1),
    ("BIGINT", np.int32(7), 7),
    ("BIGINT", np.uint64(7), 7),
    ("INT", Size.SMALL, 1),
    ("DOUBLE", 0.1, 0.1),
    ("DOUBLE", 3, 3.0),
    ("DOUBLE", 2**53 + 2, float(2**53 + 2)),
    ("DOUBLE", np.float32(0.5), 0.5),
    ("DOUBLE", math.inf, math.inf),
    ("FLOAT", 0.1, float(np.float32(0.1))),
    ("FLOAT", -math.inf, -math.inf),
    ("FLOAT", 2**24, float(2**24)),
    ("DECIMAL(10,2)", Decimal("1.5"), Decimal("1.50")),
    ("DECIMAL(10,2)", Decimal("1.5000"), Decimal("1.50")),
    ("DECIMAL(10,2)", Decimal("1E+3"), Decimal("1000.00")),
    ("DECIMAL(10,2)", Decimal("0E-50"), Decimal("0.00")),
    ("DECIMAL(10,2)", 5, Decimal("5.00")),
    ("DECIMAL(38,0)", 10**38 - 1, Decimal(10**38 - 1)),
    ("STRING", "æøå 😀", "æøå 😀"),
    ("STRING", np.str_("x"), "x"),
    ("STRING", Colour.RED, "red"),
    ("VARCHAR(3)", "日本語", "日本語"),
    ("CHAR(3)", "é", "é  "),
    ("BINARY", b"\xff", b"\xff"),
    ("BINARY", bytearray(b"x"), b"x"),
    ("BINARY", memoryview(b"x"), b"x"),
    ("DATE", dt.date(1, 1, 1), dt.date(1, 1, 1)),
    ("DATE", np.datetime64("2024-02-29"), dt.date(2024, 2, 29)),
    ("TIMESTAMP", dt.datetime(2024, 1, 1, tzinfo=UTC), dt.datetime(2024, 1, 1, tzinfo=UTC)),
    ("TIMESTAMP", pd.Timestamp("2024-01-01T00:00:00.000001Z"), dt.datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
    ("TIMESTAMP", np.datetime64("2024-01-01T00:00:00.5"), dt.datetime(2024, 1, 1, 0, 0, 0, 500000, tzinfo=UTC)),
    ("TIMESTAMP_NTZ", dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1)),
    ("TIMESTAMP_NTZ", pd.Timestamp("2024-01-01"), dt.datetime(2024, 1, 1)),
    ("TIME", dt.time(1, 2, 3, 4), dt.time(1, 2, 3, 4)),
    ("TIME(3)", dt.time(1, 2, 3, 4000), dt.time(1, 2, 3, 4000)),
    ("INTERVAL DAY TO SECOND", dt.timedelta(days=-1, microseconds=1), dt.timedelta(days=-1, microseconds=1)),
    ("INTERVAL DAY TO SECOND", pd.Timedelta(seconds=1), dt.timedelta(seconds=1)),
    ("INTERVAL DAY TO SECOND", np.timedelta64(5, "s"), dt.timedelta(seconds=5)),
    ("INTERVAL HOUR", dt.timedelta(hours=5), dt.timedelta(hours=5)),
    ("ARRAY<INT>", [1, None, 2], [1, None, 2]),
    ("ARRAY<INT>", (), []),
    ("ARRAY<DOUBLE>", np.array([1.5, 2.5], dtype=np.float32), [1.5, 2.5]),
    ("ARRAY<ARRAY<STRING>>", [["a"], None, []], [["a"], None, []]),
    ("MAP<STRING, INT>", {"a": 1, "b": None}, [("a", 1), ("b", None)]),
    ("MAP<INT, STRING>", [(1, "x")], [(1, "x")]),
    ("MAP<STRING, INT>", {}, []),
    ("STRUCT<x: INT, y: STRING>", {"Y": "q", "x": None}, {"x": None, "y": "q"}),
    ("STRUCT<x: INT>", OrderedDict(x=1), {"x": 1}),
    ("STRUCT<>", {}, {}),
    ("VARIANT", {"value": b"1", "metadata": b"2"}, {"value": b"1", "metadata": b"2"}),
    ("VARIANT", VariantVal(b"1", b"2"), {"value": b"1", "metadata": b"2"}),
    ("INT", None, None),
    ("TIMESTAMP", pd.NaT, None),
    ("INT", pd.NA, None),
    ("DATE", np.datetime64("NaT"), None),
    ("ARRAY<INT>", None, None),
    ("MAP<INT, INT>", None, None),
    ("STRUCT<x: INT NOT NULL>", None, None),
    ("VARIANT", None, None),
]


@pytest.mark.parametrize(("kind", "value", "expected"), TAKEN)
def test_a_value_that_fits_exactly_is_stored(kind: str, value: object, expected: object) -> None:
    assert stored(kind, value) == expected


@pytest.mark.parametrize(("kind", "value", "expected"), TAKEN)
def test_what_was_stored_passes_again_as_arrow(kind: str, value: object, expected: object) -> None:
    batch = one(kind, value).batch
    again = check(parse(f"a {kind}"), batch)
    assert not again.bad
    assert again.batch.equals(batch)
    assert again.batch.to_pylist() == [{"a": expected}]


GIVE = "give pyspark.sql.types.VariantVal.parseJson(…), or keep JSON in a STRING and use parse_json in SQL"
REFUSED = [
    ("BOOLEAN", 1, "expected BOOLEAN, got int 1"),
    ("BIGINT", "x", "expected BIGINT, got str 'x'"),
    ("BIGINT", "5", "expected BIGINT, got str '5'"),
    ("BIGINT", True, "expected BIGINT, got bool True"),
    ("BIGINT", 1.0, "expected BIGINT, got float 1.0"),
    ("BIGINT", 1.5, "expected BIGINT, got float 1.5"),
    ("BIGINT", math.nan, "expected BIGINT, got float nan"),
    ("BIGINT", Decimal(1), "expected BIGINT, got Decimal Decimal('1')"),
    ("BIGINT", np.float64(1.0), "expected BIGINT, got float 1.0"),
    ("BIGINT", np.bool_(True), "expected BIGINT, got bool True"),
    ("INT", 99999999999, "99999999999 does not fit INT"),
    ("INT", np.int64(2**40), "1099511627776 does not fit INT"),
    ("TINYINT", 128, "128 does not fit TINYINT"),
    ("SMALLINT", -32769, "-32769 does not fit SMALLINT"),
    ("BIGINT", 2**63, "9223372036854775808 does not fit BIGINT"),
    ("BIGINT", 2**70, "1180591620717411303424 does not fit BIGINT"),
    ("DOUBLE", True, "expected DOUBLE, got bool True"),
    ("DOUBLE", "1.5", "expected DOUBLE, got str '1.5'"),
    ("DOUBLE", Decimal("1.5"), "expected DOUBLE, got Decimal Decimal('1.5')"),
    ("DOUBLE", 2**53 + 1, "9007199254740993 does not fit DOUBLE"),
    ("DOUBLE", 10**400, f"{'1'.ljust(59, '0')}… does not fit DOUBLE"),
    ("FLOAT", 1e300, "1e+300 does not fit FLOAT"),
    ("FLOAT", 2**24 + 1, "16777217 does not fit FLOAT"),
    ("DECIMAL(10,2)", Decimal("1.234"), "1.234 does not fit DECIMAL(10,2)"),
    ("DECIMAL(4,2)", Decimal("123.4"), "123.4 does not fit DECIMAL(4,2)"),
    ("DECIMAL(4,2)", 100, "100 does not fit DECIMAL(4,2)"),
    ("DECIMAL(4,2)", Decimal("1E+100"), "1E+100 does not fit DECIMAL(4,2)"),
    ("DECIMAL(4,2)", Decimal("NaN"), "NaN does not fit DECIMAL(4,2)"),
    ("DECIMAL(4,2)", Decimal("-Infinity"), "-Infinity does not fit DECIMAL(4,2)"),
    ("DECIMAL(4,2)", 1.5, "expected DECIMAL(4,2), got float 1.5"),
    ("DECIMAL(4,2)", True, "expected DECIMAL(4,2), got bool True"),
    ("DECIMAL(4,2)", "1.5", "expected DECIMAL(4,2), got str '1.5'"),
    ("STRING", b"x", "expected STRING, got bytes b'x'"),
    ("STRING", 5, "expected STRING, got int 5"),
    ("STRING", "a\ud800", "invalid text: a lone surrogate at character 1"),
    ("VARCHAR(3)", "abcd", "'abcd' of 4 characters does not fit VARCHAR(3)"),
    ("CHAR(3)", "abcd", "'abcd' of 4 characters does not fit CHAR(3)"),
    ("BINARY", "x", "expected BINARY, got str 'x'"),
    ("DATE", dt.datetime(2024, 1, 1), "expected DATE, got datetime datetime.datetime(2024, 1, 1, 0, 0)"),
    ("DATE", "2024-01-01", "expected DATE, got str '2024-01-01'"),
    ("TIMESTAMP", dt.date(2024, 1, 1), "expected TIMESTAMP, got date datetime.date(2024, 1, 1)"),
    ("TIMESTAMP", 0, "expected TIMESTAMP, got int 0"),
    ("TIMESTAMP", "2024-01-01T00:00:00Z", "expected TIMESTAMP, got str '2024-01-01T00:00:00Z'"),
    ("TIMESTAMP_NTZ", dt.date(2024, 1, 1), "expected TIMESTAMP_NTZ, got date datetime.date(2024, 1, 1)"),
    ("TIME", "01:02:03", "expected TIME(6), got str '01:02:03'"),
    ("TIME(3)", dt.time(1, 2, 3, 4), "01:02:03.000004 does not fit TIME(3)"),
    ("INTERVAL DAY TO SECOND", 5, "expected INTERVAL DAY TO SECOND, got int 5"),
    ("INTERVAL HOUR", dt.timedelta(minutes=5), "0:05:00 does not fit INTERVAL HOUR"),
    ("ARRAY<INT>", "abc", "expected ARRAY<INT>, got str 'abc'"),
    ("ARRAY<INT>", {1}, "expected ARRAY<INT>, got set {1}"),
    ("ARRAY<INT>", [1, "x"], "a[1]: expected INT, got str 'x'"),
    ("ARRAY<ARRAY<INT>>", [[1], [2, 2**40]], "a[1][1]: 1099511627776 does not fit INT"),
    ("MAP<STRING, INT>", [1], "expected MAP<STRING, INT>, got list [1]"),
    ("MAP<STRING, INT>", {"a": "x"}, "a[0]: expected INT, got str 'x'"),
    ("MAP<STRING, INT>", {5: 1}, "a[0]: expected STRING, got int 5"),
    ("MAP<STRING, INT>", {None: 1}, "a[0]: the key of a map cannot be null"),
    ("MAP<STRUCT<x: INT>, INT>", [(None, 1)], "a[0]: the key of a map cannot be null"),
    ("STRUCT<x: INT>", [1], "expected STRUCT<x: INT>, got list [1]"),
    ("STRUCT<x: INT, y: INT>", {"x": 1}, "a.y: is missing"),
    ("STRUCT<x: INT>", {"x": 1, "z": 2}, "a.z: is not in the schema"),
    ("STRUCT<x: INT>", {"x": 1, "X": 2}, "a.x: is given twice"),
    ("STRUCT<x: INT NOT NULL>", {"x": None}, "a.x: cannot be null"),
    ("ARRAY<STRUCT<x: ARRAY<INT> NOT NULL>>", [{"x": []}, {"x": None}], "a[1].x: cannot be null"),
    ("VARIANT", {"value": b"1"}, "a.metadata: is missing"),
    ("VARIANT", {"value": b"1", "metadata": None}, "a.metadata: cannot be null"),
    ("VARIANT", {"value": "1", "metadata": b""}, "a.value: expected BINARY, got str '1'"),
    ("VARIANT", "{}", f"expected VARIANT, got str '{{}}'; {GIVE}"),
    ("VARIANT", {}, f"expected VARIANT, got dict {{}}; {GIVE}"),
    ("VARIANT", {"a": 1}, f"expected VARIANT, got dict {{'a': 1}}; {GIVE}"),
    ("VARIANT", [1], f"expected VARIANT, got list [1]; {GIVE}"),
    ("VARIANT", {"value": 1, "b": 2}, f"expected VARIANT, got dict {{'value': 1, 'b': 2}}; {GIVE}"),
]


@pytest.mark.parametrize(("kind", "value", "reason"), REFUSED)
def test_a_value_that_does_not_fit_is_refused_with_the_reason(kind: str, value: object, reason: str) -> None:
    assert refusal(kind, value) == reason


@pytest.mark.parametrize(("kind", "value", "reason"), REFUSED)
def test_one_bad_value_leaves_the_others_in_order(kind: str, value: object, reason: str) -> None:
    rows = [{"i": 0, "a": None}, {"i": 1, "a": value}, {"i": 2, "a": None}]
    checked = check(parse(f"i INT, a {kind}"), rows)
    assert checked.batch.column("i").to_pylist() == [0, 2]
    assert [(bad.row, bad.column, bad.reason) for bad in checked.bad] == [(1, "a", reason)]


def test_values_that_only_just_do_not_fit_a_time_are_refused() -> None:
    with_zone = dt.time(1, tzinfo=UTC)
    assert refusal("TIME", with_zone).startswith("expected TIME(6), got time")
    assert refusal("TIMESTAMP_NTZ", dt.datetime(2024, 1, 1, tzinfo=UTC)).startswith("expected TIMESTAMP_NTZ")
    assert "does not fit TIMESTAMP" in refusal("TIMESTAMP", pd.Timestamp("2024-01-01T00:00:00.000000001Z"))
    assert "does not fit TIMESTAMP_NTZ" in refusal("TIMESTAMP_NTZ", np.datetime64(1, "ns"))
    assert "does not fit INTERVAL" in refusal("INTERVAL DAY TO SECOND", dt.timedelta.max)
    after_the_end = dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-1)))
    assert refusal("TIMESTAMP", after_the_end).endswith("does not fit TIMESTAMP")
    before_the_beginning = dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=1)))
    assert refusal("TIMESTAMP", before_the_beginning).endswith("does not fit TIMESTAMP")


def test_long_values_are_shortened_in_the_reason() -> None:
    assert len(refusal("INT", "x" * 10_000)) < 100


def test_a_datetime_without_a_zone_is_taken_in_the_time_zone() -> None:
    noon = dt.datetime(2024, 7, 1, 12)
    assert stored("TIMESTAMP", noon, OSLO) == dt.datetime(2024, 7, 1, 10, tzinfo=UTC)
    assert stored("TIMESTAMP", noon.replace(tzinfo=UTC), OSLO) == dt.datetime(2024, 7, 1, 12, tzinfo=UTC)
    assert stored("TIMESTAMP", noon.replace(tzinfo=ZoneInfo("Asia/Tokyo"))) == dt.datetime(
        2024, 7, 1, 3, tzinfo=UTC
    )
    assert stored("TIMESTAMP_NTZ", noon, OSLO) == noon


@pytest.mark.parametrize(
    ("local", "instant"),
    [
        (
            dt.datetime(2024, 3, 31, 2, 30),
            dt.datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
        ),  # skipped: moved on, as in Java
        (
            dt.datetime(2024, 10, 27, 2, 30),
            dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
        ),  # twice: the first, as in Java
    ],
)
def test_clock_changes_are_resolved_alike_for_dicts_and_arrow(local: dt.datetime, instant: dt.datetime) -> None:
    schema = parse("a TIMESTAMP")
    arrow = pa.table({"a": pa.array([local, None], type=pa.timestamp("ms"))})
    assert stored("TIMESTAMP", local, OSLO) == instant
    assert check(schema, arrow, timezone=OSLO).batch.column(0)[0].as_py() == instant
    if local.month == 10:
        assert stored("TIMESTAMP", local.replace(fold=1), OSLO) == instant + dt.timedelta(hours=1)


def test_an_unknown_time_zone_is_an_error() -> None:
    with pytest.raises(SchemaError, match="unknown time zone"):
        check(parse("a INT"), [], timezone="Mars/Olympus")


SHOP = parse("id BIGINT NOT NULL, Name STRING, price DECIMAL(12,2)")
ROW = {"id": 1, "Name": "x", "price": Decimal("1.5")}


def reasons(rows: object, required: tuple[str, ...] = ()) -> list[tuple[int, str | None, str]]:
    return [(bad.row, bad.column, bad.reason) for bad in check(SHOP, rows, required=required).bad]


def test_names_match_in_any_case_and_any_order() -> None:
    checked = check(SHOP, [{"PRICE": 2, "ID": 1, "name": "x"}, ROW])
    assert not checked.bad
    assert checked.batch.schema.names == ["id", "Name", "price"]
    assert checked.batch.to_pylist()[0] == {"id": 1, "Name": "x", "price": Decimal("2.00")}


def test_every_column_must_be_given_and_no_other() -> None:
    assert reasons([{"id": 1, "Name": "x"}]) == [(0, "price", "is missing")]
    assert reasons([{**ROW, "nmae": 1}]) == [(0, "nmae", "is not in the schema; did you mean Name?")]
    assert reasons([{**ROW, 5: 1}]) == [(0, "5", "is not in the schema")]
    assert reasons([{**ROW, "NAME": 1}]) == [(0, "Name", "is given twice")]


def test_nulls_are_refused_where_declared_and_in_the_key() -> None:
    assert reasons([{**ROW, "id": None}]) == [(0, "id", "cannot be null")]
    assert reasons([{**ROW, "id": None}], ("ID",)) == [(0, "id", "a key column cannot be null")]
    assert reasons([{**ROW, "Name": None}], ("name",)) == [(0, "Name", "a key column cannot be null")]
    assert reasons([{**ROW, "Name": None}]) == []


def test_a_bad_row_is_reported_once_with_its_first_bad_column() -> None:
    bad = {"price": 1.5, "zzz": 1, "Name": 5, "id": 2}
    assert reasons([ROW, bad, ROW]) == [(1, "Name", "expected STRING, got int 5")]


def test_a_row_that_is_no_dict_is_a_bad_row() -> None:
    assert reasons([ROW, 5, None, ("id", 1)]) == [
        (1, None, "expected a row as a dict, got int 5"),
        (2, None, "expected a row as a dict, got NoneType None"),
        (3, None, "expected a row as a dict, got tuple ('id', 1)"),
    ]


@pytest.mark.parametrize(
    "rows", [None, 5, "text", b"bytes", ROW, pd.Series([1]), pl.Series([1]), pl.LazyFrame(), pa.array([1])]
)
def test_what_holds_no_rows_is_an_error_that_says_what_does(rows: object) -> None:
    if isinstance(rows, pd.Series | pa.Array):
        assert all(column is None for _, column, _ in reasons(rows))
        return
    with pytest.raises(SchemaError, match="give dicts"):
        check(SHOP, rows)


def test_rows_come_from_any_iterable() -> None:
    for rows in ([ROW], (ROW,), iter([ROW]), (row for row in [ROW]), [OrderedDict(ROW)]):
        assert check(SHOP, rows).batch.num_rows == 1
    assert check(SHOP, []).batch.num_rows == 0


def test_the_batch_has_the_schemas_types_all_nullable() -> None:
    for rows in ([ROW], [], pa.Table.from_pylist([ROW])):
        assert check(SHOP, rows).batch.schema.equals(SHOP.stored, check_metadata=True)
    assert all(field.nullable for field in SHOP.stored)


def test_the_raw_row_is_json_whatever_it_held() -> None:
    Point = namedtuple("Point", "x y")
    given: dict[Any, object] = {
        "id": "no",
        "f": math.nan,
        "b": b"\xff",
        "d": dt.date(2024, 1, 1),
        "p": Point(1, 2),
        "o": object,
        "s": "\ud800",
    }
    given |= {
        "big": 10**30,
        "dec": Decimal("1.50"),
        "at": dt.datetime(2024, 1, 1, tzinfo=UTC),
        5: {"x": [None, True]},
    }
    raw = json.loads(check(SHOP, [given]).bad[0].raw)
    assert raw["f"] == "nan"
    assert raw["b"] == "/w=="
    assert raw["d"] == "2024-01-01"
    assert raw["p"] == [1, 2]
    assert raw["big"] == 10**30
    assert raw["dec"] == "1.50"
    assert raw["at"] == "2024-01-01T00:00:00+00:00"
    assert raw["5"] == {"x": [None, True]}


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError


def test_values_that_cannot_be_printed_are_still_refused() -> None:
    itself: dict[str, object] = {}
    itself["a"] = itself
    for kind, value in (("INT", Hostile()), ("INT", itself), ("INT", 10**5000), ("DECIMAL(38,0)", 10**5000)):
        (bad,) = check(parse(f"a {kind}"), [{"a": value}]).bad
        assert isinstance(json.loads(bad.raw), dict | str)
    assert reasons([Hostile()]) == [(0, None, "expected a row as a dict, got Hostile (not printable)")]


def test_the_raw_row_of_a_table_has_its_columns() -> None:
    bad = check(SHOP, pa.table({"id": ["x"], "Name": ["é"], "other": [1.5]})).bad[0]
    assert json.loads(bad.raw) == {"id": "x", "Name": "é", "other": 1.5}


def test_keys_are_dicts_or_plain_values_and_the_rest_is_null() -> None:
    expected = [{"id": 1, "Name": None, "price": None}, {"id": 2, "Name": None, "price": None}]
    for keys in (
        [{"id": 1}, {"ID": 2}],
        [1, 2],
        (1, {"id": 2}),
        {1, 2},
        [ROW, {**ROW, "id": 2}],
        pa.table({"Id": [1, 2]}),
    ):
        checked = check_keys(SHOP, ["id"], keys)
        assert not checked.bad
        assert checked.batch.to_pylist() == expected
        assert checked.batch.schema == SHOP.stored


def test_keys_ignore_known_columns_whatever_they_hold_and_refuse_unknown_ones() -> None:
    assert not check_keys(SHOP, ["id"], [{"id": 1, "name": object()}]).bad
    frame = pa.table({"id": [1], "price": ["no number"]})
    assert not check_keys(SHOP, ["id"], frame).bad
    assert check_keys(SHOP, ["id"], [{"id": 1, "x": 1}]).bad[0].reason == "is not in the schema"
    assert check_keys(SHOP, ["id"], pa.table({"id": [1], "x": [1]})).bad[0].column == "x"


def test_keys_of_two_columns_are_dicts_with_both() -> None:
    key = ["Name", "id"]
    assert check_keys(SHOP, key, [{"id": 1, "name": "x"}]).batch.to_pylist() == [
        {"id": 1, "Name": "x", "price": None}
    ]
    assert check_keys(SHOP, key, [{"id": 1}]).bad[0].reason == "is missing"
    assert check_keys(SHOP, key, [1]).bad[0].reason == "expected a row as a dict, got int 1"


def test_a_key_is_never_null() -> None:
    assert [bad.reason for bad in check_keys(SHOP, ["id"], [None, 1, {"id": None}]).bad] == [
        "a key column cannot be null"
    ] * 2
    with pytest.raises(SchemaError):
        check_keys(SHOP, ["id"], "abc")


def test_a_dict_that_makes_up_values_is_taken_at_its_word() -> None:
    row = defaultdict(int, {"a": 1, "c": 2})
    checked = check(parse("a INT, b INT"), [row])
    assert (checked.batch.num_rows, dict(row)) == (0, {"a": 1, "c": 2})
    assert check(parse("a INT, c INT"), [row]).batch.to_pylist() == [{"a": 1, "c": 2}]


def test_the_report_of_a_bad_row_can_always_be_encoded() -> None:
    rows = [{"a": "\ud800"}, {"a": 1, "\udfff": 2}, {"\ud800é": 1}]
    for bad in check(parse("a INT"), rows).bad:
        for text in (bad.column or "", bad.reason, bad.raw):
            text.encode()


def test_bad_rows_are_equal_if_what_was_given_is() -> None:
    schema = parse("a INT, b INT")
    first, same, other = (check(schema, [{"a": "x", "b": b}]).bad[0] for b in (1, 1, 2))
    assert (first == same, first == other, hash(first) == hash(same)) == (True, False, True)
