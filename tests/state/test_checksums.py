"""Blocks of a run: only what is used is compared, and nothing is used that is not what was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.change import HASH, WEIGHT
from headwater.errors import Unavailable
from headwater.state import Arrangement, Run, RunFile
from headwater.state import open_run as opening
from headwater.state.checksums import BLOCK, Blocks, Summing, table_length
from headwater.state.damage import noted
from headwater.state.files import LocalStateFiles

ROWS = 400_000
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("name", pa.string()),
        ("list", pa.list_(pa.int32())),
        (HASH, pa.int64()),
        (WEIGHT, pa.int64()),
    ]
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """A run of many blocks, whose hashes are the even numbers."""
    numbers = np.arange(ROWS)
    table = pa.table(
        {
            "n": pa.array(numbers * 1_000_000_007, mask=numbers % 7 == 0),
            "name": pa.array([f"name {number}" if number % 5 else None for number in range(ROWS)]),
            "list": pa.array([[number] * (number % 3) for number in range(ROWS)], pa.list_(pa.int32())),
            HASH: numbers * 2,
            WEIGHT: np.ones(ROWS, np.int64),
        },
        schema=SCHEMA,
    )
    folder = tmp_path_factory.mktemp("state")
    file = RunFile(LocalStateFiles(str(folder)), "1-1-1.runs", packs=False)
    run = file.add(table)
    file.finish()
    assert run.length > 100 * BLOCK
    return folder, run


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The places of blocks that were compared."""
    places: set[int] = set()
    check = Blocks.check

    def noting(self: Blocks, start: int, end: int) -> None:
        places.update(range(start - start % BLOCK, end, BLOCK))
        check(self, start, end)

    monkeypatch.setattr(Blocks, "check", noting)
    return places


def harmed(tmp_path: Path, written: tuple[Path, Run], harm: Callable[[bytearray, Run], None]) -> Arrangement:
    folder, run = written
    data = bytearray((folder / run.file).read_bytes())
    harm(data, run)
    (tmp_path / run.file).write_bytes(data)
    return Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, [run])


def test_a_lookup_compares_only_what_it_uses(tmp_path: Path, written: tuple[Path, Run], compared: set[int]) -> None:
    arrangement = harmed(tmp_path, written, lambda data, run: None)
    found = arrangement.select(["n", "name"], pa.schema([SCHEMA.field(0), SCHEMA.field(1), *list(SCHEMA)[-2:]]))
    assert found.probe(np.array([200_000]))["name"].to_pylist() == [None]
    assert found.probe(np.array([200_002]))["name"].to_pylist() == ["name 100001"]
    assert 0 < len(compared) < 30


def test_what_is_damaged_elsewhere_does_not_matter_to_a_lookup_and_is_told_to_a_scan(
    tmp_path: Path, written: tuple[Path, Run]
) -> None:
    def harm(data: bytearray, run: Run) -> None:
        data[run.offset + run.length - 3 * BLOCK] ^= 1  # the weights of rows near the end

    arrangement = harmed(tmp_path, written, harm)
    assert arrangement.probe(np.array([2])).num_rows == 1
    with pytest.raises(Unavailable, match="not what was written, at byte"):
        list(arrangement.scan())
    with pytest.raises(Unavailable):
        arrangement.probe(np.arange(0, 2 * ROWS, 1000))
    assert noted(LocalStateFiles(str(tmp_path))) == ["1-1-1.runs"]


def test_no_lookup_is_led_astray_by_a_damaged_hash(tmp_path: Path, written: tuple[Path, Run]) -> None:
    """Wherever a binary search begins, half of what it looks at first is larger than it should be."""
    folder, run = written
    opened = opening.open_run(LocalStateFiles(str(folder)), run, SCHEMA)
    (batch,) = opened._batches
    start = batch.column(HASH).buffers()[1].address - pa.py_buffer(opened._checked[0]._blocks._data).address

    def harm(data: bytearray, run: Run) -> None:
        for row in (ROWS // 2, ROWS // 4, 3 * ROWS // 4, ROWS // 2 - 1):
            place = run.offset + start + 8 * row
            data[place : place + 8] = (1 << 62).to_bytes(8, "little")

    arrangement = harmed(tmp_path, written, harm)
    for row in range(1, ROWS, ROWS // 40):
        try:
            assert arrangement.probe(np.array([2 * row])).num_rows == 1
            assert arrangement.count(0, 2 * row) == row + 1
        except Unavailable:
            continue


@pytest.mark.parametrize("byte", range(0, 2000, 97))
def test_what_says_where_rows_are_is_compared_before_it_is_read(
    tmp_path: Path, written: tuple[Path, Run], byte: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def harm(data: bytearray, run: Run) -> None:
        data[run.offset + byte] ^= 0x40

    arrangement = harmed(tmp_path, written, harm)
    monkeypatch.setattr(pa.ipc, "open_stream", None)
    with pytest.raises(Unavailable, match="not what was written, at byte 0"):
        arrangement.probe(np.array([2]))


@pytest.mark.parametrize("place", [0, 8, 100])
def test_the_checksums_themselves_are_checked(tmp_path: Path, written: tuple[Path, Run], place: int) -> None:
    def harm(data: bytearray, run: Run) -> None:
        data[run.offset + run.length + place] ^= 1

    with pytest.raises(Unavailable, match="the checksums behind the run are not those that were written"):
        harmed(tmp_path, written, harm).probe(np.array([2]))


def test_another_run_of_the_same_shape_is_damage(tmp_path: Path) -> None:
    """As after a write that never reached the disk, where an older file lies."""
    runs = []
    for number in (1, 2):
        file = RunFile(LocalStateFiles(str(tmp_path)), "1-1-1.runs")
        runs.append(file.add(pa.table({"n": [number], HASH: [5], WEIGHT: [1]})))
        file.finish()
    schema = pa.schema([("n", pa.int64()), (HASH, pa.int64()), (WEIGHT, pa.int64())])
    assert Arrangement(LocalStateFiles(str(tmp_path)), schema, [runs[1]]).probe(np.array([5]))["n"].to_pylist() == [
        2
    ]
    with pytest.raises(Unavailable, match="the checksums behind the run"):
        Arrangement(LocalStateFiles(str(tmp_path)), schema, [runs[0]]).probe(np.array([5]))


@pytest.mark.parametrize("length", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_bytes_have_the_same_checksums_however_they_come(length: int) -> None:
    data = np.random.default_rng(length).bytes(length)
    whole, parts = Summing(), Summing()
    whole.add(memoryview(data))
    for start in range(0, length, 10_007):
        parts.add(memoryview(data)[start : start + 10_007])
    assert whole.table() == (table := parts.table())
    assert len(table) == table_length(length)
