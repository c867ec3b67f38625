"""The end of the last segment torn off or overwritten, at every byte of its last frame."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pytest

from headwater.errors import LogDamaged
from headwater.log import EmbeddedLog, TopicLog
from headwater.store import SqliteStore
from tests.contracts.log import SCHEMA, ids, rows

BOOT = 1
TOPIC = TopicLog("orders", 1, SCHEMA)


def opened(folder: Path, boot: int) -> EmbeddedLog:
    log = EmbeddedLog(str(folder / "log"), SqliteStore(str(folder / "headwater.db")), boot=boot)
    log.declare(TOPIC)
    return log


class Torn:
    """A partition with three frames, of which the last can be torn."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        log = opened(folder, BOOT)
        self.ends = []
        for number in range(3):
            log.append("orders", {0: rows(number, number + 10)})
            self.ends.append(self.segment.stat().st_size)
        log.close()
        self.whole = self.segment.read_bytes()
        self.tail = self.tail_file.read_bytes()

    @property
    def partition(self) -> Path:
        return self.folder / "log" / "orders.1" / "0"

    @property
    def segment(self) -> Path:
        return self.partition / f"{0:020d}.segment"

    @property
    def tail_file(self) -> Path:
        return self.partition / "tail"

    def restore(self, content: bytes, *, tail: bytes | None) -> None:
        self.segment.write_bytes(content)
        if tail is None:
            self.tail_file.unlink(missing_ok=True)
        else:
            self.tail_file.write_bytes(tail)

    def frame(self, number: int) -> range:
        """The bytes of a frame without its padding, which may be anything."""
        start = self.ends[number - 1]
        head, body = (int.from_bytes(self.whole[start + at : start + at + 4], "little") for at in (36, 40))
        return range(start, start + head + body)

    def last_frame(self) -> range:
        return self.frame(2)


@pytest.fixture
def torn(tmp_path: Path) -> Torn:
    return Torn(tmp_path)


@pytest.mark.parametrize("rest", ["nothing", "zeros", "garbage"])
def test_a_tail_torn_at_any_byte_is_cut_back_to_the_last_whole_frame(
    torn: Torn, rest: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a tail file, as after a power cut, nothing says that the last frame was ever on disk."""
    caplog.set_level(logging.WARNING, "headwater.log")
    for byte in torn.last_frame():
        lost = torn.ends[2] - byte
        filler = {"nothing": b"", "zeros": bytes(lost), "garbage": os.urandom(lost)}[rest]
        content = torn.whole[:byte] + filler
        if content == torn.whole:
            continue
        torn.restore(content, tail=None)
        caplog.clear()
        log = opened(torn.folder, BOOT + 1)
        assert ids(log) == [0, 10, 1, 11], byte
        if len(content) > torn.ends[1]:
            assert "cut a torn tail" in caplog.text
            assert str(torn.segment) in caplog.text
        log.append("orders", {0: rows(7)})
        assert ids(log) == [0, 10, 1, 11, 7], byte
        assert [records.offset for records in log.read("orders", 0, 0)] == [0, 2, 4]
        log.close()


@pytest.mark.parametrize("boot", [BOOT, BOOT + 1], ids=["same boot", "another boot"])
def test_a_tail_torn_before_what_is_known_to_be_synced_is_damage(torn: Torn, boot: int) -> None:
    for byte in list(torn.last_frame())[::7]:
        torn.restore(torn.whole[:byte], tail=torn.tail)
        with pytest.raises(LogDamaged) as damaged:
            ids(opened(torn.folder, boot))
        assert damaged.value.segment == str(torn.segment)
        assert torn.ends[1] <= damaged.value.byte <= byte
        assert torn.segment.read_bytes() == torn.whole[:byte], "damage is never cut away"


def test_a_frame_behind_the_tear_tells_what_was_synced_before_it(torn: Torn) -> None:
    """The third frame says that the first two were on disk: harm to the second is damage, not a torn tail."""
    for byte in torn.frame(1)[::11]:
        harmed = bytearray(torn.whole)
        harmed[byte] ^= 0x55
        torn.restore(bytes(harmed), tail=None)
        with pytest.raises(LogDamaged) as damaged:
            ids(opened(torn.folder, BOOT + 1))
        assert damaged.value.byte == torn.ends[0]
        assert torn.segment.read_bytes() == harmed


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
    assert ids(log, "clicks", 1) == [0, 1, 2, 3, 9]
    assert ids(log) == [1, 2]


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
            ids(opened(tmp_path, BOOT + 1))
        hidden.rename(segments[number])
    assert ids(opened(tmp_path, BOOT + 1)) == list(range(20))
    shutil.rmtree(partition)
    with pytest.raises(LogDamaged, match="folder is missing"):
        opened(tmp_path, BOOT + 1)
