# ruff: noqa: DTZ001 (Arrow takes datetimes without a zone)
from __future__ import annotations

import datetime as dt
import math
import random
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import xxhash
from pyspark.sql import SparkSession

from headwater.change.hash import hash_rows
from headwater.errors import SchemaError
from headwater.schema import parse

UTC = pa.timestamp("us", tz="UTC")
ANSWERS = [
    (True, pa.bool_(), -6698625589789238999),
    (False, pa.bool_(), 3614696996920510707),
    (-128, pa.int8(), 4160238337661960656),
    (-32768, pa.int16(), -904511417458573795),
    (1, pa.int32(), -6698625589789238999),
    (-(2**31), pa.int32(), 2073849959933241805),
    (1, pa.int64(), -7001672635703045582),
    (-(2**63), pa.int64(), -8619748838626508300),
    (2**63 - 1, pa.int64(), -3246596055638297850),
    (1.5, pa.float32(), 6163473420726370430),
    (-0.0, pa.float32(), 3614696996920510707),
    (math.nan, pa.float32(), 2692338816207849720),
    (1.5, pa.float64(), 7738255526519901366),
    (-0.0, pa.float64(), -5252525462095825812),
    (math.nan, pa.float64(), -3127944061524951246),
    (math.inf, pa.float64(), 5810986238603807492),
    (Decimal("12.34"), pa.decimal128(10, 2), -3802813071951760351),
    (Decimal("-12.34"), pa.decimal128(18, 2), -1614697014534150208),
    (Decimal("12.34"), pa.decimal128(38, 2), 804797035677707363),
    (Decimal(-1), pa.decimal128(38, 0), -4006032525457443936),
    (Decimal(10**38 - 1), pa.decimal128(38, 0), -47190729175993179),
    (Decimal(128), pa.decimal128(20, 0), 6715097930120473301),
    ("", pa.string(), -7444071767201028348),
    ("a", pa.string(), -8582455328737087284),
    ("æøå 日本 😀", pa.string(), 6999246465296805500),
    ("0123456789" * 10, pa.string(), 6379203369694145893),
    (b"", pa.binary(), -7444071767201028348),
    (b"\x00\xff\x10", pa.binary(), 5415089035989094387),
    (dt.date(2024, 2, 29), pa.date32(), 4183429117450946631),
    (dt.date(1, 1, 1), pa.date32(), 6773727150484150602),
    (dt.datetime(2024, 2, 29, 12, 34, 56, 789012), UTC, -2021281541725647388),
    (dt.datetime(1969, 12, 31, 23, 59, 59, 999999), pa.timestamp("us"), 3858142552250413010),
    (dt.time(12, 34, 56, 789012), pa.time64("ns"), -8115057001718591065),
    (dt.timedelta(days=1, hours=2, minutes=3, seconds=4, microseconds=5), pa.duration("us"), -1481965526383450804),
    (dt.timedelta(days=-7), pa.duration("us"), 8476752334540558806),
    (None, pa.int32(), 42),
]


KINDS = [
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(9,2)", "DECIMAL(18,0)"),
    *("DECIMAL(19,3)", "DECIMAL(38,10)", "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIME(6)"),
    "INTERVAL DAY TO SECOND",
]


def hash_of(*values: tuple[Any, pa.DataType]) -> int:
    return int(hash_rows([pa.array([value], type=kind) for value, kind in values])[0])


@pytest.mark.parametrize(("value", "kind", "answer"), ANSWERS)
def test_the_hash_is_the_one_that_spark_gave(value: object, kind: pa.DataType, answer: int) -> None:
    assert hash_of((value, kind)) == answer


def test_columns_are_chained_in_order_and_nulls_skipped() -> None:
    one, text = (1, pa.int32()), ("a", pa.string())
    assert hash_of(one, text) == 8205864924878002737
    assert hash_of(text, one) == -4810547614043336770
    assert hash_of((None, pa.int32()), one) == hash_of(one)
    assert hash_of(one, (None, pa.string()), (2, pa.int64())) == 2360248972619621018


