"""Runs of before a table was altered, beside those of after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.change.columns import marked
from headwater.change.keys import hashed_schema, hashes
from headwater.errors import DeclarationChanged
from headwater.state.arrangement import Arrangement
from headwater.state.files import LocalStateFiles
from headwater.state.merge import merge
from headwater.state.run import Run
from headwater.state.run_file import RunFile

OLD = pa.schema([("id", pa.int64()), ("a", pa.int32()), ("note", pa.string())])
NEW = marked(pa.schema([("a", pa.int64()), ("id", pa.int64()), ("tax", pa.int8())]), 1, {}, {"tax": "3"})
Row = tuple[Any, ...]


def table(columns: pa.Schema, *rows: Row) -> pa.Table:
    """Rows with their weights, which come last."""
    made = pa.Table.from_pylist([dict(zip([*columns.names, "_weight"], row, strict=True)) for row in rows])
    arrays = [made.column(field.name).cast(field.type) for field in columns]
    hashed = pa.array(hashes(made, ["id"]))
    return pa.Table.from_arrays([*arrays, hashed, made.column("_weight")], schema=hashed_schema(columns))


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    """Rows come, one changes in a column that goes later, and after the table was altered another does."""
    file = RunFile(LocalStateFiles(str(tmp_path)), "1-1.runs")
    made = [
        file.add(table(OLD, *((n, n, "x", 1) for n in range(9)))),
        file.add(table(OLD, (3, 3, "x", -1), (3, 3, "y", 1))),
        file.add(table(NEW, (4, 4, 3, -1), (1 << 40, 4, 1, 1))),
        file.add(table(NEW, (9, 9, 9, 1))),
    ]
    file.finish()
    return made


WANTED = {(n, n, 3) for n in range(9)} - {(4, 4, 3)} | {(1 << 40, 4, 1), (9, 9, 9)}


def rows(found: pa.Table) -> list[Row]:
    assert set(found.column("_weight").to_pylist()) <= {1}
    return [tuple(row.values())[:3] for row in found.to_pylist()]


def test_all_runs_are_read_with_the_columns_of_now(tmp_path: Path, runs: list[Run]) -> None:
    found = Arrangement(LocalStateFiles(str(tmp_path)), hashed_schema(NEW), runs)
    whole = pa.concat_tables(list(found.scan(rows=3)))
    assert (len(whole), set(rows(whole))) == (10, WANTED)
    probed = found.probe(hashes(pa.table({"id": np.arange(20)}), ["id"]))
    assert (len(probed), set(rows(probed))) == (10, WANTED)
    chosen = found.select(["tax"], hashed_schema(pa.schema([("c1", pa.int8())])))
    assert sorted(pa.concat_tables(list(chosen.scan())).column("c1").to_pylist()) == [1, *[3] * 8, 9]


def test_rows_that_a_column_told_apart_are_the_same_without_it(tmp_path: Path, runs: list[Run]) -> None:
    alone = Arrangement(LocalStateFiles(str(tmp_path)), hashed_schema(NEW), runs[1:2])
    assert list(alone.scan()) == []
    assert alone.probe(hashes(pa.table({"id": [3]}), ["id"])).num_rows == 0


def test_merging_writes_the_columns_of_now(tmp_path: Path, runs: list[Run]) -> None:
    files = LocalStateFiles(str(tmp_path))
    writer = RunFile(files, "1-2.runs")
    merged = merge(files, hashed_schema(NEW), runs, writer, 1 << 30).runs
    writer.finish()
    assert len(merged) == 1
    (whole,) = Arrangement(files, hashed_schema(NEW), merged).scan()
    assert set(rows(whole)) == WANTED


def test_rows_of_after_are_not_read_as_of_before(tmp_path: Path, runs: list[Run]) -> None:
    with pytest.raises(DeclarationChanged, match="altered"):
        list(Arrangement(LocalStateFiles(str(tmp_path)), hashed_schema(OLD), runs).scan())
