"""Types that differ only in whether inner fields may be null."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headwater.change.shape import shaped

LOOSE = pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string())])
STRICT = pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string(), nullable=False)])
ROWS = [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]


def structs(count: int) -> pa.StructArray:
    """Structs that are null in all their fields where they are null themselves, as Spark writes them."""
    rows = (ROWS * count)[:count]
    given = pa.array(rows, LOOSE)
    made = pa.StructArray.from_arrays(given.flatten(), fields=list(LOOSE), mask=given.is_null())
    assert made.field(1).null_count == sum(row is None for row in rows)
    return made


OFFSETS = pa.array([0, 2, 2, 3], pa.int32())
NOTHING = pa.array([False, True, False])
CASES = [
    (structs(3), STRICT),
    (pa.StructArray.from_arrays([structs(3)], names=["s"]), pa.struct([pa.field("s", STRICT)])),
    (pa.ListArray.from_arrays(OFFSETS, structs(3), mask=NOTHING), pa.list_(pa.field("element", STRICT))),
    (
        pa.MapArray.from_arrays(OFFSETS, pa.array(["k", "l", "m"]), structs(3), mask=NOTHING),
        pa.map_(pa.string(), pa.field("value", STRICT)),
    ),
    (pa.array([1, None, 3], pa.int32()), pa.int64()),
    (pa.array([{}, None, {}], pa.struct([])), pa.struct([])),
]


@pytest.mark.parametrize(("array", "wanted"), CASES, ids=[str(wanted) for _, wanted in CASES])
@pytest.mark.parametrize("start", [0, 1, 2])
def test_the_values_stay_and_the_type_is_the_wanted_one(array: pa.Array, wanted: pa.DataType, start: int) -> None:
    given = pa.table({"x": pa.chunked_array([array, array.slice(start)])})
    done = shaped(given, pa.schema([pa.field("y", wanted)]))
    done.validate(full=True)
    expected: list[Any] = given["x"].to_pylist()
    assert done["y"].type == wanted
    assert done["y"].to_pylist() == expected


def test_nothing_has_any_type() -> None:
    assert shaped(pa.table({"x": pa.chunked_array([], LOOSE)}), pa.schema([("x", STRICT)])).num_rows == 0
