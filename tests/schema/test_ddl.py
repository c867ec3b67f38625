from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types
from pyspark.sql.pandas.types import to_arrow_schema

from headwater.errors import SchemaError
from headwater.schema import Column, Schema, parse, types
from headwater.schema.collation import canonical_collation

from .ddl_texts import REFUSED, SCHEMAS, TYPES

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
comments = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
leaves = st.sampled_from([parse(f"a {each}").columns[0].type for each in TYPES])


def _columns(kinds: st.SearchStrategy[types.DataType]) -> st.SearchStrategy[Column]:
    return st.builds(Column, names, kinds, st.booleans(), comments)


any_type = st.recursive(
    leaves,
    lambda inner: (
        st.builds(types.Array, inner)
        | st.builds(types.Map, inner, inner)
        | st.builds(types.Struct, st.lists(_columns(inner), max_size=3).map(tuple))
    ),
    max_leaves=6,
)
any_schema = st.builds(Schema, st.lists(_columns(any_type), max_size=4).map(tuple))


def test_a_schema_is_columns_with_names_types_nullness_and_comments() -> None:
    assert parse("id BIGINT NOT NULL, `my name` STRING COMMENT 'it''s', at: timestamp") == Schema(
        (
            Column("id", types.Long(), nullable=False),
            Column("my name", types.String(), comment="it's"),
            Column("at", types.Timestamp()),
        )
    )


def test_types_nest_and_closing_brackets_may_touch() -> None:
    parsed = parse("a ARRAY<STRUCT<x: MAP<STRING, ARRAY<INT>>, y DEC(5,1) NOT NULL COMMENT 'y'>>").columns[0].type
    inner = types.Map(types.String(), types.Array(types.Integer()))
    fields = (Column("x", inner), Column("y", types.Decimal(5, 1), nullable=False, comment="y"))
    assert parsed == types.Array(types.Struct(fields))


@pytest.mark.parametrize("text", SCHEMAS)
def test_canonical_ddl_parses_to_the_same_schema(text: str) -> None:
    schema = parse(text)
    assert parse(schema.ddl) == schema
    assert parse(schema.ddl).ddl == schema.ddl


@given(any_schema)
def test_any_schema_survives_its_ddl(schema: Schema) -> None:
    assert parse(schema.ddl) == schema


@pytest.mark.parametrize("text", REFUSED)
def test_malformed_text_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(SchemaError) as error:
        parse(text)
    assert "line 1, character" in str(error.value)
    assert "^" in str(error.value)


@given(st.text(alphabet="aINT<>(),:`' .-/*0123\n", max_size=30))
def test_no_text_makes_the_parser_fail_in_another_way(text: str) -> None:
    try:
        parse(text)
    except SchemaError:
        pass


def test_an_error_shows_the_line_a_caret_and_the_closest_type() -> None:
    with pytest.raises(SchemaError) as error:
        parse("id BIGINT,\n  name STRNG NOT NULL")
    assert str(error.value).splitlines() == [
        "line 2, character 8: unknown type STRNG",
        "    name STRNG NOT NULL",
        "         ^",
        " (did you mean STRING?)",
    ]


def test_names_of_types_from_elsewhere_are_translated_in_the_hint() -> None:
    with pytest.raises(SchemaError, match="did you mean BOOLEAN"):
        parse("a BOOL")
    with pytest.raises(SchemaError, match="did you mean VARIANT"):
        parse("a JSON")


def test_a_schema_that_is_no_text_is_refused() -> None:
    with pytest.raises(SchemaError, match="DDL text"):
        parse({"a": "INT"})  # type: ignore[arg-type]


def _ours(given: spark_types.DataType) -> types.DataType:
    """Our type for one of pyspark's, the slow and obvious way."""
    if isinstance(given, spark_types.StructType):
        return types.Struct(tuple(_column(field) for field in given.fields))
    if isinstance(given, spark_types.ArrayType):
        return types.Array(_ours(given.elementType), given.containsNull)
    if isinstance(given, spark_types.MapType):
        return types.Map(_ours(given.keyType), _ours(given.valueType), given.valueContainsNull)
    if isinstance(given, spark_types.DecimalType):
        return types.Decimal(given.precision, given.scale)
    if isinstance(given, spark_types.TimeType):
        return types.Time(given.precision)
    if isinstance(given, spark_types.DayTimeIntervalType):
        units = ["DAY", "HOUR", "MINUTE", "SECOND"]
        return types.DayTimeInterval(units[given.startField], units[given.endField])
    if isinstance(given, spark_types.YearMonthIntervalType):
        units = ["YEAR", "MONTH"]
        return types.YearMonthInterval(units[given.startField], units[given.endField])
    name = type(given).__name__.removesuffix("Type")
    renamed = {"TimestampNTZ": "TimestampNtz", "Null": "Void"}
    kind: type[types.DataType] = getattr(types, renamed.get(name, name))
    return kind()


