from __future__ import annotations

import ast
from pathlib import Path

import pytest

import headwater.schema
from headwater.errors import SchemaError
from headwater.schema import check_topic, parse


def test_a_column_is_found_in_any_case() -> None:
    schema = parse("Id BIGINT, name STRING")
    assert schema.column("ID") is schema.columns[0]
    assert schema.names == ("Id", "name")


def test_an_unknown_column_is_an_error_that_names_the_closest() -> None:
    with pytest.raises(SchemaError, match="did you mean name"):
        parse("id BIGINT, name STRING").column("nmae")


def test_arrow_keeps_not_null_and_stored_drops_it() -> None:
    schema = parse("id BIGINT NOT NULL, s STRUCT<x: INT NOT NULL>")
    assert not schema.arrow.field("id").nullable
    assert schema.stored.field("id").nullable
    assert not schema.stored.field("s").type.field(0).nullable


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("a INT", "a INT", ""),
        ("a INT", "a BIGINT", "column a was INT and is now BIGINT"),
        ("a INT", "a INT NOT NULL", "column a was nullable and is now NOT NULL"),
        ("a INT, b INT", "a INT", "column b is gone"),
        ("a INT", "a INT, b INT", "column b is new"),
        ("a INT", "A INT", "column a is now written A"),
        ("a INT", "a INT COMMENT 'x'", "the comment of column a has changed"),
        ("a INT, b INT", "b INT, a INT", "the columns were a, b and are now b, a"),
        (
            "a INT, c INT",
            "a STRING, d INT",
            "column c is gone; column d is new; column a was INT and is now STRING",
        ),
    ],
)
def test_the_difference_of_schemas_is_a_sentence(before: str, after: str, sentence: str) -> None:
    assert parse(before).difference(parse(after)) == sentence


def test_a_topics_key_comes_back_as_the_schema_writes_it() -> None:
    schema = parse("Id BIGINT, Name STRING")
    assert check_topic(schema, ["NAME", "id"]) == ("Name", "Id")
    assert check_topic(schema, "id") == ("Id",)
    assert check_topic(schema, None) == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "at least one column"),
        ("_a INT", "column _a: names beginning with _"),
        ("`` INT", "needs a name"),
        ("a INT, A STRING", "occurs twice, first as a"),
        ("a INT, a INT", "occurs twice"),
        ("a STRUCT<x: INT, X: INT>", r"column a\.X: this name occurs twice"),
        ("a INTERVAL", "cannot be a column's type"),
        ("a INTERVAL YEAR TO MONTH", "cannot be a column's type"),
        ("a VOID", "VOID cannot be a column's type: it is null in every row"),
        ("a MAP<VOID, VOID>", "VOID cannot be a column's type"),
        ("a ARRAY<MAP<STRING, INTERVAL>>", "cannot be a column's type"),
        ("a STRUCT<b: STRUCT<c: VOID>>", r"column a\.b\.c: VOID cannot be"),
        ("a DECIMAL(0)", "cannot be exchanged as Arrow"),
    ],
)
def test_what_can_be_no_topic_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        check_topic(parse(text), None)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (["idd"], "did you mean id"),
        (["id", "ID"], "twice"),
        ([], "at least one column"),
        ("tags", "cannot be part of a key"),
        ("m", "cannot be part of a key"),
        ("s", "cannot be part of a key"),
        ("v", "cannot be part of a key"),
        ("c", "collation UTF8_LCASE"),
        ([5], "column names"),
    ],
)
def test_what_can_be_no_key_is_refused(key: list[str] | str, reason: str) -> None:
    columns = "id BIGINT, tags ARRAY<INT>, m MAP<INT,INT>, s STRUCT<x:INT>, v VARIANT, c STRING COLLATE UTF8_LCASE"
    with pytest.raises(SchemaError, match=reason):
        check_topic(parse(columns), key)


def test_no_module_of_schemas_imports_spark_or_data_frames() -> None:
    for path in Path(headwater.schema.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not {"pyspark", "pandas", "polars", "sqlglot"} & {name.partition(".")[0] for name in imported}, path
