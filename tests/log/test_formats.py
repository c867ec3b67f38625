"""A second reader of the log, written from docs/formats.md alone: it imports nothing of Headwater's.

The pipeline it reads is made by a child process.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import xxhash

WRITER = """
import sys
import headwater as hw
p = hw.Pipeline("written", sys.argv[1])
orders = p.table("orders", "id BIGINT, customer STRING, cents DECIMAL(12,2)", key="id", partitions=2)
clicks = p.stream("clicks", "url STRING, n INT")
for n in range(40):
    orders.upsert([{"id": n, "customer": f"c{n}", "cents": n}, {"id": n + 100, "customer": None, "cents": None}])
    clicks.append([{"url": f"/{n}", "n": n}], producer="web", sequence=n)
orders.delete([3])
with p.transaction() as tx:
    tx.upsert(orders, [{"id": n, "customer": "tx", "cents": 1} for n in range(7)])
    tx.append(clicks, [{"url": "/tx", "n": -1}])
try:
    with p.transaction() as tx:
        tx.append(clicks, [{"url": "/never", "n": -2}])
        raise KeyError
except KeyError:
    pass
p.close()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("formats") / "written"
    environment = {"HEADWATER_SEGMENT_BYTES": "8192", "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", WRITER, str(path)], check=True, env=environment)
    return path


def little(data: bytes, start: int, size: int, *, signed: bool = False) -> int:
    return int.from_bytes(data[start : start + size], "little", signed=signed)


