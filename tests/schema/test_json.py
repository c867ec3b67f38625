# ruff: noqa: DTZ001 (datetimes without a zone are part of what is tested)
from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.schema import check, parse
from headwater.schema.json import from_json, loads, to_json

UTC = dt.UTC
EVERYTHING = parse(
    "bool BOOLEAN, tiny TINYINT, whole BIGINT, single FLOAT, double DOUBLE, money DECIMAL(38,4), text STRING,"
    "fixed CHAR(4), bytes BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, clock TIME(6),"
    "length INTERVAL DAY TO SECOND, tags ARRAY<DATE>, names MAP<STRING, DECIMAL(5,1)>, days MAP<DATE, DOUBLE>,"
    "inner STRUCT<x: BINARY, `Y y`: ARRAY<TIMESTAMP>>, v VARIANT"
)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
small = st.decimals(-9999, 9999, places=1, allow_nan=False).map(lambda number: number.quantize(Decimal("0.1")))
instants = st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29)).map(lambda at: at.replace(tzinfo=UTC))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "tiny": st.integers(-128, 127),
    "whole": st.integers(-(2**63), 2**63 - 1),
    "single": st.floats(width=32),
    "double": st.floats(),
    "money": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(f"{number}E-4")),
    "text": text,
    "fixed": st.text("ab é", max_size=4),
    "bytes": st.binary(max_size=5),
    "day": st.dates(),
    "at": instants,
    "local": st.datetimes(),
    "clock": st.times(),
    "length": st.timedeltas(dt.timedelta(days=-100_000_000), dt.timedelta(days=100_000_000)),
    "tags": st.lists(st.none() | st.dates(), max_size=3),
    "names": st.dictionaries(text, st.none() | small, max_size=3),
    "days": st.dictionaries(st.dates(), st.floats(allow_nan=False), max_size=2),
    "inner": st.fixed_dictionaries(
        {"x": st.none() | st.binary(max_size=3), "Y y": st.none() | st.lists(instants, max_size=2)}
    ),
    "v": st.fixed_dictionaries({"value": st.binary(max_size=3), "metadata": st.binary(max_size=3)}),
}
rows = st.lists(st.fixed_dictionaries({name: st.none() | kind for name, kind in VALUES.items()}), max_size=4)


@settings(deadline=None)
@given(rows)
def test_any_rows_survive_json(rows: list[dict[str, Any]]) -> None:
    checked = check(EVERYTHING, rows)
    assert not checked.bad
    again = check(EVERYTHING, [from_json(EVERYTHING, loads(line)) for line in to_json(checked.batch)])
    assert not again.bad
    assert _comparable(again.batch) == _comparable(checked.batch)


@settings(deadline=None)
@given(rows)
def test_any_rows_that_were_stored_are_stored_the_same_again(rows: list[dict[str, Any]]) -> None:
    batch = check(EVERYTHING, rows).batch
    batch.validate(full=True)
    for source in (batch, pa.Table.from_batches([batch.slice(0, 1), batch.slice(1)]), batch.to_pylist()):
        again = check(EVERYTHING, source)
        assert not again.bad
        assert _comparable(again.batch) == _comparable(batch)


def _comparable(batch: pa.RecordBatch) -> str:
    """The rows as text, in which NaN equals itself and -0.0 differs from 0.0."""
    return repr(batch.to_pylist())


def line(schema_text: str, value: Any) -> Any:
    batch = check(parse(f"a {schema_text}"), [{"a": value}]).batch
    return json.loads(next(to_json(batch)))["a"]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("TIMESTAMP", dt.datetime(2024, 1, 2, 3, 4, 5, 60, tzinfo=UTC), "2024-01-02T03:04:05.000060Z"),
        ("TIMESTAMP_NTZ", dt.datetime(2024, 1, 2), "2024-01-02T00:00:00"),
        ("DATE", dt.date(2024, 1, 2), "2024-01-02"),
        ("TIME", dt.time(1, 2, 3, 400000), "01:02:03.4"),
        ("DECIMAL(5,2)", Decimal("1.5"), "1.50"),
        ("BINARY", b"\xff", "/w=="),
        ("DOUBLE", math.nan, "NaN"),
        ("DOUBLE", -math.inf, "-Infinity"),
        ("FLOAT", 0.1, 0.1),
        ("INTERVAL DAY TO SECOND", dt.timedelta(days=1, hours=2, seconds=3.5), "P1DT2H0M3.5S"),
        ("INTERVAL DAY TO SECOND", dt.timedelta(seconds=-1), "-P0DT0H0M1S"),
        ("INTERVAL DAY", dt.timedelta(days=7), "P7D"),
        ("MAP<STRING, INT>", {"k": 1}, {"k": 1}),
        ("MAP<INT, INT>", {1: 2}, [[1, 2]]),
        ("STRUCT<x: DATE>", {"x": dt.date(2024, 1, 1)}, {"x": "2024-01-01"}),
        ("STRING", "é\n", "é\n"),
    ],
)
def test_a_value_is_written_as(kind: str, value: object, expected: object) -> None:
    assert line(kind, value) == expected


