from __future__ import annotations

import pytest

from headwater.cli.text import Columns, cell, count, size


def test_columns_line_up_and_numbers_stand_on_the_right() -> None:
    columns = Columns(["name", "rows"], right={"rows"})
    lines = columns.lines([["orders", "7"], ["clicks", "12,000"]])
    assert [columns.heading(), *lines] == ["name      rows", "orders       7", "clicks  12,000"]


def test_a_column_grows_when_a_later_row_needs_it_but_not_beyond_reason() -> None:
    columns = Columns(["a", "b"])
    assert columns.lines([["1", "x"]]) == ["1  x"]
    assert columns.lines([["123", "x"]]) == ["123  x"]
    assert columns.lines([["y" * 100, "x"]]) == ["y" * 100 + "  x"]
    assert columns.lines([["1", "x"]]) == ["1".ljust(48) + "  x"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("plain å 水", "plain å 水"),
        ("two\nlines", "two\\nlines"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        (True, "true"),
        (1.5, "1.5"),
    ],
)
def test_a_value_stays_on_its_line_and_leaves_the_terminal_alone(value: object, text: str) -> None:
    assert cell(value) == text


def test_counts_and_sizes_read_well() -> None:
    assert [count(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    assert [size(n) for n in (0, 999, 1000, 999_960, 68_800_000_000, 5e15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.0 MB",
        "68.8 GB",
        "5000.0 TB",
    ]
