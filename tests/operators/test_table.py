"""What records change in a table, against the same records applied one by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from headwater.change import HASH
from headwater.change.keys import hashed_schema, hashes
from headwater.operators.table import OPERATION, keyed_changes, multiset_changes, record_schema
from headwater.state.arrangement import Arrangement
from headwater.state.files import LocalStateFiles
from headwater.state.run import Run
from headwater.state.run_file import RunFile
from tests.operators.running import Row, counted

COLUMNS = pa.schema([pa.field("key", pa.int64()), pa.field("text", pa.string())])
UPSERT, DELETE = 1, 2
Record = tuple[int, int, str | None]


def records(given: list[Record], key: list[str], *, collide: bool) -> pa.Table:
    table = pa.table({"key": [key for _, key, _ in given], "text": [text for *_, text in given]}, schema=COLUMNS)
    table = table.append_column(OPERATION, pa.array([operation for operation, *_ in given], pa.int8()))
    found = np.zeros(len(given), np.int64) if collide else hashes(table, key)
    return table.append_column(HASH, pa.array(found)).cast(record_schema(COLUMNS))


def some(random: Random) -> list[Record]:
    return [
        (random.choice([UPSERT, UPSERT, DELETE]), random.randrange(5), random.choice([None, "", "a"]))
        for _ in range(random.choice([0, 1, 25]))
    ]


class Table:
    def __init__(self, folder: Path) -> None:
        self._place = LocalStateFiles(str(folder))
        self._runs: list[Run] = []

    @property
    def held(self) -> Arrangement:
        return Arrangement(self._place, hashed_schema(COLUMNS), tuple(self._runs))

    def take(self, change: pa.Table) -> None:
        if change.num_rows:
            file = RunFile(self._place, f"{len(self._runs)}.runs")
            self._runs.append(file.add(change))
            file.finish()

    @property
    def rows(self) -> Counter[Row]:
        return counted(self.held.scan(), COLUMNS.names)


@pytest.mark.parametrize("collide", [False, True], ids=["hashes", "one hash"])
@pytest.mark.parametrize("seed", range(4))
def test_the_last_record_of_a_key_wins(seed: int, collide: bool, tmp_path: Path) -> None:
    random, table, right = Random(seed), Table(tmp_path), dict[int, str | None]()
    for _ in range(6):
        given = some(random)
        table.take(keyed_changes(records(given, ["key"], collide=collide), ["key"], table.held))
        for operation, key, text in given:
            if operation == DELETE:
                right.pop(key, None)
            else:
                right[key] = text
        assert table.rows == Counter(right.items())


@pytest.mark.parametrize("collide", [False, True], ids=["hashes", "one hash"])
@pytest.mark.parametrize("seed", range(4))
def test_without_a_key_a_row_is_there_as_often_as_it_came_and_was_not_taken(
    seed: int, collide: bool, tmp_path: Path
) -> None:
    random, table, right = Random(seed), Table(tmp_path), Counter[Row]()
    for _ in range(6):
        given = some(random)
        table.take(multiset_changes(records(given, ["key", "text"], collide=collide), table.held))
        for operation, *row in given:
            right[tuple(row)] = max(0, right[tuple(row)] + (-1 if operation == DELETE else 1))
        assert table.rows == +right


def test_what_comes_and_goes_within_a_tick_is_no_change(tmp_path: Path) -> None:
    given = records([(UPSERT, 1, "a"), (DELETE, 1, None), (DELETE, 2, None)], ["key"], collide=False)
    assert keyed_changes(given, ["key"], Table(tmp_path).held).num_rows == 0
