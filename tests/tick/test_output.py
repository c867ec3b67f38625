"""A view's change, consolidated and checked against its key."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.catalog.relation import Relation
from headwater.change import WEIGHT
from headwater.schema import parse
from headwater.state import Arrangement, RunFile
from headwater.state.files import LocalStateFiles
from headwater.tick.output import view_change
from headwater.tick.relations import arranged

SCHEMA = parse("country STRING, cents BIGINT")
REVENUE = Relation("revenue", "view", 1, SCHEMA, SCHEMA.arrow, ("country",))


def change(*rows: tuple[str, int, int]) -> pa.Table:
    countries, cents, weights = zip(*rows, strict=True)
    return pa.table({"c0": list(countries), "c1": list(cents), WEIGHT: list(weights)})


def holding(tmp_path: Path, *rows: tuple[str, int, int]) -> Arrangement:
    nothing = Arrangement(LocalStateFiles(str(tmp_path)), arranged(REVENUE), [])
    file = RunFile(LocalStateFiles(str(tmp_path)), "1-1-x.runs")
    run = file.add(view_change(REVENUE, change(*rows), nothing))
    file.finish()
    return Arrangement(LocalStateFiles(str(tmp_path)), arranged(REVENUE), [run])


def test_a_row_may_replace_another_of_the_same_key(tmp_path: Path) -> None:
    made = view_change(
        REVENUE, change(("NO", 1, -1), ("NO", 2, 1), ("SE", 7, 1), ("SE", 7, -1)), holding(tmp_path, ("NO", 1, 1))
    )
    assert sorted(made.drop_columns(["_hash"]).to_pylist(), key=lambda row: row["cents"]) == [
        {"country": "NO", "cents": 1, WEIGHT: -1},
        {"country": "NO", "cents": 2, WEIGHT: 1},
    ]


@pytest.mark.parametrize("rows", [[("NO", 2, 1)], [("SE", 1, 1), ("SE", 2, 1)], [("SE", 1, 2)]])
def test_two_rows_of_one_key_are_refused_with_the_key(tmp_path: Path, rows: list[tuple[str, int, int]]) -> None:
    with pytest.raises(hw.HeadwaterError, match=f"2 rows have the key country = '{rows[0][0]}'"):
        view_change(REVENUE, change(*rows), holding(tmp_path, ("NO", 1, 1)))
