"""A torn tail is cut back to the last whole frame; damage before what was synced is loud and changes nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from headwater import LogDamaged, Pipeline
from headwater.log import EmbeddedLog, TopicLog
from headwater.store import SqliteStore
from tests.contracts.log import SCHEMA, rows
from tests.contracts.log import ids as ids_of
from tests.inside import topic_of

BOOT = 1
TOPIC = TopicLog("orders", 1, SCHEMA)


def opened(folder: Path, boot: int) -> EmbeddedLog:
    log = EmbeddedLog(str(folder / "log"), SqliteStore(str(folder / "headwater.db")), boot=boot)
    log.declare(TOPIC)
    return log


def written(folder: Path) -> Path:
    """A pipeline of five acknowledged batches, whose tail file was lost; returns its one segment."""
    with Pipeline("test", folder) as pipeline:
        orders = pipeline.stream("orders", "id INT")
        for number in range(5):
            orders.append([{"id": number}])
    (segment,) = (folder / "log").rglob("*.segment")
    segment.with_name("tail").write_bytes(b"")
    return segment


def ids(folder: Path) -> list[int]:
    with Pipeline("test", folder) as pipeline:
        return [number for table in topic_of(pipeline, "orders").tail() for number in table["id"].to_pylist()]


@pytest.mark.parametrize("lost", [1, 60, 64, 200])
def test_a_torn_frame_behind_the_synced_ones_is_cut_off_and_overwritten(tmp_path: Path, lost: int) -> None:
    segment = written(tmp_path)
    whole = segment.read_bytes()
    os.truncate(segment, len(whole) - lost)
    assert ids(tmp_path) == [0, 1, 2, 3]
    assert segment.read_bytes() == whole[: whole.rindex(b"HWF1") - 8]
    with Pipeline("test", tmp_path) as pipeline:
        pipeline.stream("orders", "id INT").append([{"id": 5}])
    assert ids(tmp_path) == [0, 1, 2, 3, 5]


@pytest.mark.parametrize("where", ["head", "body"])
def test_damage_before_the_synced_point_is_loud_and_nothing_is_cut(tmp_path: Path, where: str) -> None:
    segment = written(tmp_path)
    data = bytearray(segment.read_bytes())
    second = data.index(b"HWF1", data.index(b"HWF1") + 4) - 8
    place = second + 64 if where == "head" else data.index(b"HWF1", second + 12) - 8 - 64
    data[place] ^= 1
    segment.write_bytes(data)
    with pytest.raises(LogDamaged) as raised:
        ids(tmp_path)
    assert (raised.value.segment, raised.value.byte) == (str(segment), second)
    assert segment.read_bytes() == data


def test_other_partitions_and_topics_go_on_when_one_is_damaged(tmp_path: Path) -> None:
    topic = TopicLog("clicks", 2, SCHEMA, partitions=2)
    log = opened(tmp_path, BOOT)
    log.declare(topic)
    for number in range(4):
        log.append("clicks", {0: rows(number), 1: rows(number)})
    log.append("orders", {0: rows(1)})
    log.close()
    segment = tmp_path / "log" / "clicks.2" / "0" / f"{0:020d}.segment"
    segment.write_bytes(segment.read_bytes()[:600])
    log = opened(tmp_path, BOOT + 1)
    log.declare(topic)
    with pytest.raises(LogDamaged):
        log.append("clicks", {0: rows(9)})
    log.append("clicks", {1: rows(9)})
    log.append("orders", {0: rows(2)})
    assert ids_of(log, "clicks", 1) == [0, 1, 2, 3, 9]
    assert ids_of(log) == [1, 2]


def test_missing_segments_are_damage_that_names_the_offsets(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "headwater.db"))
    log = EmbeddedLog(str(tmp_path / "log"), store, boot=BOOT, segment_bytes=2000)
    log.declare(TOPIC)
    for number in range(20):
        log.append("orders", {0: rows(number)})
    log.close()
    partition = tmp_path / "log" / "orders.1" / "0"
    segments = sorted(partition.glob("*.segment"))
    assert len(segments) > 4
    for number, expected in ((0, f"offsets 0 to {int(segments[1].stem)}"), (2, "missing"), (-1, "missing")):
        hidden = segments[number].rename(tmp_path / "hidden")
        with pytest.raises(LogDamaged, match=expected):
            ids_of(opened(tmp_path, BOOT + 1))
        hidden.rename(segments[number])
    assert ids_of(opened(tmp_path, BOOT + 1)) == list(range(20))
    shutil.rmtree(partition)
    with pytest.raises(LogDamaged, match="folder is missing"):
        opened(tmp_path, BOOT + 1)
