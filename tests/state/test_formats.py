"""A second reader of the state's files, written from docs/formats.md alone: it imports nothing of Headwater's.

The files it reads are made by a child process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import xxhash

WRITER = """
import json, sys
import pyarrow as pa
from headwater.state.files import LocalStateFiles
from headwater.change.hash import hash_rows
from headwater.state import Manifest, Pins, RunFile, merge

def rows(ids, weight):
    ids = pa.array(ids, type=pa.int64())
    names = pa.array([None if id % 5 == 0 else f"name {id}" for id in ids.to_pylist()])
    return pa.table({"id": ids, "name": names, "_hash": hash_rows([ids]), "_weight": [weight] * len(ids)})

folder = sys.argv[1]
writer = RunFile(LocalStateFiles(folder), "1-2-3.runs")
runs = [writer.add(rows(range(start, start + 300), 1)) for start in range(0, 1200, 300)]
many = rows(range(10_000), 1)
many = many.add_column(0, "day", many["id"].cast(pa.int32()).cast(pa.date32()))
many = many.add_column(0, "price", many["id"].cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)))
packed = RunFile(LocalStateFiles(folder), "1-2-4.runs")
packed.add(many)
packed.finish()
runs.append(writer.add(rows(range(100, 150), -1)))
runs = merge(LocalStateFiles(folder), rows([1], 1).schema, runs, writer, budget=10_000).runs
writer.finish()
print(json.dumps(Manifest(runs).as_dict()), flush=True)
with Pins(folder).hold(17):
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], bytes]:
    """The folder, an arrangement's manifest, and a pin while it was held."""
    folder = tmp_path_factory.mktemp("state")
    command = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        manifest = json.loads(child.stdout.readline())
        pins = folder / "pins"
        while not (pins.is_dir() and any(len(pin.read_bytes()) == 40 for pin in pins.iterdir())):
            assert child.poll() is None
        (pin,) = (pin.read_bytes() for pin in pins.iterdir())
        child.communicate("")
    assert child.returncode == 0
    return folder, manifest, pin


def read_stream(data: bytes, offset: int, length: int) -> pa.Table:
    stream = data[offset : offset + length]
    assert stream.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    return pa.ipc.open_stream(stream).read_all()


def expected_hash(number: int) -> int:
    unsigned = xxhash.xxh64_intdigest(number.to_bytes(8, "little", signed=True), 42)
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def test_the_directory_at_the_end_lists_the_runs(written: tuple[Path, dict[str, Any], bytes]) -> None:
    data = (written[0] / "1-2-3.runs").read_bytes()
    assert data[-4:] == b"HWR2"
    length = int.from_bytes(data[-8:-4], "little")
    directory = data[-16 - length : -16]
    assert xxhash.xxh3_64_intdigest(directory) == int.from_bytes(data[-16:-8], "little")
    runs = json.loads(directory)["runs"]
    assert len(runs) == 6
    place = 0
    for run in runs:
        assert run["offset"] == place + -place % 64
        assert not any(data[place : run["offset"]])
        place = run["offset"] + run["length"]
        sums = data[place : place + (run["length"] + 65_535) // 65_536 * 8]
        assert xxhash.xxh3_64_intdigest(sums) == run["checksum"]
        for number, block in enumerate(range(run["offset"], place, 65_536)):
            found = xxhash.xxh3_64_intdigest(data[block : min(block + 65_536, place)])
            assert found == int.from_bytes(sums[number * 8 : number * 8 + 8], "little")
        place += len(sums)
        table = read_stream(data, run["offset"], run["length"])
        assert table.num_rows == run["rows"]
        assert table.schema.names == ["id", "name", "_hash", "_weight"]
        hashes = table.column("_hash").to_pylist()
        assert hashes == sorted(hashes)
        assert hashes == [expected_hash(number) for number in table.column("id").to_pylist()]
    assert not any(data[place : len(data) - 16 - length])


def test_the_manifest_adds_up_to_the_arrangement(written: tuple[Path, dict[str, Any], bytes]) -> None:
    folder, manifest, _ = written
    content: Counter[tuple[Any, ...]] = Counter()
    for run in manifest["runs"]:
        table = read_stream((folder / run["file"]).read_bytes(), run["offset"], run["length"])
        low, high = run.get("low", -(1 << 63)), run.get("high", (1 << 63) - 1)
        rows = [row for row in table.to_pylist() if low <= row["_hash"] <= high]
        assert len(rows) == run["rows"]
        assert isinstance(run["checksum"], int)
        for row in rows:
            content[row["id"], row["name"]] += row["_weight"]
    assert any(run.get("low", -(1 << 63)) > -(1 << 63) for run in manifest["runs"])
    left = {row for row, weight in content.items() if weight}
    assert left == {(n, None if n % 5 == 0 else f"name {n}") for n in range(1200) if not 100 <= n < 150}
    assert set(content.values()) == {0, 1}


def test_a_pin_says_its_tick_twice(written: tuple[Path, dict[str, Any], bytes]) -> None:
    assert written[2] == b"00000000000000000017" * 2


def test_packed_columns_are_integers_and_the_schema_says_what_they_are(
    written: tuple[Path, dict[str, Any], bytes],
) -> None:
    data = (written[0] / "1-2-4.runs").read_bytes()
    table = pa.ipc.open_stream(data).read_all()
    assert table.schema.names == ["price", "day", "id", "name", "_hash", "_weight"]
    assert table.schema.types == [pa.int32(), pa.int16(), pa.int16(), pa.string(), pa.int64(), pa.int8()]
    said = pa.ipc.read_schema(pa.py_buffer(table.schema.metadata[b"unpacked"]))
    assert said.types == [pa.decimal128(21, 2), pa.date32(), pa.int64(), pa.string(), pa.int64(), pa.int64()]
    rows = table.to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(10_000))
    assert all(row["price"] == 100 * row["id"] and row["day"] == row["id"] for row in rows)
    assert [row["_hash"] for row in rows] == sorted(expected_hash(number) for number in range(10_000))
