"""DuckDB's SQL over everything, at one version, and nothing but reading."""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

import headwater as hw
from headwater.read.query import QueryEngine
from tests.read.hand import Hand, rows_of


@pytest.fixture
def shop(hand: Hand) -> Hand:
    orders = hand.pipeline.table("orders", "id BIGINT, customer STRING, cents BIGINT", key="id")
    clicks = hand.pipeline.stream("clicks", "customer STRING, at TIMESTAMP")
    hand.view("totals", "customer STRING, cents BIGINT", key=["customer"])
    orders.upsert([{"id": 1, "customer": "ada", "cents": 500}, {"id": 2, "customer": "bob", "cents": 300}])
    clicks.append([{"customer": "ada", "at": dt.datetime(2026, 5, 1, 23, 30, tzinfo=dt.UTC)}])
    hand.tick(totals=[("ada", 500), ("bob", 300)])
    orders.upsert([{"id": 3, "customer": "ada", "cents": 50}])
    hand.tick(totals=[("ada", 550), ("bob", 300)])
    return hand


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT customer, cents FROM totals",
        "select CUSTOMER, Cents from TOTALS",
        "-- all of it\nFROM totals;",
        "WITH t AS (SELECT * FROM totals) SELECT * FROM t",
        "WITH orders AS (SELECT * FROM totals) SELECT * FROM orders",
        "SELECT customer, sum(cents)::BIGINT FROM orders GROUP BY customer",
        "SELECT customer, (SELECT sum(cents)::BIGINT FROM orders o WHERE o.customer = t.customer) FROM Totals t",
        "SELECT customer, t.cents FROM totals t JOIN totals USING (customer) SEMI JOIN orders USING (customer)",
        "TABLE totals",
        "VALUES ('ada', 550), ('bob', 300)",
    ],
)
def test_relations_are_asked_by_name(shop: Hand, sql: str) -> None:
    assert rows_of(shop.reader.query(sql)) == Counter([("ada", 550), ("bob", 300)])


@pytest.mark.parametrize("sql", ["DESCRIBE totals", "SUMMARIZE totals", "DESCRIBE SELECT * FROM totals"])
def test_relations_are_described(shop: Hand, sql: str) -> None:
    assert shop.reader.query(sql).column("column_name").to_pylist() == ["customer", "cents"]


@pytest.mark.parametrize(
    "sql", ["EXPLAIN FROM totals", "/* why */ explain analyze FROM totals", "EXPLAIN (FORMAT json) FROM totals"]
)
def test_a_query_is_explained(shop: Hand, sql: str) -> None:
    assert shop.reader.query(sql).num_rows > 0


def test_logs_and_streams_are_there_too(shop: Hand) -> None:
    counts = "(SELECT count(*) FROM orders__log), (SELECT count(*) FROM clicks)"
    sql = f"SELECT {counts}, (FROM clicks__log SELECT min(_op))"
    assert rows_of(shop.reader.query(sql)) == Counter([(3, 1, "append")])


def test_everything_in_a_query_is_of_the_same_version(shop: Hand) -> None:
    sums = "(SELECT sum(cents) FROM totals), (SELECT sum(cents) FROM orders)"
    sql = f"SELECT {sums}, (SELECT count(*) FROM orders__log)"
    assert rows_of(shop.reader.query(sql)) == Counter([(850, 850, 3)])
    assert rows_of(shop.reader.query(sql, as_of=1)) == Counter([(800, 800, 2)])
    with pytest.raises(hw.HeadwaterError, match="no tick 3"):
        shop.reader.query(sql, as_of=3)
    shop.keep(2)
    with pytest.raises(hw.VersionExpired):
        shop.reader.query(sql, as_of=1)


def test_only_what_is_named_is_read(shop: Hand) -> None:
    for path in shop.state.glob("*.runs"):
        path.unlink()
    assert shop.reader.query("SELECT count(*) AS orders FROM clicks").num_rows == 1
    with pytest.raises(hw.Unavailable):
        shop.reader.query("SELECT * FROM orders")


def test_before_the_first_tick_everything_is_empty(hand: Hand) -> None:
    hand.view("totals", "n INT")
    assert rows_of(hand.reader.query("SELECT count(*) FROM totals")) == Counter([(0,)])


def test_a_view_that_is_not_filled_yet_is_told(shop: Hand) -> None:
    shop.view("later", "n INT")
    with pytest.raises(hw.NotReached):
        shop.reader.query("FROM later")


def test_instants_come_back_in_utc_and_days_are_those_of_the_pipelines_zone(shop: Hand) -> None:
    table = shop.reader.query(
        'SELECT "at", ["at"] l, {\'t\': "at"} s, MAP {\'k\': "at"} m, "at"::DATE d FROM clicks'
    )
    instant = pa.timestamp("us", "UTC")
    assert table.schema.field("at").type == instant
    assert table.schema.field("l").type.value_type == instant
    assert table.schema.field("s").type.field(0).type == instant
    assert table.schema.field("m").type.item_type == instant
    moment = dt.datetime(2026, 5, 1, 23, 30, tzinfo=dt.UTC)
    assert table.to_pylist() == [
        {"at": moment, "l": [moment], "s": {"t": moment}, "m": [("k", moment)], "d": dt.date(2026, 5, 2)}
    ]