def test_slices_and_nulls_hash_as_the_same_values_alone() -> None:
    schema = parse("a INT, b DECIMAL(38,2), c DECIMAL(9,1), d STRING, e DOUBLE, f ARRAY<INT>, g MAP<STRING,INT>")
    rows: list[list[Any]] = [
        [5, Decimal("7.5"), Decimal("-1.5"), "x", 2.0, [1], [("k", 1)]],
        [None] * 7,
        [1, Decimal(3), Decimal(4), "y", 0.0, [], []],
    ]
    columns = [pa.array([row[i] for row in rows], type=kind) for i, kind in enumerate(schema.arrow.types)]
    whole = hash_rows(columns)
    for row in range(3):
        assert hash_rows([column.slice(row, 1) for column in columns])[0] == whole[row]
    assert whole[1] == 42


def test_no_rows_have_no_hashes_and_no_columns_are_an_error() -> None:
    assert len(hash_rows([pa.array([], type=pa.int64()), pa.array([], type=pa.string())])) == 0
    with pytest.raises(SchemaError):
        hash_rows([])


@pytest.mark.parametrize(
    "kind", [*KINDS, "VARIANT", "ARRAY<INT>", "MAP<STRING, DECIMAL(5,1)>", "STRUCT<>", "STRUCT<x: DECIMAL(38,2)>"]
)
def test_nothing_but_nulls_and_nothing_at_all_can_be_hashed(kind: str) -> None:
    arrow = parse(f"a {kind}").arrow.types[0]
    assert hash_rows([pa.nulls(2, arrow)]).tolist() == [42, 42]
    assert hash_rows([pa.array([], type=arrow)]).tolist() == []
    assert hash_rows([pa.nulls(2, arrow).slice(1)]).tolist() == [42]


def test_a_map_hashes_whatever_the_order_of_its_entries() -> None:
    kind = pa.map_(pa.string(), pa.int32())
    assert hash_of(([("a", 1), ("b", 2)], kind)) == hash_of(([("b", 2), ("a", 1)], kind))


def test_nested_values_that_differ_hash_differently() -> None:
    kind = parse("a ARRAY<STRUCT<x: STRING, y: ARRAY<STRING>>>").arrow.types[0]
    values: list[object] = [
        None,
        [],
        [None],
        [None, None],
        [{"x": None, "y": None}],
        [{"x": "", "y": None}],
        [{"x": None, "y": []}],
        [{"x": "ab", "y": ["c"]}],
        [{"x": "a", "y": ["bc"]}],
        [{"x": "a", "y": ["b", "c"]}],
        [{"x": "a", "y": None}, {"x": "b", "y": None}],
    ]
    assert len({hash_of((value, kind)) for value in values}) == len(values)


def test_a_nested_hash_is_that_of_the_documented_encoding() -> None:
    kind = parse("a ARRAY<STRUCT<x: INT, y: ARRAY<STRING>, z: MAP<STRING, DOUBLE>, v: VARIANT>>").arrow.types[0]
    value = {"x": 1, "y": ["a", None], "z": [("k", -0.0), ("b", 1.0)], "v": {"value": b"1", "metadata": b""}}
    number = b"\1" + struct.pack("<i", 1)
    array = b"\1" + struct.pack("<q", 2) + _text(b"a") + b"\0"
    entries = _text(b"b") + b"\1" + struct.pack("<d", 1.0) + _text(b"k") + b"\1" + struct.pack("<d", 0.0)
    mapping = b"\1" + struct.pack("<q", 2) + entries
    variant = b"\1" + _text(b"1") + _text(b"")
    item = b"\1" + number + array + mapping + variant
    expected = xxhash.xxh64_intdigest(b"\1" + struct.pack("<q", 1) + item, 42)
    assert hash_of(([value], kind)) % 2**64 == expected


def test_a_struct_hashes_as_its_fields_one_after_the_other() -> None:
    inner = pa.struct([pa.field("z", pa.int64())])
    kind = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string()), pa.field("s", inner)])
    one, text, two = (1, pa.int32()), ("a", pa.string()), (2, pa.int64())
    assert hash_of(({"x": 1, "y": "a", "s": {"z": 2}}, kind)) == hash_of(one, text, two)
    assert hash_of(one, ({"x": None, "y": "a", "s": None}, kind)) == hash_of(one, text)
    several = pa.array([None, {"x": 1, "y": "a", "s": None}, None], kind)
    assert hash_rows([several]).tolist() == [42, hash_of(one, text), 42]
    assert hash_rows([several.slice(1)]).tolist() == [hash_of(one, text), 42]


