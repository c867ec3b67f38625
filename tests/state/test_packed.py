"""Columns in fewer bytes: every value comes back, whatever batches it was packed with."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.change import HASH, WEIGHT
from headwater.errors import Unavailable
from headwater.state import Arrangement, Run, RunFile, packed
from headwater.state.files import LocalStateFiles
from headwater.state.open_run import open_run
from headwater.state.packed import Packing, unpacked, unpacked_schema

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "byte": (pa.int8(), [0, -128, 127]),
    "small": (pa.int16(), [0, -128, 127, 128, -(2**15), 2**15 - 1]),
    "int": (pa.int32(), [0, 127, 128, 2**15, -(2**15) - 1, 2**31 - 1, -(2**31)]),
    "long": (pa.int64(), [0, -128, -129, 2**15, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)]),
    "money": (pa.decimal128(12, 2), [Decimal("0.00"), Decimal("-1.28"), Decimal("9999999999.99")]),
    "huge": (
        pa.decimal128(38, 0),
        [Decimal(x) for x in (0, -1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**38 - 1)],
    ),
    "day": (
        pa.date32(),
        [date(1970, 1, 1), date(2059, 9, 18), date(2059, 9, 19), date(1, 1, 1), date(9999, 12, 31)],
    ),
    "text": (pa.string(), ["", "a", "ß"]),
    "real": (pa.float64(), [0.0, -0.0, float("inf")]),
    "many": (pa.list_(pa.int64()), [[], [1], [None, 2**40]]),
    "void": (pa.null(), [None]),
    "voids": (pa.list_(pa.struct([("n", pa.null())])), [[], [None], [{"n": None}]]),
}
SCHEMA = pa.schema(
    [*(pa.field(name, kind) for name, (kind, _) in COLUMNS.items()), (HASH, pa.int64()), (WEIGHT, pa.int64())]
)


@pytest.fixture(autouse=True)
def _packed_from_the_first_row_or_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_ROWS", 1)


def rows(random: Random, count: int, most: int) -> pa.Table:
    """Rows with the first `most` of each column's values, and nulls if any; hashes ascend."""
    columns = []
    for kind, values in COLUMNS.values():
        some = [*values[: random.randint(1, most)], *([None] if random.random() < 0.5 else [])]
        columns.append(pa.array([random.choice(some) for _ in range(count)], kind))
    hashes = sorted(random.sample(range(-1000, 1000), count))
    weights = [random.choice([1, 1, -1, 300]) for _ in range(count)]
    return pa.Table.from_arrays([*columns, pa.array(hashes), pa.array(weights)], schema=SCHEMA)


@pytest.mark.parametrize("seed", range(60))
def test_rows_come_back_as_they_were_whatever_else_was_packed_before(seed: int) -> None:
    random = Random(seed)
    tables = [rows(random, random.randint(1, 30), random.randint(1, 8)) for _ in range(random.randint(1, 4))]
    tables = [pa.concat_tables([one.slice(random.randint(0, one.num_rows - 1)), one]) for one in tables]
    batches = [batch for table in tables for batch in table.to_batches()]
    packing, made, said = Packing(SCHEMA), [], []
    for table in tables:
        made += packing.pack(table).to_batches()
        said += [packing.schema] * 2
    assert all(unpacked_schema(schema) == SCHEMA for schema in said)
    assert [batch.schema for batch in made] == said
    given = pa.Table.from_batches(batches)
    assert unpacked(made, SCHEMA).to_pylist() == given.to_pylist()
    place = random.randint(0, 3)
    parts = [batch.slice(place, random.randint(0, 9)) for batch in made]
    wanted = pa.Table.from_batches([one.slice(place, len(part)) for one, part in zip(batches, parts, strict=True)])
    assert unpacked(parts, SCHEMA).to_pylist() == wanted.to_pylist()


def test_small_values_take_few_bytes_and_the_hash_is_left_alone() -> None:
    table = rows(Random(1), 30, 1)
    made = Packing(SCHEMA).pack(table)
    kinds = dict(zip(made.schema.names, made.schema.types, strict=True))
    assert {kinds[name] for name in ("byte", "small", "int", "long", "money", "huge", "day")} == {pa.int8()}
    assert kinds[WEIGHT] == pa.int16()
    assert [kinds[name] for name in (HASH, "text", "real", "many")] == [pa.int64(), *SCHEMA.types[7:10]]


def test_what_needs_all_its_bytes_is_left_as_it_is() -> None:
    values = {"long": 2**63 - 1, "huge": Decimal(2**63), "day": date(9999, 12, 31)}
    table = pa.table({name: pa.array([value], COLUMNS[name][0]) for name, value in values.items()})
    made = Packing(table.schema).pack(table)
    assert made.schema == table.schema
    assert made.schema.metadata is None


