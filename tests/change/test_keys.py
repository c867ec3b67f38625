"""Keys are told apart whatever their hashes: here all rows have the same one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headwater.change import HASH, WEIGHT
from headwater.change.keys import codes, grouped
from headwater.operators.join import Side, join
from headwater.state.arrangement import Arrangement
from headwater.state.files import LocalStateFiles
from headwater.state.run_file import RunFile


@pytest.mark.parametrize("kind", [pa.null(), pa.struct([("n", pa.null())])], ids=str)
def test_a_null_that_is_of_no_type_is_a_key_like_any_other(kind: pa.DataType) -> None:
    one, other = pa.chunked_array([pa.nulls(2, kind)]), pa.chunked_array([pa.nulls(1, kind)])
    assert [each.tolist() for each in codes([[one], [other]])] == [[0, 0], [0]]
    assert [each.tolist() for each in codes([[one.slice(2)], [other.slice(1)]])] == [[], []]
    numbers = pa.chunked_array([[7, 8]]), pa.chunked_array([[8]])
    assert [each.tolist() for each in codes([[one, numbers[0]], [other, numbers[1]]])] == [[0, 1], [1]]


def rows(key: str, values: list[object], other: str, others: list[object]) -> pa.Table:
    count = len(values)
    columns = [pa.array(values, pa.int64()), pa.array(others, pa.string()), [7] * count, [1] * count]
    return pa.table(columns, names=[key, other, HASH, WEIGHT])


def test_rows_of_different_keys_are_not_joined(tmp_path: Path) -> None:
    left = rows("a", [1, 2, 2, 3], "t", ["x", "y", "z", None])
    right = rows("b", [2, 4, 1], "u", ["p", "q", "r"])
    file = RunFile(LocalStateFiles(str(tmp_path)), "held.runs")
    held = Arrangement(LocalStateFiles(str(tmp_path)), right.schema, [file.add(rows("b", [3, 2], "u", ["s", "v"]))])
    file.close()
    nothing = Arrangement(LocalStateFiles(str(tmp_path)), left.schema, [])
    output = pa.schema([("a", pa.int64()), ("t", pa.string()), ("u", pa.string())])
    parts, read = join(Side(left, nothing, ["a"]), Side(right, held, ["b"]), output)
    found = sorted((tuple(row.values()) for part in parts for row in part.table().to_pylist()), key=repr)
    assert [row[:3] for row in found] == [
        (1, "x", "r"),
        (2, "y", "p"),
        (2, "y", "v"),
        (2, "z", "p"),
        (2, "z", "v"),
        (3, None, "s"),
    ]
    assert read == 2


def test_pairs_are_put_together_only_where_they_are_wanted() -> None:
    left = rows("a", [1, 2, 3], "t", ["x", None, "z"])
    right = rows("b", [3, 2, 1], "u", ["p", "q", "r"])
    output = pa.schema([("u", pa.string()), ("a", pa.int64())])
    nothing = Arrangement(LocalStateFiles(""), left.schema, []), Arrangement(LocalStateFiles(""), right.schema, [])
    made, _ = join(Side(left, nothing[0], ["a"]), Side(right, nothing[1], ["b"]), output)
    (pairs,), (none,) = made
    assert none.num_rows == 0
    assert pairs.take(pa.array([2, 0])).table().to_pylist() == [
        {"u": "p", "a": 3, WEIGHT: 1},
        {"u": "r", "a": 1, WEIGHT: 1},
    ]
    assert pairs.filter(pa.chunked_array([[False, True, False]])).column("a").to_pylist() == [2]


def test_rows_of_different_keys_are_not_grouped() -> None:
    one = rows("a", [1, 1, None, 2], "t", ["x", "y", "x", None])
    other = rows("a", [None, 1, 3], "t", ["x", "x", "x"])
    found = grouped([one, other], ["a", "t"])
    expected = codes([[table.column("a"), table.column("t")] for table in (one, other)])
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    assert found[1][0] == found[0][2]
    assert len({*found[0].tolist(), *found[1].tolist()}) == 5