def _text(raw: bytes) -> bytes:
    return b"\1" + struct.pack("<q", len(raw)) + raw


def _moment(rng: random.Random) -> dt.datetime:
    day = dt.date.fromordinal(rng.randrange(1, 3652060))
    return dt.datetime.combine(day, dt.time(0)) + dt.timedelta(microseconds=rng.randrange(86_400_000_000))


def _random_values(kind: str, rng: random.Random) -> list[Any]:
    """Edge values and random ones."""
    whole = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
    if kind in whole:
        limit = 2 ** (whole[kind] - 1)
        return [0, -1, limit - 1, -limit, *(rng.randrange(-limit, limit) for _ in range(30))]
    if kind in {"FLOAT", "DOUBLE"}:
        return [0.0, -0.0, math.nan, math.inf, -math.inf, 1e-40, *(rng.gauss(0, 1e6) for _ in range(30))]
    if kind.startswith("DECIMAL"):
        precision, scale = map(int, kind[8:-1].split(","))
        edges = [0, 1, -1, 127, 128, -128, -129, 10**precision - 1, 1 - 10**precision]
        digits = [*edges, *(rng.randrange(10 ** rng.randrange(1, precision + 1)) for _ in range(30))]
        return [Decimal(f"{number}E-{scale}") for number in digits]
    if kind in {"STRING", "BINARY"}:
        raw = [bytes(rng.randrange(32, 127) for _ in range(length)) for length in (*range(40), 100, 1000)]
        return [*raw] if kind == "BINARY" else [each.decode() + "é日😀"[: rng.randrange(4)] for each in raw]
    moments = [
        dt.datetime(1, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        *(_moment(rng) for _ in range(30)),
    ]
    values: dict[str, list[Any]] = {
        "BOOLEAN": [True, False],
        "DATE": [moment.date() for moment in moments],
        "TIMESTAMP": moments,
        "TIMESTAMP_NTZ": moments,
        "TIME(6)": [moment.time() for moment in moments],
        "INTERVAL DAY TO SECOND": [dt.timedelta(microseconds=rng.randrange(-(2**60), 2**60)) for _ in range(30)],
    }
    return values[kind]


@pytest.mark.spark
@pytest.mark.slow
def test_spark_hashes_random_rows_of_every_atomic_type_as_we_do(spark: SparkSession) -> None:
    rng = random.Random(7)
    schema = parse(", ".join(f"c{number} {kind}" for number, kind in enumerate(KINDS)))
    columns = []
    for kind, field in zip(KINDS, schema.stored, strict=True):
        values = [*_random_values(kind, rng), None]
        columns.append(pa.array([rng.choice(values) for _ in range(300)], type=field.type))
    table = pa.Table.from_arrays(columns, schema=schema.stored)
    frame = spark.createDataFrame(table)
    singles = [f"xxhash64(c{number})" for number in range(len(KINDS))]
    everything = f"xxhash64({', '.join(schema.names)})"
    theirs = frame.selectExpr(*singles, everything).toArrow()
    for number, kind in enumerate(KINDS):
        assert hash_rows([columns[number]]).tolist() == theirs.column(number).to_pylist(), kind
    assert hash_rows(columns).tolist() == theirs.column(len(KINDS)).to_pylist()


def test_few_different_values_behind_many_others_are_hashed_as_each_alone() -> None:
    rng = random.Random(5)
    texts = [None, "", "a", "day", "2026-03-01", "x" * 31, "y" * 32, "z" * 45, "w" * 64, "v" * 100]
    arrays = [
        pa.array([rng.getrandbits(63) for _ in range(3_000)]),
        pa.array([rng.choice(texts) for _ in range(3_000)]),
    ]
    alone = [hash_rows([array.slice(place, 1) for array in arrays])[0] for place in range(3_000)]
    assert hash_rows(arrays).tolist() == alone
