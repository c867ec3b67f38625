# ruff: noqa: DTZ001 (datetimes without a zone are part of what is tested)
from __future__ import annotations

import datetime as dt
import math
import timeit
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from headwater.errors import SchemaError
from headwater.schema import Checked, check, parse

UTC = dt.UTC


def column(kind: str, array: pa.Array | pa.ChunkedArray, timezone: str = "UTC") -> Checked:
    return check(parse(f"a {kind}"), pa.table({"a": array}), timezone=timezone)


def values(checked: Checked) -> list[Any]:
    assert not checked.bad, checked.bad
    assert checked.batch.schema == pa.schema([pa.field("a", checked.batch.schema.field("a").type)])
    checked.batch.validate(full=True)
    return [row["a"] for row in checked.batch.to_pylist()]


def broken(texts: list[bytes], kind: pa.DataType = pa.string()) -> pa.Array:  # noqa: B008
    """An array of text over bytes that may be no text."""
    raw = pa.array(texts, type=pa.binary() if kind == pa.string() else pa.large_binary())
    return pa.Array.from_buffers(kind, len(texts), raw.buffers())


LOSSLESS = [
    ("BIGINT", pa.array([1, None, 3], type=pa.int8()), [1, None, 3]),
    ("INT", pa.array([1, None], type=pa.uint64()), [1, None]),
    ("TINYINT", pa.array([-128, 127], type=pa.int64()), [-128, 127]),
    ("DOUBLE", pa.array([0.5, math.inf], type=pa.float32()), [0.5, math.inf]),
    ("DOUBLE", pa.array([1, 2**53 + 2]), [1.0, float(2**53 + 2)]),
    ("FLOAT", pa.array([1.5], type=pa.float16()), [1.5]),
    ("DECIMAL(5,2)", pa.array([999, None], type=pa.int64()), [Decimal("999.00"), None]),
    ("DECIMAL(5,2)", pa.array([Decimal("1.5000")], type=pa.decimal128(10, 4)), [Decimal("1.50")]),
    ("DECIMAL(5,2)", pa.array([Decimal("1.5")], type=pa.decimal256(60, 4)), [Decimal("1.50")]),
    ("STRING", pa.array(["é", None], type=pa.large_string()), ["é", None]),
    ("STRING", pa.array(["é", None], type=pa.string_view()), ["é", None]),
    ("STRING", pa.array(["é", None, "é"]).dictionary_encode(), ["é", None, "é"]),
    ("STRING", pa.chunked_array([["a"], ["b", None], []], type=pa.string()), ["a", "b", None]),
    (
        "STRING",
        pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b"]).dictionary_encode()]),
        ["a", "b"],
    ),
    ("STRING", pa.array(["x", "é", "y"]).slice(1, 1), ["é"]),
    ("STRING", pa.nulls(2), [None, None]),
    ("STRING", pa.chunked_array([], type=pa.string()), []),
    ("CHAR(3)", pa.array(["a"], type=pa.large_string()), ["a  "]),
    ("BINARY", pa.array([b"x"], type=pa.large_binary()), [b"x"]),
    ("BINARY", pa.array([b"x"], type=pa.binary_view()), [b"x"]),
    ("BINARY", pa.array([b"x"], type=pa.binary(1)), [b"x"]),
    ("DATE", pa.array([dt.date(2024, 1, 1)], type=pa.date64()), [dt.date(2024, 1, 1)]),
    (
        "TIMESTAMP",
        pa.array([1], type=pa.timestamp("s", tz="Asia/Tokyo")),
        [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)],
    ),
    (
        "TIMESTAMP",
        pa.array([1000, None], type=pa.timestamp("ns", tz="UTC")),
        [dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), None],
    ),
    ("TIMESTAMP_NTZ", pa.array([1], type=pa.timestamp("ms")), [dt.datetime(1970, 1, 1, 0, 0, 0, 1000)]),
    ("TIME(6)", pa.array([dt.time(1, 2)], type=pa.time32("s")), [dt.time(1, 2)]),
    ("INTERVAL DAY TO SECOND", pa.array([1], type=pa.duration("s")), [dt.timedelta(seconds=1)]),
    ("ARRAY<INT>", pa.array([[1], None, [], [None]], type=pa.large_list(pa.int64())), [[1], None, [], [None]]),
    ("ARRAY<INT>", pa.array([[1], None], type=pa.list_(pa.int64(), 1)), [[1], None]),
    (
        "ARRAY<STRING>",
        pa.array([["x"], ["a", "b"], None, ["c"]], type=pa.list_(pa.string_view())).slice(1),
        [["a", "b"], None, ["c"]],
    ),
    ("MAP<STRING, INT>", pa.array([[("x", 1)]] * 2, type=pa.map_(pa.string_view(), pa.int8())), [[("x", 1)]] * 2),
    ("MAP<STRING, INT>", pa.array([], type=pa.map_(pa.string(), pa.int8())), []),
    (
        "MAP<STRING, INT>",
        pa.array([[("x", 1)], None, [("y", 2)]], type=pa.map_(pa.large_string(), pa.int8())).slice(1),
        [None, [("y", 2)]],
    ),
    (
        "STRUCT<x: BIGINT, y: STRING>",
        pa.array([{"Y": "a", "x": 1}, None], type=pa.struct([("Y", pa.string()), ("x", pa.int8())])),
        [{"x": 1, "y": "a"}, None],
    ),
    ("STRUCT<x: INT NOT NULL>", pa.array([{"x": 1}, None, {"x": 2}]).slice(1), [None, {"x": 2}]),
    ("VARIANT", pa.array([{"metadata": b"m", "value": b"v"}, None]), [{"value": b"v", "metadata": b"m"}, None]),
]


