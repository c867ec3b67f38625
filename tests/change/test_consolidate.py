"""Consolidation: the same rows add up, what is zero is gone, and sameness is that of bits."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import combine, consolidate, identical
from tests.state.changes import SCHEMA, changes, table, total


@pytest.fixture(autouse=True, params=["few rows", "many rows"])
def _size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything holds for many rows too, which are told apart by their fingerprints first."""
    if request.param == "many rows":
        monkeypatch.setattr(import_module("headwater.change.consolidate"), "_FEW", 0)


def weights(values: list[Any], kind: pa.DataType, weight: list[int] | None = None) -> list[int]:
    """What is left of the weights of a table with one column of these values."""
    column = pa.array(values, type=kind)
    given = pa.table({"value": column, WEIGHT: weight or [1] * len(values)})
    left: list[int] = consolidate(given).column(WEIGHT).to_pylist()
    return left


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("hashed", [True, False])
@pytest.mark.parametrize("hashes", [1 << 62, 5])
def test_the_sum_is_that_of_counting_row_by_row(seed: int, hashed: bool, hashes: int) -> None:
    random = np.random.default_rng(seed)
    given = changes(random, rows=int(random.integers(0, 200)), keys=int(random.integers(1, 60)), hashes=hashes)
    given = given if hashed else given.drop_columns([HASH])
    cuts = sorted(random.integers(0, given.num_rows + 1, 3).tolist())
    chunked = pa.concat_tables(
        [given.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, given.num_rows], strict=True)]
    )
    done = consolidate(chunked)
    assert done.schema == given.schema
    assert total(done) == total(given)
    assert done.num_rows == len(total(given))


def test_a_row_stands_where_it_stood_first() -> None:
    given = pa.table({"a": [3, 1, 3, 2, 1], WEIGHT: [1, 1, 1, 1, -1], "b": [0, 0, 0, 0, 0]})
    assert consolidate(given).to_pydict() == {"a": [3, 2], WEIGHT: [2, 1], "b": [0, 0]}


def test_what_needs_nothing_is_returned_as_it_is() -> None:
    given = pa.table({"a": [1, 1, 2], HASH: [1, 2, 3], WEIGHT: [1, -1, 5]})
    assert consolidate(given) is given
    assert consolidate(given.slice(0, 1)).equals(given.slice(0, 1))
    assert consolidate(given.slice(0, 0)).num_rows == 0


def test_a_single_row_of_weight_zero_is_gone() -> None:
    assert consolidate(pa.table({"a": [1], WEIGHT: [0]})).num_rows == 0
    assert consolidate(pa.table({"a": [1, 2], HASH: [1, 2], WEIGHT: [0, 1]})).to_pydict()["a"] == [2]


def test_rows_without_columns_are_all_the_same() -> None:
    assert consolidate(pa.table({WEIGHT: [1, 2, 4]})).to_pydict() == {WEIGHT: [7]}
    assert consolidate(pa.table({WEIGHT: [1, -1]})).num_rows == 0


def test_columns_of_the_same_name_are_told_apart() -> None:
    given = pa.Table.from_arrays([pa.array([1, 1]), pa.array([1, 2]), pa.array([1, 1])], names=["a", "a", WEIGHT])
    assert consolidate(given).num_rows == 2


def test_equal_hashes_do_not_make_rows_equal() -> None:
    given = pa.table({"a": [1, 2, 1], HASH: [7, 7, 7], WEIGHT: [1, 1, 1]})
    assert consolidate(given).to_pydict() == {"a": [1, 2], HASH: [7, 7], WEIGHT: [2, 1]}


def test_a_negative_zero_is_not_zero() -> None:
    assert weights([0.0, -0.0, 0.0], pa.float64()) == [2, 1]
    assert weights([0.0, -0.0, 0.0], pa.float32()) == [2, 1]


