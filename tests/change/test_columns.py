"""Rows of an earlier schema of a topic, seen under a later one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headwater.change.columns import altered, as_text, conformed, marked, schema_of, schema_text
from headwater.errors import DeclarationChanged

FIRST = pa.schema([("_op", pa.int8()), ("id", pa.int64()), ("a", pa.int32()), ("b", pa.string())])
ROWS: list[dict[str, Any]] = [
    {"_op": 1, "id": 1, "a": 5, "b": "x"},
    {"_op": 2, "id": 2, "a": None, "b": None},
]


def later(number: int, columns: dict[str, pa.DataType], **said: dict[str, str]) -> pa.Schema:
    schema = pa.schema([("_op", pa.int8()), ("id", pa.int64()), *columns.items()])
    return marked(schema, number, said.get("ids", {}), said.get("defaults", {}))


@pytest.mark.parametrize("kind", [pa.Table, pa.RecordBatch])
def test_columns_are_found_by_their_ids_and_those_that_are_new_are_null_or_their_default(kind: Any) -> None:
    rows = kind.from_pylist(ROWS, schema=FIRST)
    columns = {"c": pa.string(), "b": pa.int64(), "a": pa.float64()}
    wanted = later(1, columns, ids={"c": "b", "b": "b#2"}, defaults={"b": "7"})
    assert conformed(rows, wanted).to_pylist() == [
        {"_op": 1, "id": 1, "c": "x", "b": 7, "a": 5.0},
        {"_op": 2, "id": 2, "c": None, "b": None, "a": None},
    ]


def test_what_is_of_the_same_alteration_is_left_as_it_is() -> None:
    rows = pa.Table.from_pylist(ROWS, schema=FIRST)
    assert conformed(rows, FIRST) is rows


def test_what_was_written_under_a_later_schema_is_not_read_by_an_earlier() -> None:
    rows = pa.Table.from_pylist([], schema=later(2, {"a": pa.int64()}))
    with pytest.raises(DeclarationChanged) as told:
        conformed(rows, later(1, {"a": pa.int32()}))
    assert told.value.retry


def test_nested_columns_become_wider_inside() -> None:
    kind, wider = pa.list_(pa.struct([("x", pa.int16())])), pa.list_(pa.struct([("x", pa.float64())]))
    rows = pa.table({"id": pa.array([1, 2]), "n": pa.array([[{"x": 3}, None], None], kind)})
    made = conformed(rows, marked(pa.schema([("id", pa.int64()), ("n", wider)]), 1, {}, {}))
    assert made.column("n").to_pylist() == [[{"x": 3.0}, None], None]


def test_large_whole_numbers_become_the_nearest_float_as_sparks_do() -> None:
    rows = pa.table({"n": pa.array([(1 << 53) + 1, -(1 << 62) - 1])})
    made = conformed(rows, marked(pa.schema([("n", pa.float64())]), 1, {}, {}))
    assert made.column("n").to_pylist() == [float((1 << 53) + 1), float(-(1 << 62) - 1)]


def test_a_default_stays_the_same_value_when_its_column_becomes_wider() -> None:
    assert as_text("0.1", pa.float32(), pa.float64()) == "0.10000000149011612"
    assert as_text("5", pa.int32(), pa.decimal128(22, 2)) == "5.00"
    assert as_text("true", pa.bool_(), pa.string()) == "true"


def test_marks_travel_as_text() -> None:
    schema = later(3, {"a": pa.int64()}, ids={"a": "b"})
    assert schema_of(schema_text(schema)).equals(schema, check_metadata=True)
    assert (altered(schema), altered(FIRST)) == (3, 0)