@pytest.mark.parametrize(("kind", "array", "expected"), LOSSLESS)
def test_arrow_of_another_layout_is_taken_where_nothing_is_lost(
    kind: str, array: pa.Array, expected: list[Any]
) -> None:
    assert values(column(kind, array)) == expected


LOSSY = [
    ("INT", pa.array([1, 2**40]), {1: "1099511627776 does not fit INT"}),
    ("BIGINT", pa.array([2**63], type=pa.uint64()), {0: "9223372036854775808 does not fit BIGINT"}),
    ("BIGINT", pa.array([1.0, None]), {0: "expected BIGINT, got double 1.0"}),
    ("BIGINT", pa.array(["1"]), {0: "expected BIGINT, got string '1'"}),
    ("BIGINT", pa.array([True]), {0: "expected BIGINT, got bool True"}),
    ("BOOLEAN", pa.array([1]), {0: "expected BOOLEAN, got int64 1"}),
    ("DOUBLE", pa.array([1, 2**53 + 1]), {1: "9007199254740993 does not fit DOUBLE"}),
    ("DOUBLE", pa.array([Decimal("1.5")]), {0: "expected DOUBLE, got decimal128(2, 1) 1.5"}),
    ("FLOAT", pa.array([0.5]), {0: "expected FLOAT, got double 0.5"}),
    ("DECIMAL(4,2)", pa.array([99, 100]), {1: "100 does not fit DECIMAL(4,2)"}),
    ("DECIMAL(4,2)", pa.array([Decimal("1.500"), Decimal("1.501")]), {1: "1.501 does not fit DECIMAL(4,2)"}),
    ("DECIMAL(4,2)", pa.array([1.5]), {0: "expected DECIMAL(4,2), got double 1.5"}),
    ("STRING", pa.array([b"x"]), {0: "expected STRING, got binary b'x'"}),
    ("BINARY", pa.array(["x"]), {0: "expected BINARY, got string 'x'"}),
    ("STRING", broken([b"a", b"b\xff"]), {1: "invalid UTF-8 at byte 1"}),
    ("STRING", broken([b"\xff", b"b"], pa.large_string()), {0: "invalid UTF-8 at byte 0"}),
    (
        "ARRAY<STRING>",
        pa.ListArray.from_arrays([0, 1, 3], broken([b"a", b"b", b"\xff"])),
        {1: "a[1]: invalid UTF-8 at byte 0"},
    ),
    ("VARCHAR(2)", pa.array(["ab", "abc"]), {1: "'abc' of 3 characters does not fit VARCHAR(2)"}),
    ("DATE", pa.array([dt.datetime(2024, 1, 1)]), {0: "expected DATE, got timestamp[us] 2024-01-01 00:00:00"}),
    ("DATE", pa.array([0, 2932897], type=pa.int32()).cast(pa.date32()), {1: "10000-01-01 does not fit DATE"}),
    ("TIMESTAMP", pa.array([dt.date(2024, 1, 1)]), {0: "expected TIMESTAMP, got date32[day] 2024-01-01"}),
    ("TIMESTAMP", pa.array([0]), {0: "expected TIMESTAMP, got int64 0"}),
    (
        "TIMESTAMP",
        pa.array([0, 253402300800], type=pa.timestamp("s", tz="UTC")),
        {1: "10000-01-01 00:00:00.000000Z does not fit TIMESTAMP"},
    ),
    ("TIMESTAMP", pa.array([1000, 1001], type=pa.timestamp("ns", tz="UTC")), {1: "1001 ns does not fit TIMESTAMP"}),
    (
        "TIMESTAMP",
        pa.array([2**60, 0], type=pa.timestamp("s")),
        {0: "1152921504606846976 s does not fit TIMESTAMP"},
    ),
    (
        "TIMESTAMP_NTZ",
        pa.array([0], type=pa.timestamp("us", tz="UTC")),
        {0: "expected TIMESTAMP_NTZ, got timestamp[us, tz=UTC] 1970-01-01 00:00:00+00:00"},
    ),
    ("TIME(3)", pa.array([1_000_000, 1000], type=pa.time64("ns")), {1: "00:00:00.000001 does not fit TIME(3)"}),
    (
        "INTERVAL DAY TO SECOND",
        pa.array([1000, 1001], type=pa.duration("ns")),
        {1: "1001 ns does not fit INTERVAL DAY TO SECOND"},
    ),
    ("ARRAY<INT>", pa.array([[1], [2, 2**40]]), {1: "a[1]: 1099511627776 does not fit INT"}),
    ("ARRAY<INT>", pa.array([1]), {0: "expected ARRAY<INT>, got int64 1"}),
    (
        "MAP<STRING, INT>",
        pa.array([[("a", 2**40)], []], type=pa.map_(pa.string(), pa.int64())),
        {0: "a[0]: 1099511627776 does not fit INT"},
    ),
    ("STRUCT<x: INT NOT NULL>", pa.array([{"x": 1}, None, {"x": None}]), {2: "a.x: cannot be null"}),
    ("STRUCT<x: INT, y: INT>", pa.array([{"x": 1}, None]), {0: "a.y: is missing"}),
    ("STRUCT<x: INT>", pa.array([{"x": 1, "z": 1}, None]), {0: "a.z: is not in the schema"}),
    ("VARIANT", pa.array([{"value": b""}]), {0: "a.metadata: is missing"}),
]