def _nan(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def test_every_nan_is_the_same() -> None:
    odd = _nan(0xFFF8000000000001)
    column = pa.array(np.array([_nan(0x7FF8000000000000), odd, 1.0]))
    done = consolidate(pa.table({"value": column, WEIGHT: [1, 1, 1]}))
    assert done.column(WEIGHT).to_pylist() == [2, 1]


NESTED_FLOATS: dict[str, tuple[pa.DataType, Callable[[float | None], Any]]] = {
    "list": (pa.list_(pa.float64()), lambda x: [1.0, x]),
    "struct": (pa.struct([("f", pa.float64())]), lambda x: {"f": x}),
    "map": (pa.map_(pa.string(), pa.float64()), lambda x: [("k", x)]),
    "list of structs": (pa.list_(pa.struct([("f", pa.float32())])), lambda x: [{"f": x}, None]),
    "struct of lists": (pa.struct([("l", pa.list_(pa.float64()))]), lambda x: {"l": [x]}),
    "map of lists": (pa.map_(pa.int32(), pa.list_(pa.float64())), lambda x: [(1, [x]), (2, None)]),
}


@pytest.mark.parametrize("name", NESTED_FLOATS)
def test_nested_floats_are_compared_by_bits_too(name: str) -> None:
    kind, made = NESTED_FLOATS[name]
    values = [made(0.0), made(-0.0), made(float("nan")), made(-float("nan")), made(0.0), made(None), None, None]
    assert weights(values, kind) == [2, 1, 2, 1, 2]
    sliced = pa.table({"value": pa.array(values, type=kind), WEIGHT: [1] * len(values)}).slice(1)
    assert consolidate(sliced).column(WEIGHT).to_pylist() == [1, 2, 1, 1, 2]


def test_a_null_in_a_list_is_not_a_struct_of_nulls() -> None:
    kind = pa.list_(pa.struct([("f", pa.float64())]))
    assert weights([[None], [{"f": None}], [None]], kind) == [2, 1]


def test_the_order_of_a_maps_entries_does_not_matter() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    assert weights([[("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [("a", 2), ("b", 1)]], kind) == [2, 1]


def test_nothing_is_not_a_struct_of_nothings() -> None:
    kind = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))])
    values = [None, {"a": None, "b": None}, {"a": None, "b": {"c": None}}, None]
    assert weights(values, kind) == [2, 1, 1]
    assert weights([None, {}, {}], pa.struct([])) == [1, 2]


def test_null_is_neither_empty_nor_zero() -> None:
    assert weights([None, "", None], pa.string()) == [2, 1]
    assert weights([None, 0, None], pa.int64()) == [2, 1]
    assert weights([None, [], [None], None], pa.list_(pa.int64())) == [2, 1, 1]


KINDS: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int8(): [1, -1],
    pa.int16(): [1, -1],
    pa.int32(): [1, -1],
    pa.int64(): [1, -1],
    pa.float32(): [1.5, 2.5],
    pa.float64(): [1.5, 2.5],
    pa.decimal128(38, 18): [Decimal("1.5"), Decimal("-12345678901234567890.000000000000000001")],
    pa.string(): ["a", "b"],
    pa.binary(): [b"a", b"\0"],
    pa.date32(): [date(2024, 1, 1), date(1969, 1, 1)],
    pa.timestamp("us", tz="UTC"): [datetime(2024, 1, 1), datetime(1969, 1, 1)],  # noqa: DTZ001
    pa.timestamp("us"): [datetime(2024, 1, 1), datetime(1969, 1, 1)],  # noqa: DTZ001
    pa.time64("ns"): [time(1), time(2)],
    pa.duration("us"): [timedelta(1), timedelta(2)],
    pa.list_(pa.string()): [["a"], ["a", None]],
    pa.struct([("a", pa.int64())]): [{"a": 1}, {"a": None}],
    pa.map_(pa.string(), pa.decimal128(20, 2)): [[("a", Decimal(1))], [("a", None)]],
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_type_can_be_consolidated_and_compared(kind: pa.DataType) -> None:
    one, other = KINDS[kind]
    assert weights([one, other, None, one, None], kind) == [2, 1, 2]
    left = pa.table({"v": pa.array([one, one, one, None], type=kind)})
    right = pa.table({"v": pa.array([one, other, None, None], type=kind)})
    assert identical(left, right).tolist() == [True, False, False, True]


def test_null_columns_are_columns() -> None:
    nulls = pa.table({"n": pa.nulls(3), "s": pa.array([{"n": None}, None, None], pa.struct([("n", pa.null())]))})
    assert weights([None, None], pa.null()) == [2]
    assert identical(nulls, nulls).tolist() == [True] * 3
    assert identical(nulls.slice(0, 2), nulls.slice(1)).tolist() == [False, True]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if len(pa.array([None], kind).buffers()) == 2], ids=str)
def test_what_lies_beneath_a_null_does_not_matter(kind: pa.DataType) -> None:
    beneath = pa.py_buffer(bytes(range(2 * 16)))
    nulls = pa.Array.from_buffers(kind, 2, [pa.py_buffer(b"\0"), beneath])
    rows = pa.table({"value": nulls, WEIGHT: [1, 1]})
    assert consolidate(rows).column(WEIGHT).to_pylist() == [2]
    assert consolidate(rows.append_column(HASH, pa.array([7, 7]))).column(WEIGHT).to_pylist() == [2]


def test_rows_are_identical_only_if_all_columns_are() -> None:
    left = pa.table({"a": [1, 1, 2], "b": [0.0, 0.0, float("nan")]})
    right = pa.table({"a": [1, 1, 2], "b": [0.0, -0.0, float("nan")]})
    assert identical(left, right).tolist() == [True, False, True]
    assert identical(pa.concat_tables([left.slice(0, 1), left.slice(1)]), right).tolist() == [True, False, True]
    assert identical(left.slice(0, 0), right.slice(0, 0)).tolist() == []


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("ordered", [True, False])
def test_combining_adds_up_consolidated_tables(seed: int, ordered: bool) -> None:
    random = np.random.default_rng(seed)
    hashes = [1 << 62, 4][seed % 2]
    parts = [consolidate(changes(random, rows=40, keys=30, hashes=hashes)) for _ in range(seed % 5 + 1)]
    parts = [part.take(np.argsort(part.column(HASH).to_numpy())) for part in parts]
    done = combine(parts, ordered=ordered)
    assert done.schema == SCHEMA
    assert total(done) == total(*parts)
    assert done.num_rows == len(total(*parts))
    if ordered:
        assert done.column(HASH).to_pylist() == sorted(done.column(HASH).to_pylist())


def test_combining_looks_only_at_rows_whose_hash_is_in_several_tables() -> None:
    """Which shows in that the repeated row, against the rules, is left alone."""
    broken = table([(1, "a", None, 5, 1), (1, "a", None, 5, 1)])
    other = table([(2, "b", None, 6, 1)])
    assert combine([broken, other], ordered=True).num_rows == 3