def test_values_of_all_kinds_pass_through(hand: Hand) -> None:
    ddl = "a DECIMAL(38,2), b ARRAY<STRING>, c BINARY, d DATE, e BOOLEAN, f DOUBLE, g TIMESTAMP_NTZ, h TINYINT"
    hand.view("kinds", ddl)
    row = (Decimal("1.25"), ("x",), b"\0", dt.date(2026, 1, 1), True, 0.5, dt.datetime(2026, 1, 1), 7)  # noqa: DTZ001
    hand.tick(kinds=[row])
    table = hand.reader.query("FROM kinds")
    assert rows_of(table) == Counter([row])
    assert [t for t in table.schema.types if not pa.types.is_list(t)] == [
        t for t in hand.reader.read("kinds").schema.types if not pa.types.is_list(t)
    ]


# -- mistakes


def test_a_name_that_does_not_exist_is_an_error_with_those_that_do(shop: Hand) -> None:
    for sql in ("FROM total", "SELECT * FROM orders JOIN total USING (customer)", "DESCRIBE nothing"):
        with pytest.raises(hw.HeadwaterError, match="there is no view, table or stream") as unknown:
            shop.reader.query(sql)
        assert "orders, clicks, totals" in unknown.value.hint
        assert unknown.value.__cause__ is None


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT nothing FROM totals", 'column "nothing" not found'),
        ("SELEC 1", "syntax error"),
        ("SELECT CAST(customer AS INT) FROM totals", "Could not convert"),
        ("SELECT error('on purpose')", "on purpose"),
        ("SELECT ?", "param|value"),
        ("SELECT * FROM main.nothing", "nothing"),
    ],
)
def test_a_mistake_is_an_error_of_one_line_without_a_traceback(shop: Hand, sql: str, what: str) -> None:
    with pytest.raises(hw.HeadwaterError, match=what) as mistake:
        shop.reader.query(sql)
    assert "\n" not in mistake.value.what
    assert mistake.value.__suppress_context__


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO totals VALUES ('eve', 1)",
        "UPDATE totals SET cents = 0",
        "DELETE FROM totals",
        "CREATE TABLE t AS FROM totals",
        "DROP VIEW totals",
        "COPY totals TO 'out.csv'",
        "ATTACH 'other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "PRAGMA version",
        "SET threads = 1",
        "CALL pragma_version()",
        "BEGIN",
        "USE memory",
        "EXPORT DATABASE 'folder'",
        "PREPARE p AS SELECT 1",
        "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1",
        "EXPLAIN INSERT INTO totals VALUES ('eve', 1)",
        "SHOW TABLES",
        "SELECT 1; SELECT 2",
        "",
        "-- nothing",
        7,
        None,
    ],
)
def test_anything_but_one_statement_that_reads_is_refused(shop: Hand, sql: Any) -> None:
    with pytest.raises(hw.HeadwaterError) as refused:
        shop.reader.query(sql)
    assert "SELECT, WITH, FROM, VALUES" in refused.value.hint


@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_csv('{file}')",
        "FROM read_text('{file}')",
        "FROM '{file}'",
        "FROM glob('{folder}/*')",
        "FROM sniff_csv('{file}')",
        "FROM read_parquet('http://localhost:1/x.parquet')",
        "FROM duckdb_extensions()",
        "WITH gone AS (DELETE FROM totals RETURNING *) FROM gone",
    ],
)
def test_nothing_outside_can_be_reached(shop: Hand, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(hw.HeadwaterError):
        shop.reader.query(sql.format(file=file, folder=tmp_path))


def test_variables_of_the_program_are_not_relations(shop: Hand) -> None:
    secret = pa.table({"a": [1]})
    with pytest.raises(hw.HeadwaterError, match="there is no"):
        shop.reader.query("FROM secret")
    assert secret.num_rows == 1


# -- life


def test_queries_of_many_threads_do_not_meet(shop: Hand) -> None:
    wrong: list[object] = []

    def ask(version: int) -> None:
        for _ in range(10):
            rows = rows_of(shop.reader.query("SELECT sum(cents) FROM totals", as_of=version))
            if rows != Counter([(750 + 50 * version if version == 1 else 850,)]):
                wrong.append(rows)

    threads = [threading.Thread(target=ask, args=(1 + n % 2,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_forked_child_has_a_database_of_its_own(shop: Hand) -> None:
    assert shop.reader.query("FROM totals").num_rows == 2
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            os._exit(int(shop.reader.query("FROM totals").num_rows != 2))
        finally:
            os._exit(3)
    assert os.waitpid(child, 0)[1] == 0


def test_reading_without_a_query_imports_neither_duckdb_nor_spark_nor_pandas() -> None:
    program = (
        "import sys, headwater.read; "
        "print([m for m in ('duckdb', 'pyspark', 'pandas', 'polars') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_interrupt_of_a_query_is_one(hand: Hand) -> None:
    before = signal.signal(signal.SIGPROF, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_PROF, 0.2)  # of the time that is worked, so the query has begun
        with pytest.raises(KeyboardInterrupt):
            hand.reader.query(
                "SELECT count(*) FROM range(100_000_000) a JOIN range(100_000_000) b ON a.range < b.range"
            )
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert hand.reader.query("SELECT 1 AS one").to_pylist() == [{"one": 1}]


def test_an_interrupt_while_duckdb_looks_at_a_table_is_one() -> None:
    class Interrupted:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise KeyboardInterrupt

    engine = QueryEngine("UTC")
    with pytest.raises(KeyboardInterrupt):
        engine.answer(engine.parse("FROM t"), cast("Any", {"t": Interrupted()}), hw.HeadwaterError)
    with pytest.raises(hw.HeadwaterError, match="KeyboardInterrupt"):  # what a row says is none
        engine.answer(engine.parse("SELECT 'KeyboardInterrupt:'::INT"), {}, hw.HeadwaterError)