@pytest.mark.parametrize(("kind", "array", "expected"), LOSSY)
def test_arrow_that_would_lose_something_is_refused_row_by_row(
    kind: str, array: pa.Array, expected: dict[int, str]
) -> None:
    checked = column(kind, array)
    assert {bad.row: bad.reason for bad in checked.bad} == expected
    assert checked.batch.num_rows == len(array) - len(expected)


def test_times_at_the_edges_keep_their_place() -> None:
    kind = pa.timestamp("us", tz="UTC")
    limits = [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]
    assert values(column("TIMESTAMP", pa.array(limits, type=kind))) == limits
    outside = pa.array([-62135596800000001, 253402300800000000], type=pa.int64()).cast(kind)
    assert [bad.row for bad in column("TIMESTAMP", outside).bad] == [0, 1]


def test_zoneless_arrow_timestamps_are_taken_in_the_time_zone() -> None:
    noon = pa.array([dt.datetime(2024, 7, 1, 12), None], type=pa.timestamp("ms"))
    assert values(column("TIMESTAMP", noon, "Europe/Oslo")) == [dt.datetime(2024, 7, 1, 10, tzinfo=UTC), None]


def test_a_missing_or_unknown_or_doubled_column_fails_every_row() -> None:
    schema = parse("id BIGINT, name STRING")
    two = [1, 2]
    assert [(bad.column, bad.reason) for bad in check(schema, pa.table({"id": two})).bad] == [
        ("name", "is missing")
    ] * 2
    extra = pa.table({"id": two, "NAME": ["a", "b"], "x": two})
    assert [(bad.column, bad.reason) for bad in check(schema, extra).bad] == [("x", "is not in the schema")] * 2
    doubled = pa.table([two, two, ["a", "b"]], names=["id", "ID", "name"])
    assert [(bad.column, bad.reason) for bad in check(schema, doubled).bad] == [("id", "is given twice")] * 2


def test_nulls_are_refused_in_columns_of_frames() -> None:
    schema = parse("id BIGINT, n INT NOT NULL")
    rows = pa.table({"id": [1, None, 3], "n": [None, 1, 2]})
    checked = check(schema, rows, required=["id"])
    assert [(bad.row, bad.column, bad.reason) for bad in checked.bad] == [
        (0, "n", "cannot be null"),
        (1, "id", "a key column cannot be null"),
    ]
    assert checked.batch.to_pylist() == [{"id": 3, "n": 2}]


def test_arrow_keeps_nan_apart_from_null() -> None:
    kept = values(column("DOUBLE", pa.array([math.nan, None])))
    assert math.isnan(kept[0])
    assert kept[1] is None


def test_a_variant_keeps_the_mark_by_which_spark_knows_it() -> None:
    plain = pa.array([{"value": b"v", "metadata": b"m"}])
    field = column("VARIANT", plain).batch.schema.field("a").type.field("metadata")
    assert field.metadata == {b"variant": b"true"}


def test_a_record_batch_a_reader_and_a_stream_are_rows() -> None:
    schema = parse("a BIGINT")
    batch = pa.record_batch({"a": [1, 2]})
    for rows in (batch, pa.Table.from_batches([batch, batch]).slice(1, 2), batch.slice(0, 2)):
        assert check(schema, rows).batch.num_rows == 2
    assert check(schema, pa.RecordBatchReader.from_batches(batch.schema, [batch])).batch.equals(
        check(schema, batch).batch
    )


