"""The rows of any Arrow table: aligned text for people, lines of JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as arrow_types

from headwater.cli.text import Columns, cell
from headwater.schema.json import to_json

_RUN = 1000
_NUMBERS = (arrow_types.is_integer, arrow_types.is_floating, arrow_types.is_decimal)


def text_lines(table: pa.Table) -> Iterator[str]:
    """The heading and a line for each row, aligned over the first thousand and then by what came before."""
    columns = Columns(table.column_names, right=numeric(table))
    for start in range(0, max(table.num_rows, 1), _RUN):
        lines = columns.lines(cells(table.slice(start, _RUN)))
        if start == 0:
            yield columns.heading()
        yield from lines


def json_lines(table: pa.Table) -> Iterator[str]:
    """A JSON object for each row; a name that comes again gets a number."""
    yield from to_json(table.rename_columns(_apart(table.column_names)))


def numeric(table: pa.Table) -> set[str]:
    """The names of the columns with numbers."""
    return {field.name for field in table.schema if any(is_kind(field.type) for is_kind in _NUMBERS)}


def cells(table: pa.Table) -> list[list[str]]:
    """Every value as text, row by row."""
    return [[cell(value) for value in json.loads(line).values()] for line in json_lines(table)]


def _apart(names: list[str]) -> list[str]:
    apart: list[str] = []
    for name in names:
        free, number = name, 1
        while free in apart:
            number += 1
            free = f"{name}_{number}"
        apart.append(free)
    return apart