def read_segment(data: bytes, length: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    header_length = little(data, 12, 4)
    assert data[8:12] == b"HWS1"
    assert header_length % 64 == 0
    assert xxhash.xxh3_64_intdigest(data[8:header_length]) == little(data, 0, 8)
    schema_length, producers_length = little(data, 20, 4), little(data, 80, 4)
    schema = pa.ipc.read_schema(pa.py_buffer(data[88 : 88 + schema_length]))
    header = {
        "kind": little(data, 16, 4),
        "ordinal": little(data, 24, 8),
        "base": little(data, 32, 8),
        "previous": little(data, 48, 8),
        "previous_length": little(data, 56, 8),
        "sequence": little(data, 64, 8),
        "schema": schema,
        "producers": json.loads(data[88 + schema_length : 88 + schema_length + producers_length]),
    }
    return header, list(read_frames(data[:length], header_length, schema))


def read_frames(data: bytes, place: int, schema: pa.Schema) -> Iterator[dict[str, Any]]:
    while place < len(data):
        head = data[place:]
        length, head_length, body_length = little(head, 12, 4), little(head, 36, 4), little(head, 40, 4)
        assert head[8:12] == b"HWF1"
        assert place % 64 == length % 64 == head_length % 64 == 0
        assert xxhash.xxh3_64_intdigest(head[8:head_length]) == little(head, 0, 8)
        body = head[head_length : head_length + body_length]
        assert xxhash.xxh3_64_intdigest(body) == little(head, 16, 8)
        assert not any(head[head_length + body_length : length])
        flags, name_length = little(head, 46, 2), little(head, 44, 2)
        batch = pa.ipc.read_record_batch(pa.py_buffer(body), schema)
        assert batch.num_rows == little(head, 32, 4)
        yield {
            "offset": little(head, 24, 8),
            "rows": batch.to_pylist(),
            "sequence": little(head, 56, 8),
            "received_at": little(head, 64, 8, signed=True),
            "synced": little(head, 72, 8),
            "producer": head[112 : 112 + name_length].decode() if flags & 2 else None,
            "producer_sequence": little(head, 80, 8, signed=True),
            "transaction": head[88:104] if flags & 1 else None,
            "place": place,
        }
        place += length


def read_partition(folder: Path, topic: str, partition: int) -> list[dict[str, Any]]:
    with sqlite3.connect(folder / "headwater.db") as store:
        (number,) = store.execute("SELECT number FROM declarations WHERE name = ?", (topic,)).fetchone()
        committed = dict(store.execute("SELECT id, committed FROM transactions").fetchall())
    files = sorted((folder / "log" / f"{topic}.{number}" / str(partition)).glob("*.segment"))
    contents = [file.read_bytes() for file in files]
    lengths = [little(after, 56, 8) for after in contents[1:]] + [len(contents[-1])]
    frames: list[dict[str, Any]] = []
    previous: dict[str, Any] | None = None
    for ordinal, (file, data, length) in enumerate(zip(files, contents, lengths, strict=True)):
        header, found = read_segment(data, length)
        assert (header["kind"], header["ordinal"], header["base"]) == (1, ordinal, int(file.stem))
        assert header["previous"] == (previous["base"] if previous else 0)
        assert all(frame["sequence"] > header["sequence"] for frame in found)
        assert all(frame["synced"] <= frame["place"] for frame in found)
        previous = header
        frames += [f for f in found if f["transaction"] is None or committed[f["transaction"]]]
    return frames


def test_a_second_reader_reads_what_was_written(folder: Path) -> None:
    frames = read_partition(folder, "clicks", 0)
    rows = [row for frame in frames for row in frame["rows"]]
    assert [row["n"] for row in rows] == [*range(40), -1]
    assert rows[5] == {"_op": 0, "url": "/5", "n": 5}
    offsets = [frame["offset"] for frame in frames]
    assert offsets == sorted(set(offsets))


def test_producers_and_their_sequences_are_in_the_frames_and_in_the_next_segments_header(folder: Path) -> None:
    frames = [frame for frame in read_partition(folder, "clicks", 0) if frame["producer"] is not None]
    assert [(f["producer"], f["producer_sequence"]) for f in frames] == [("web", n) for n in range(40)]
    data = sorted(folder.glob("log/clicks.*/0/*.segment"))[1].read_bytes()
    header, later = read_segment(data, len(data))
    remembered = header["producers"]["web"]
    assert len(remembered) == 5
    assert remembered[-1][0] == later[0]["producer_sequence"] - 1
    assert remembered[-1][2] == later[0]["offset"]


def test_operations_and_transactions_are_as_documented(folder: Path) -> None:
    frames = [frame for partition in (0, 1) for frame in read_partition(folder, "orders", partition)]
    rows = [row for frame in frames for row in frame["rows"]]
    assert sum(row["_op"] == 1 for row in rows) == 87
    assert [row for row in rows if row["_op"] == 2] == [{"_op": 2, "id": 3, "customer": None, "cents": None}]
    together = {frame["sequence"] for frame in frames if any(row["customer"] == "tx" for row in frame["rows"])}
    assert len(together) == 1
    assert {frame["sequence"] for frame in read_partition(folder, "clicks", 0)[-1:]} == together


def test_the_partition_of_a_key_is_its_hash(folder: Path) -> None:
    for partition in (0, 1):
        for frame in read_partition(folder, "orders", partition):
            for row in frame["rows"]:
                digest = xxhash.xxh64_intdigest(struct.pack("<q", row["id"]), seed=42)
                signed = digest - (1 << 64) if digest >> 63 else digest
                assert signed % 2 == partition


def test_the_tail_file_agrees_with_the_segments(folder: Path) -> None:
    data = next(folder.glob("log/clicks.*/0/tail")).read_bytes()
    active = sorted(folder.glob("log/clicks.*/0/*.segment"))[-1]
    assert xxhash.xxh3_64_intdigest(data[8:80]) == little(data, 0, 8)
    assert xxhash.xxh3_64_intdigest(data[136:160]) == little(data, 128, 8)
    boot = int(Path("/proc/sys/kernel/random/boot_id").read_text().replace("-", "")[:15], 16)
    assert little(data, 8, 8) == boot
    assert (little(data, 24, 8), little(data, 32, 8)) == (int(active.stem), active.stat().st_size)
    assert (little(data, 144, 8), little(data, 152, 8)) == (int(active.stem), active.stat().st_size)
    assert little(data, 40, 8) == 41


def test_the_sequence_file_counts_the_appends(folder: Path) -> None:
    data = (folder / "log" / "sequence").read_bytes()
    assert xxhash.xxh3_64_intdigest(data[8:24]) == little(data, 0, 8)
    frames = [f for t, p in (("orders", 0), ("orders", 1), ("clicks", 0)) for f in read_partition(folder, t, p)]
    assert little(data, 16, 8) == max(frame["sequence"] for frame in frames) == 40 + 40 + 1 + 1


def test_the_index_names_frames(tmp_path: Path) -> None:
    writer = """
import sys, headwater as hw
s = hw.Pipeline("written", sys.argv[1]).stream("big", "text STRING")
for n in range(30):
    s.append([{"text": chr(65 + n % 26) * 50_000}])
"""
    subprocess.run([sys.executable, "-c", writer, str(tmp_path / "p")], check=True)
    segment = next((tmp_path / "p").glob("log/big.*/0/*.segment"))
    data = segment.read_bytes()
    frames = {frame["place"]: frame for frame in read_segment(data, len(data))[1]}
    index = segment.with_suffix(".index").read_bytes()
    records = [index[start : start + 40] for start in range(0, len(index), 40)]
    assert len(records) == 4
    for record in records:
        assert xxhash.xxh3_64_intdigest(record[8:]) == little(record, 0, 8)
        frame = frames[little(record, 32, 8)]
        assert frame["offset"] == little(record, 8, 8)
        assert frame["received_at"] == little(record, 16, 8, signed=True)
        assert frame["sequence"] == little(record, 24, 8)


def test_this_reader_imports_nothing_of_ours() -> None:
    lines = Path(__file__).read_text().split('WRITER = """')[0].splitlines()
    assert not [line for line in lines if line.startswith(("import ", "from ")) and "headwater" in line]
