"""What a type can become, compared with Spark's own rule."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headwater.schema import parse
from headwater.schema.widening import widens

pytestmark = pytest.mark.spark

TYPES = [
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "BINARY", "VARIANT"),
    *(f"DECIMAL({digits})" for digits in ("2,0", "3,0", "9,0", "10,0", "12,2", "20,0", "22,2", "38,18")),
    *("STRING", "STRING COLLATE UTF8_LCASE", "CHAR(3)", "VARCHAR(3)", "VARCHAR(9)"),
    *("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
    *(f"INTERVAL {units}" for units in ("DAY TO SECOND", "HOUR TO MINUTE", "DAY")),
    *("ARRAY<INT>", "ARRAY<BIGINT>", "MAP<STRING, INT>", "MAP<STRING, DOUBLE>"),
    *("STRUCT<a: INT>", "STRUCT<a: BIGINT>", "STRUCT<b: BIGINT>", "STRUCT<a: INT NOT NULL>"),
]
ZONED = {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BIGINT"}
INTERVALS = {each for each in TYPES if each.startswith("INTERVAL")}
TEXTS = {"STRING", "VARCHAR(9)", "VARCHAR(3)", "CHAR(3)", "STRING COLLATE UTF8_LCASE"}


def left_out(old: str, new: str) -> bool:
    """What Spark allows and we do not: instants, what cuts off, texts, and fields by place."""
    are_structs = {old[:6], new[:6]} == {"STRUCT"}
    return {old, new} <= ZONED or {old, new} <= INTERVALS or new in TEXTS or are_structs


def test_a_type_becomes_another_where_spark_casts_up(spark: SparkSession) -> None:
    java: Any = spark._jvm
    assert java is not None
    cast, schemas = java.org.apache.spark.sql.catalyst.expressions.Cast, java.org.apache.spark.sql.types.StructType
    known = {
        each: (parse(f"x {each}").columns[0].type, schemas.fromDDL(f"x {each}").apply(0).dataType())
        for each in TYPES
    }
    ours = {pair for pair in product(TYPES, TYPES) if widens(known[pair[0]][0], known[pair[1]][0])}
    sparks = {(old, new) for old, new in product(TYPES, TYPES) if cast.canUpCast(known[old][1], known[new][1])}
    assert not ours - sparks, f"Spark does not: {sorted(ours - sparks)}"
    assert not [pair for pair in sorted(sparks - ours) if not left_out(*pair)]
    assert {("INT", "STRING"), ("VARCHAR(3)", "STRING"), ("INT", "BIGINT"), ("TINYINT", "DECIMAL(3,0)")} <= ours