def test_damaged_arrow_is_an_error_and_not_a_crash() -> None:
    offsets = pa.array([0, 5, 2], type=pa.int32()).buffers()[1]
    damaged = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcde")])
    with pytest.raises(SchemaError, match="damaged"):
        column("STRING", damaged)


def test_a_pandas_frame_is_rows() -> None:
    schema = parse(
        "i BIGINT, n INT, d DOUBLE, s STRING, at TIMESTAMP, day DATE, c STRING, m DECIMAL(5,1), t ARRAY<INT>"
    )
    frame = pd.DataFrame(
        {
            "I": [1, 2],
            "n": pd.array([1, None], dtype="Int32"),
            "d": [1.5, math.nan],
            "s": ["é", None],
            "at": pd.to_datetime(["2024-01-01T00:00:00Z", None], format="ISO8601"),
            "day": [dt.date(2024, 1, 1), pd.NaT],
            "c": pd.Categorical(["x", None]),
            "m": [Decimal("1.5"), math.nan],
            "t": [[1, 2], np.array([3])],
        },
        index=[7, 7],
    )
    checked = check(schema, frame)
    assert not checked.bad
    first, second = checked.batch.to_pylist()
    assert list(first.values()) == [
        1,
        1,
        1.5,
        "é",
        dt.datetime(2024, 1, 1, tzinfo=UTC),
        dt.date(2024, 1, 1),
        "x",
        Decimal("1.5"),
        [1, 2],
    ]
    assert list(second.values()) == [2, None, None, None, None, None, None, None, [3]]


def test_pandas_mistakes_are_refused_row_by_row() -> None:
    schema = parse("a BIGINT, b STRING")
    frame = pd.DataFrame({"a": [1, "x", None], "b": ["p", "q", 5]})
    checked = check(schema, frame, required=["a"])
    assert [(bad.row, bad.column, bad.reason) for bad in checked.bad] == [
        (1, "a", "expected BIGINT, got str 'x'"),
        (2, "a", "a key column cannot be null"),
    ]
    whole_numbers_with_a_gap = pd.DataFrame({"a": [1, None], "b": ["p", "q"]})
    assert check(schema, whole_numbers_with_a_gap).bad[0].reason == "expected BIGINT, got double 1.0"
    numbered = pd.DataFrame([[1, "p"]])
    assert check(schema, numbered).bad[0].reason == "is missing"


def test_a_pandas_timestamp_with_nanoseconds_is_refused() -> None:
    frame = pd.DataFrame({"a": pd.to_datetime([0, 1], unit="ns", utc=True)})
    assert [(bad.row, bad.reason) for bad in check(parse("a TIMESTAMP"), frame).bad] == [
        (1, "1 ns does not fit TIMESTAMP")
    ]


def test_a_polars_frame_is_rows() -> None:
    schema = parse(
        "i INT, s STRING, at TIMESTAMP_NTZ, t ARRAY<STRING>, x STRUCT<p: BIGINT>, c STRING, d DECIMAL(9,2), h TIME"
    )
    frame = pl.DataFrame(
        {
            "i": [1, None],
            "s": ["a string longer than twelve bytes", None],
            "at": [dt.datetime(2024, 1, 1), None],
            "t": [["é"], None],
            "x": [{"p": 1}, None],
            "c": pl.Series(["u", None], dtype=pl.Categorical),
            "d": [Decimal("1.5"), None],
            "h": [dt.time(1, 2, 3), None],
        }
    )
    checked = check(schema, frame)
    assert not checked.bad
    first, second = checked.batch.to_pylist()
    assert list(first.values()) == [
        1,
        "a string longer than twelve bytes",
        dt.datetime(2024, 1, 1),
        ["é"],
        {"p": 1},
        "u",
        Decimal("1.50"),
        dt.time(1, 2, 3),
    ]
    assert set(second.values()) == {None}


def _seconds(schema_text: str, rows: object) -> float:
    schema = parse(schema_text)
    return min(timeit.repeat(lambda: check(schema, rows, required=["id"]), number=20, repeat=5)) / 20


def test_arrow_that_fits_already_is_checked_in_microseconds() -> None:
    columns = {"id": list(range(1000)), "text": ["x" * 84] * 1000, "n": [1.5] * 1000}
    assert _seconds("id BIGINT, text STRING, n DOUBLE", pa.record_batch(columns)) < 0.001


def test_a_thousand_dicts_are_checked_in_milliseconds() -> None:
    at = dt.datetime(2024, 1, 1, tzinfo=UTC)
    rows = [{"id": number, "text": "x" * 76, "n": 1.5, "at": at} for number in range(1000)]
    assert _seconds("id BIGINT, text STRING, n DOUBLE, at TIMESTAMP", rows) < 0.02
