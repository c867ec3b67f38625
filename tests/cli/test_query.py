from __future__ import annotations

import json
from pathlib import Path

import pytest

import headwater as hw

from .conftest import Headwater, click


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("sql", "lines"),
    [
        ("SELECT 1 AS one, 'a' AS text", ["one  text", "  1  a"]),
        ("SELECT 1 AS a, 2 AS a", ["a  a", "1  2"]),
        ("SELECT 1 AS a WHERE false", ["a"]),
        (
            "SELECT [1, NULL] AS list, NULL AS nothing, 1.50 AS price",
            ["list       nothing  price", "[1, null]  null      1.50"],
        ),
    ],
)
def test_rows_line_up_below_their_names(headwater: Headwater, sql: str, lines: list[str]) -> None:
    done = headwater("query", sql)
    assert done.returncode == 0
    assert done.stdout.splitlines() == lines
    assert done.stderr == ("1 row\n" if len(lines) == 2 else "0 rows\n")


@pytest.mark.usefixtures("shop")
def test_json_is_a_line_for_each_row_and_loses_no_column(headwater: Headwater) -> None:
    done = headwater("query", "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) t(a, b)", "--json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"a": 1, "b": "a"}, {"a": 2, "b": None}]
    assert done.stderr == ""
    assert json.loads(headwater("query", "SELECT 1 AS a, 2 AS a", "--json").stdout) == {"a": 1, "a_2": 2}


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DROP TABLE orders", "error: this is not a statement that only reads\nhint:  allowed is"),
        ("SELECT * FROM order", "error: query: Parser Error: "),
        (
            "SELECT * FROM ordres",
            "error: there is no view, table or stream called 'ordres'\nhint:  did you mean orders?",
        ),
    ],
)
def test_a_mistake_is_told_in_a_line(headwater: Headwater, sql: str, said: str) -> None:
    done = headwater("query", sql)
    assert done.returncode == 1
    assert done.stderr.startswith(said)


@pytest.mark.usefixtures("shop")
def test_what_no_tick_has_taken_in_is_not_seen_yet(headwater: Headwater) -> None:
    headwater("produce", "clicks", given=click("s"))
    assert headwater("query", "SELECT count(*) AS n FROM clicks").stdout.split() == ["n", "0"]


def test_views_and_explain_without_a_view_say_what_to_do(headwater: Headwater, shop: Path) -> None:
    assert headwater("views").stdout == "no views yet: declare one with Pipeline.view\n"
    assert headwater("views", "--json").stdout == "[]\n"
    assert headwater("explain", "orders").stderr == (
        "error: orders: orders is a table, and only views have a plan\nhint:  name a view\n"
    )
    assert headwater("explain", "nothing").returncode == 1
    with hw.Pipeline("shop", shop) as pipeline:
        assert pipeline.query("SELECT 1 AS one").num_rows == 1
