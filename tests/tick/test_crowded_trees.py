"""A change of a row of a crowded group reads a leaf and what lies above it, not the group: counted, not timed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.testing import assert_same_as_batch

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 30_000
MOST = 1_500
VIEWS = {
    "max by group": "SELECT k, max(x) AS m FROM a GROUP BY k",
    "max and min of everything": "SELECT max(x) AS m, min(id) AS n FROM a",
    "sums of floats by group": "SELECT k, sum(x) AS t, avg(x) AS m, stddev(x) AS d FROM a GROUP BY k",
    "what can be added to, too": "SELECT k, count(*) AS n, sum(id) AS t, max(x) AS m FROM a GROUP BY k",
    "the row with the greatest": "SELECT k, max_by(id, x) AS m, bit_or(id) AS o FROM a GROUP BY k",
    "first rows by group": "SELECT id FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY x, id) <= 3",
    "first rows of everything": "SELECT id, x FROM a ORDER BY x DESC, id LIMIT 10 OFFSET 10",
}


CHANGES = {
    "a row comes": [{"id": ROWS, "k": "crowd", "x": 1.5}],
    "the greatest comes": [{"id": ROWS + 1, "k": "crowd", "x": 5000.5}],
    "the greatest becomes another": [{"id": ROWS + 1, "k": "crowd", "x": -1.0}],
    "a row goes to another key": [{"id": 11, "k": "k1", "x": 3.0}],
    "a row goes to no key": [{"id": 12, "k": None, "x": None}],
    "a row comes from no key": [{"id": 12, "k": "crowd", "x": 6000.0}],
    "a row of a small group": [{"id": 10, "k": "k0", "x": None}],
}
Crowd = tuple[hw.Pipeline, hw.Table]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    """All views over one table, of which nine rows in ten have the same key."""
    with hw.Pipeline("crowd", tmp_path_factory.mktemp("crowd") / "p") as pipeline:
        table = pipeline.table("a", "id BIGINT, k STRING, x DOUBLE", key="id", durability="none")
        numbers = np.arange(ROWS)
        small = np.char.add("k", (numbers // 10 % 100).astype(str))
        keys = pa.array(np.where(numbers % 10, "crowd", small).astype(object), pa.string())
        table.upsert(pa.table({"id": numbers, "k": keys, "x": np.sin(numbers) * 1000}))
        for number, sql in enumerate(VIEWS.values()):
            pipeline.view(f"v{number}", sql)
        pipeline.tick()
        yield pipeline, table


@pytest.mark.parametrize("number", range(len(VIEWS)), ids=list(VIEWS))
def test_the_state_is_not_much_more_than_the_rows(crowd: Crowd, number: int) -> None:
    kept = re.findall(r"state .*: (\d+) rows in", crowd[0].explain(f"v{number}"))
    assert ROWS <= sum(map(int, kept)) <= 1.2 * ROWS


@pytest.mark.parametrize("change", CHANGES)
def test_a_row_that_comes_or_becomes_another_is_looked_for_in_its_leaf(crowd: Crowd, change: str) -> None:
    crowd[1].upsert(CHANGES[change])
    check(crowd[0])


@pytest.mark.parametrize("greatest", [False, True])
def test_so_is_one_that_leaves(crowd: Crowd, greatest: bool) -> None:
    pipeline, table = crowd
    crowded = pipeline.query("SELECT id FROM a WHERE k = 'crowd' ORDER BY x DESC").column("id")
    table.delete([crowded[0 if greatest else 1000].as_py()])
    check(pipeline)


def check(pipeline: hw.Pipeline) -> None:
    """Of what each view keeps few rows were read, and it is right."""
    pipeline.tick()
    for number in range(len(VIEWS)):
        told = re.search(r"looked up: (\d+)", pipeline.explain(f"v{number}"))
        assert told is not None
        assert 0 < int(told[1]) <= MOST
    assert_same_as_batch(pipeline)
