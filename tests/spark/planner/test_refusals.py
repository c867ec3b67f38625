"""What cannot be maintained is refused with the position, the reason and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.spark.planner import rewrite

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[hw.Pipeline]:
    with hw.Pipeline("shop", tmp_path_factory.mktemp("refusals") / "shop") as pipeline:
        pipeline.table(
            "orders", "id BIGINT, customer BIGINT, cents BIGINT, weight DOUBLE, tags ARRAY<STRING>", key="id"
        )
        pipeline.table("customers", "id BIGINT, country STRING, name STRING COLLATE UNICODE_CI", key="id")
        pipeline.stream("clicks", "url STRING, at TIMESTAMP")
        yield pipeline


REFUSED = [
    ("SELECT id, current_timestamp() AS t FROM orders", (1, 12), "changes without any input", "column"),
    (
        "SELECT id FROM orders WHERE id > (SELECT unix_timestamp(now()))",
        None,
        "changes without any input",
        "column",
    ),
    ("SELECT id, rand() AS r FROM orders", (1, 12), "another answer each time", "append"),
    ("SELECT id, uuid() AS u FROM orders", (1, 12), "another answer each time", "append"),
    ("SELECT id, shuffle(tags) AS t FROM orders", (1, 12), "another answer each time", "append"),
    ("SELECT id FROM orders\nWHERE id IN (SELECT id * rand() FROM customers)", (2, 26), "another answer", "append"),
    ("WITH r AS (SELECT randn() AS x FROM orders) SELECT max(x) AS m FROM r", (1, 19), "another answer", "append"),
    ("SELECT monotonically_increasing_id() AS i FROM orders", (1, 8), "another answer each time", "append"),
    ("SELECT spark_partition_id() AS i FROM orders", (1, 8), "another answer each time", "append"),
    ("SELECT input_file_name() AS f FROM orders", (1, 8), "another answer each time", "append"),
    ("SELECT id FROM orders TABLESAMPLE (10 PERCENT)", (1, 23), "another one each time", "hash of a key"),
    ("SELECT TRANSFORM (id) USING 'cat' AS (x) FROM orders", None, "", ""),
    ("SELECT aes_encrypt(country, '0000111122223333') AS c FROM customers", (1, 8), "another answer", "append"),
    ("SELECT nothing FROM orders", (1, 8), "cannot be resolved", "did you mean"),
    ("SELECT * FROM nowhere", (1, 15), "cannot be found", "declare"),
    ("SELECT (id FROM orders", None, "", ""),
    ("CREATE TABLE x (a INT)", (1, 1), "not a query", "SELECT"),
    ("DROP VIEW orders", (1, 1), "not a query", "SELECT"),
    ("SELECT make_ym_interval(1, 2) AS i FROM orders", None, "INTERVAL", ""),
    ("SELECT id, id FROM orders", None, "two columns are called id", "AS"),
    ("SELECT id AS _weight FROM orders", None, "_weight", "AS"),
    ("SELECT id AS _x FROM orders", None, "_x", "AS"),
    ("SELECT id, TIMESTAMP 'now' AS t FROM orders", (1, 22), "'now' changes without any input", "append"),
    ("SELECT id FROM orders WHERE CAST('Today' AS DATE) > DATE'2020-01-01'", (1, 34), "'Today' changes", "append"),
    *(
        (f"SELECT id, {moment} AS t FROM orders", position, f"{told} changes without any input", "append")
        for moment, position, told in [
            ('CAST("now" AS TIMESTAMP)', (1, 17), "'now'"),
            ('DATE "today"', (1, 17), "'today'"),
            ("DATE /* the */ 'today'", (1, 27), "'today'"),
            ("DATE r'today'", (1, 17), "'today'"),
            (r"DATE '\u0074oday'", (1, 17), "'today'"),
            ("TIMESTAMP 'yesterday'", (1, 22), "'yesterday'"),
            ("TIMESTAMP_NTZ '  Tomorrow UTC '", (1, 26), "'Tomorrow UTC'"),
            ("TIMESTAMP '12:30'", (1, 22), "'12:30'"),
            ("to_date('today')", (1, 20), "'today'"),
            ("try_to_timestamp(lower('NOW'))", (1, 29), "'now'"),
            ("CAST('to' 'day' AS DATE)", (1, 17), "'today'"),
            ("CAST(concat('to', 'day') AS DATE)", (1, 17), "'today'"),
            ("CAST(trim(' today ') AS DATE)", (1, 17), "'today'"),
            ("CAST(nvl(NULL, 'today') AS DATE)", None, "'today'"),
            ("try_cast('T1:2' AS TIMESTAMP)", (1, 21), "'T1:2'"),
            ("date_add('today', 1)", (1, 21), "'today'"),
            ("year('now') + cents", (1, 17), "'now'"),
            ("date_format(nvl(NULL, 'now'), 'y')", None, "'now'"),
            ("transform(tags, tag -> DATE'2020-01-01' < 'today')", (1, 54), "'today'"),
            ("(SELECT max(date_add('today', 1)) FROM customers)", (1, 33), "'today'"),
            ("unix_timestamp()", (1, 12), "current_timestamp()"),
            ("CAST(current_date AS STRING)", (1, 17), "current_date()"),
            ("current_user()", (1, 12), "current_user()"),
        ]
    ),
    (
        "SELECT CASE WHEN id > 1 THEN CAST(word AS DATE) END AS t FROM (SELECT 'today' AS word, id FROM orders)",
        None,
        "'today' changes without any input",
        "append",
    ),
    ("SELECT * FROM VALUES (TIMESTAMP 'now') AS v(t)", (1, 33), "'now' changes without any input", "append"),
    ("SELECT 1 / 0 AS x", None, "", ""),
    ("SELECT *", (1, 1), "no columns", "SELECT"),
    ("SELECT id, map() AS x FROM orders", (1, 12), "x is of type MAP<VOID, VOID>", "CAST(map() AS MAP<STRING"),
    (
        "SELECT id, array(map()) AS x FROM orders",
        (1, 12),
        "x is of type ARRAY<MAP<VOID",
        "CAST(map() AS MAP<STRING",
    ),
    (
        "SELECT first(i) AS f FROM ((SELECT id AS i FROM orders ORDER BY id) UNION ALL SELECT id FROM customers)",
        (1, 56),
        "a UNION does not keep the order",
        "after",
    ),
    (
        "SELECT o.id, c.country FROM (SELECT id, map(id, cents) AS m FROM orders) o\n"
        "JOIN customers c APPROX NEAREST 1 BY DISTANCE abs(o.m[o.id] - c.id)",
        None,
        "m is of type MAP<BIGINT, BIGINT>",
        "by a key",
    ),
]


@pytest.mark.parametrize(("sql", "position", "reason", "instead"), REFUSED, ids=[sql for sql, *_ in REFUSED])
def test_it_is_refused_with_position_reason_and_alternative(
    shop: hw.Pipeline, sql: str, position: tuple[int, int] | None, reason: str, instead: str
) -> None:
    with pytest.raises(hw.ViewRefused) as refused:
        shop.view("refused", sql)
    assert reason in refused.value.what
    assert instead in refused.value.hint
    assert refused.value.what
    if position is not None:
        assert refused.value.position == position
        assert f"line {position[0]}, column {position[1]}" in refused.value.where or position == (1, 1)
    with pytest.raises(hw.HeadwaterError, match="no view"):
        shop.read("refused")


def test_constants_that_are_the_same_at_any_moment_are_accepted(shop: hw.Pipeline) -> None:
    constants = [
        *("DATE 'epoch'", "TIMESTAMP 'epoch'", "DATE '2020-01-01'", "CAST('2020-01-01 12:30' AS TIMESTAMP)"),
        *("CAST('2020-1-1' AS DATE)", "to_timestamp('12:30', 'HH:mm')", "'today'", "concat('date', 'today')"),
        *("current_timezone()", "try_cast('12:30' AS DATE)", "try_cast('12:30' AS TIMESTAMP_NTZ)"),
    ]
    columns = ", ".join(f"{each} AS x{place}" for place, each in enumerate(constants))
    shop.view("constant", f"SELECT id, {columns} FROM customers WHERE country IS NULL OR country = 'now'")
    shop.drop("constant")


def test_what_spark_brings_in_itself_is_refused_if_no_rewrite_takes_it_out(
    shop: hw.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite, "RULES", ())
    near = "SELECT o.id, c.country FROM orders o JOIN customers c APPROX NEAREST 1 BY DISTANCE abs(o.id - c.id)"
    with pytest.raises(hw.ViewRefused, match="uuid, which depends on where rows happen to be"):
        shop.view("near", near)


def test_a_key_must_name_columns_that_can_be_compared(shop: hw.Pipeline) -> None:
    with pytest.raises(hw.ViewRefused, match="no column other"):
        shop.view("keyed", "SELECT id, tags FROM orders", key="other")
    with pytest.raises(hw.ViewRefused, match="cannot be compared"):
        shop.view("keyed", "SELECT id, tags FROM orders", key="tags")


def test_declaring_again_needs_the_same_text_and_key(shop: hw.Pipeline) -> None:
    first = shop.view("again", "SELECT id, cents FROM orders", key="id")
    assert shop.view("AGAIN", " SELECT id, cents FROM orders; ", key="ID") == first
    with pytest.raises(hw.DeclarationChanged, match="its SQL"):
        shop.view("again", "SELECT id, cents + 1 AS cents FROM orders", key="id")
    with pytest.raises(hw.DeclarationChanged, match="its key"):
        shop.view("again", "SELECT id, cents FROM orders")
    with pytest.raises(hw.DeclarationChanged, match="declared as a table"):
        shop.view("orders", "SELECT 1 AS x")
    with pytest.raises(hw.DeclarationChanged, match="view"):
        shop.stream("again", "x INT")


def test_what_views_read_cannot_be_dropped_before_them(shop: hw.Pipeline) -> None:
    shop.stream("source", "x INT")
    shop.view("of_log", "SELECT _op, x FROM source__log")
    shop.view("over", "SELECT x FROM of_log")
    for name, user in (("source", "of_log"), ("of_log", "over")):
        with pytest.raises(hw.HeadwaterError, match=f"read by {user}"):
            shop.drop(name)
    for name in ("over", "of_log", "source"):
        shop.drop(name)
    with pytest.raises(hw.ViewRefused, match="cannot be found"):
        shop.view("over", "SELECT x FROM source")


def test_names_that_are_ours_and_texts_that_are_none_are_errors(shop: hw.Pipeline, tmp_path: Path) -> None:
    for name in ("_x", "a__log", "1x", "a b"):
        with pytest.raises(hw.HeadwaterError):
            shop.view(name, "SELECT 1 AS x")
    for sql in ("", "  ", None, 7):
        with pytest.raises(hw.HeadwaterError, match="SQL of a view"):
            shop.view("v", sql)  # type: ignore[arg-type]