def test_packing_begins_with_the_first_table_that_is_not_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_ROWS", 30)
    packing, small, large = Packing(SCHEMA), rows(Random(1), 29, 1), rows(Random(2), 30, 1)
    assert packing.pack(small).schema == SCHEMA
    assert packing.pack(large).schema.field("huge").type == pa.int8()
    again = packing.pack(small)
    assert again.schema.field("huge").type == pa.int8()
    assert unpacked(again.to_batches(), SCHEMA).to_pylist() == small.to_pylist()


def test_packed_columns_that_cannot_be_what_they_are_said_to_be_are_refused() -> None:
    said = {b"unpacked": pa.schema([("a", pa.int16()), ("b", pa.string())]).serialize().to_pybytes()}
    assert unpacked_schema(pa.schema([("a", pa.int8()), ("b", pa.string())], said)).types == [
        pa.int16(),
        pa.string(),
    ]
    for wrong in (
        [("a", pa.int32()), ("b", pa.string())],
        [("a", pa.int8()), ("b", pa.int8())],
        [("a", pa.int8())],
    ):
        with pytest.raises(ValueError, match="not what they are said to be"):
            unpacked_schema(pa.schema(wrong, said))
    with pytest.raises(ValueError, match="not what they are said to be"):
        unpacked_schema(pa.schema([("x", pa.int8()), ("b", pa.string())], said))


def streams(*tables: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    return sink.getvalue()


def test_streams_of_other_columns_or_none_are_no_run(tmp_path: Path) -> None:
    one = pa.table({"a": [1], HASH: [1], WEIGHT: [1]})
    other = pa.table({"b": [1], HASH: [2], WEIGHT: [1]})
    for number, data in enumerate([b"", streams(one, other).to_pybytes(), streams(one, one).to_pybytes()[:-30]]):
        (tmp_path / f"{number}.runs").write_bytes(data + bytes(64))
        with pytest.raises(Unavailable):
            open_run(LocalStateFiles(str(tmp_path)), Run(f"{number}.runs", 0, len(data), 1, 1), one.schema)


def test_a_hash_in_two_streams_of_a_run_is_found_whole(tmp_path: Path) -> None:
    tables = [
        pa.table({"n": [1, start], HASH: [0, 5], WEIGHT: [1, 1]}).slice(skip)
        for start, skip in ((2, 0), (2**40, 1))
    ]
    file = RunFile(LocalStateFiles(str(tmp_path)), "1-1-1.runs")
    arrangement = Arrangement(LocalStateFiles(str(tmp_path)), tables[0].schema, [file.add_sorted(tables)])
    assert sorted(arrangement.probe(np.array([5]))["n"].to_pylist()) == [2, 2**40]
    assert arrangement.matches(np.array([5])) == arrangement.count(5, 5) == 2
    assert [table["n"].to_pylist() for table in arrangement.scan()] == [[1, 2, 2**40]]


def test_a_run_whose_columns_become_wider_on_the_way_is_read_as_one(tmp_path: Path) -> None:
    numbers = [*range(100), *range(10**3, 10**3 + 100), *range(10**12, 10**12 + 100), *range(100)]
    tables = [
        pa.table(
            {
                "number": pa.array(numbers[start : start + 100]),
                HASH: np.arange(start, start + 100),
                WEIGHT: np.ones(100, np.int64),
            }
        )
        for start in range(0, 400, 100)
    ]
    whole = pa.concat_tables(tables)
    run = (file := RunFile(LocalStateFiles(str(tmp_path)), "1-1-1.runs")).add_sorted(tables)
    file.finish()
    opened = open_run(LocalStateFiles(str(tmp_path)), run, whole.schema)
    kinds = [batch.schema.field("number").type for batch in opened._batches]
    assert kinds == [pa.int8(), pa.int16(), pa.int64()]
    random = Random(3)
    for start in [0, 100, 399, 400, *(random.randint(0, 400) for _ in range(30))]:
        end = random.randint(start, 400)
        assert opened.slice(start, end).to_pylist() == whole.slice(start, end - start).to_pylist()
        assert opened.slice(start, end, ["number"]) == whole.slice(start, end - start).select(["number"])
    arrangement = Arrangement(LocalStateFiles(str(tmp_path)), whole.schema, [run])
    hashes = np.array([random.randint(0, 399) for _ in range(50)])
    found = arrangement.probe(hashes).sort_by(HASH)
    assert found.to_pylist() == whole.take(pa.array(np.unique(hashes))).to_pylist()
    chosen = arrangement.select(["number"], whole.schema)
    assert sorted(chosen.probe(hashes)["number"].to_pylist()) == sorted(found["number"].to_pylist())