def test_dates_and_times_of_any_year_are_written() -> None:
    days = [2_932_897, -719_163, 0]
    microseconds = pa.array([86_400_000_000 * day for day in days])
    columns = [pa.array(days, pa.int32()).cast(pa.date32()), microseconds.cast(pa.timestamp("us", "UTC"))]
    written = [json.loads(line) for line in to_json(pa.table(columns, names=["date", "time"]))]
    dates = ["10000-01-01", "0000-12-31", "1970-01-01"]
    assert written == [{"date": date, "time": f"{date}T00:00:00Z"} for date in dates]


def test_a_line_is_compact_and_a_table_gives_one_per_row() -> None:
    table = pa.table({"a": pa.chunked_array([[1], [2]]), "b": ["é", None]})
    assert list(to_json(table)) == ['{"a":1,"b":"é"}', '{"a":2,"b":null}']


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("TIMESTAMP", '"2024-01-02T03:04:05+02:00"', dt.datetime(2024, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("TIMESTAMP", '"2024-01-02 03:04:05.120000000Z"', dt.datetime(2024, 1, 2, 3, 4, 5, 120000, tzinfo=UTC)),
        ("DECIMAL(5,2)", "1.10", Decimal("1.10")),
        ("DECIMAL(5,2)", '"1.1"', Decimal("1.10")),
        (
            "DECIMAL(38,0)",
            "12345678901234567890123456789012345678",
            Decimal("12345678901234567890123456789012345678"),
        ),
        ("DOUBLE", "1.10", 1.1),
        ("DOUBLE", "1", 1.0),
        ("INTERVAL DAY TO SECOND", "90.5", dt.timedelta(seconds=90.5)),
        ("INTERVAL DAY TO SECOND", '"PT1M"', dt.timedelta(minutes=1)),
        ("INTERVAL DAY TO SECOND", '"-P1DT0.000001S"', -dt.timedelta(days=1, microseconds=1)),
        ("TIME", '"01:02"', dt.time(1, 2)),
        ("MAP<DATE, INT>", '{"2024-01-01": 1}', [(dt.date(2024, 1, 1), 1)]),
    ],
)
def test_json_is_read_as(kind: str, text: str, expected: object) -> None:
    schema = parse(f"a {kind}")
    checked = check(schema, [from_json(schema, loads(f'{{"A": {text}}}'))])
    assert not checked.bad
    assert checked.batch.to_pylist() == [{"a": expected}]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("BIGINT", "1.0"),
        ("BIGINT", '"1"'),
        ("DOUBLE", '"1.5"'),
        ("DOUBLE", "1e999"),
        ("DECIMAL(5,2)", '"abc"'),
        ("DECIMAL(5,2)", '"NaN"'),
        ("DECIMAL(5,2)", "1.234"),
        ("BINARY", '"not base64!"'),
        ("DATE", '"2024-13-01"'),
        ("DATE", '"2024-01-01T00:00:00"'),
        ("TIMESTAMP", '"2024-01-01"'),
        ("TIMESTAMP", '"2024-01-01T00:00:00.0000001Z"'),
        ("TIMESTAMP", "1704067200"),
        ("TIMESTAMP_NTZ", '"2024-01-01T00:00:00Z"'),
        ("TIME", '"25:00"'),
        ("TIME", '"24:00:00.000000001"'),
        ("INTERVAL DAY TO SECOND", '"P"'),
        ("INTERVAL DAY TO SECOND", '"PT"'),
        ("INTERVAL DAY TO SECOND", '"P1Y"'),
        ("INTERVAL DAY TO SECOND", "0.0000001"),
        ("INTERVAL DAY TO SECOND", "1e-999999"),
        ("INTERVAL DAY TO SECOND", "1e30"),
        ("INTERVAL DAY TO SECOND", "true"),
        ("ARRAY<DATE>", '"2024-01-01"'),
        ("MAP<INT, INT>", '{"1": 2}'),
        ("MAP<INT, INT>", "[1]"),
        ("STRUCT<x: INT>", "[1]"),
        ("STRUCT<x: INT>", '{"x": 1, "y": 2}'),
        ("VARIANT", '"x"'),
    ],
)
def test_what_does_not_convert_is_left_for_the_check_to_refuse(kind: str, text: str) -> None:
    schema = parse(f"a {kind}")
    (bad,) = check(schema, [from_json(schema, loads(f'{{"a": {text}}}'))]).bad
    assert bad.column == "a"


def test_a_time_with_nanoseconds_survives() -> None:
    schema = parse("a TIME(9)")
    checked = check(schema, pa.table({"a": pa.array([1, 86_399_999_999_999, None], type=pa.time64("ns"))}))
    lines = list(to_json(checked.batch))
    assert lines == ['{"a":"00:00:00.000000001"}', '{"a":"23:59:59.999999999"}', '{"a":null}']
    assert check(schema, [from_json(schema, loads(each)) for each in lines]).batch.equals(checked.batch)


def test_unknown_names_stay_for_the_check_to_refuse() -> None:
    schema = parse("a INT")
    assert from_json(schema, {"a": 1, "b": "x"}) == {"a": 1, "b": "x"}