def _column(field: spark_types.StructField) -> Column:
    return Column(field.name, _ours(field.dataType), field.nullable, (field.metadata or {}).get("comment"))


def _read(text: str) -> spark_types.StructType:
    given = spark_types.StructType.fromDDL(text)
    assert isinstance(given, spark_types.StructType)
    return given


def _json(spark: SparkSession, text: str) -> str:
    wrapped = text.strip().lower().startswith("struct<") or ":" in text.partition("<")[0] or not text.strip()
    jvm = spark._jvm
    assert jvm is not None
    if wrapped:
        inner = text if text.strip().lower().startswith("struct<") else f"struct<{text}>"
        return str(jvm.org.apache.spark.sql.types.DataType.fromDDL(inner).json())
    return str(jvm.org.apache.spark.sql.types.StructType.fromDDL(text).json())


@pytest.mark.spark
@pytest.mark.slow
def test_spark_reads_every_text_as_we_do(spark: SparkSession) -> None:
    for text in SCHEMAS:
        parsed = parse(text)
        given = _read(text)
        assert [column.name for column in parsed] == given.names, text
        if not any(word in text.upper() for word in ("COLLATE", "CHAR")):
            assert Schema(tuple(_column(field) for field in given.fields)) == parsed, text
        assert json.loads(_json(spark, text)) == json.loads(_json(spark, parsed.ddl)), text


@pytest.mark.spark
@pytest.mark.slow
def test_spark_refuses_every_text_that_we_refuse(spark: SparkSession) -> None:
    for text in REFUSED:
        try:
            given = spark_types.StructType.fromDDL(text)
        except Exception:  # Spark refuses with errors of many classes
            continue
        pytest.fail(f"Spark takes {text!r} as {given}")


@pytest.mark.spark
@pytest.mark.slow
def test_spark_has_the_collations_that_we_know(spark: SparkSession) -> None:
    known = [row.NAME for row in spark.sql("SELECT NAME FROM collations()").collect()]
    assert len(known) > 1000
    assert [canonical_collation(name.lower()) for name in known] == known


@pytest.mark.spark
@pytest.mark.slow
def test_spark_exchanges_the_same_arrow_types(spark: SparkSession) -> None:
    columns = (
        "a BOOLEAN, b BYTE, c SHORT, d INT, e LONG, f FLOAT, g DOUBLE, h DECIMAL(10,2), i STRING, l BINARY, m DATE,"
        "n TIMESTAMP, o TIMESTAMP_NTZ, p TIME(3), q INTERVAL DAY TO SECOND, r ARRAY<INT>, s MAP<INT,ARRAY<DATE>>,"
        "t STRUCT<x:INT NOT NULL, y:STRING>, u VARIANT, v STRUCT<>,"
        "w VOID, x STRUCT<y: ARRAY<VOID>>, z MAP<INT, VOID>"
    )
    theirs = to_arrow_schema(_read(columns), timezone="UTC")
    assert parse(columns).arrow.equals(theirs, check_metadata=True)


def test_char_and_varchar_are_text_in_arrow() -> None:
    assert parse("a CHAR(3), b VARCHAR(3)").arrow.types == [pa.string(), pa.string()]


def test_what_is_of_void_and_cannot_be_null_is_nothing_and_a_field_all_the_same() -> None:
    assert parse("a VOID NOT NULL").arrow == pa.schema([("a", pa.null())])
    assert types.Array(types.Void(), contains_null=False).arrow == pa.list_(pa.field("element", pa.null()))


@pytest.mark.parametrize("text", ["INTERVAL", "INTERVAL YEAR", "MAP<VOID, INT>", "DECIMAL(0)", "ARRAY<INTERVAL>"])
def test_what_cannot_be_arrow_says_so(text: str) -> None:
    with pytest.raises(SchemaError, match="cannot be exchanged as Arrow"):
        _ = parse(f"a {text}").columns[0].type.arrow
