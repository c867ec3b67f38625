"""Every bit of small files flipped, one at a time: the exact records, the exact prefix, or a loud error."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import LogDamaged
from headwater.log import EmbeddedLog, TopicLog
from headwater.store import SqliteStore
from tests.contracts.log import SCHEMA, ids, rows

BOOT = 1
TOPICS = [TopicLog("orders", 1, SCHEMA), TopicLog("clicks", 2, SCHEMA)]
IDS = [5, 6, 7]


class Files:
    """A partition with a sealed and an active segment, and another topic that must never notice."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log" / "orders.1" / "0"
        self.store = SqliteStore(str(folder / "headwater.db"))
        log = self.opened(BOOT, segment_bytes=900)
        for number in IDS:
            log.append("orders", {0: rows(number)}, producer="p", sequence=number)
        log.append("clicks", {0: rows(1)})
        log.close()
        self.segments = sorted(self.log.glob("*.segment"))
        self.before = {
            path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "log/" in str(path)
        }

    def opened(self, boot: int, segment_bytes: int | None = None) -> EmbeddedLog:
        log = EmbeddedLog(str(self.folder / "log"), self.store, boot=boot, segment_bytes=segment_bytes)
        for topic in TOPICS:
            log.declare(topic)
        return log

    def restore(self) -> None:
        for path, content in self.before.items():
            path.write_bytes(content)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("flips"))


def flips(length: int) -> list[tuple[int, int]]:
    """One bit of every byte: over eight neighbouring bytes every place in a byte is met."""
    return [(byte, 1 << byte % 8) for byte in range(length)]


def outcome(files: Files, boot: int) -> list[int] | LogDamaged:
    log = files.opened(boot)
    try:
        assert ids(log, "clicks") == [1], "another topic is not affected"
        return ids(log)
    except LogDamaged as damaged:
        return damaged
    finally:
        log.close()


@pytest.mark.slow
@pytest.mark.parametrize("boot", [BOOT, BOOT + 1], ids=["same boot", "another boot"])
@pytest.mark.parametrize("number", [0, -1], ids=["sealed", "active"])
def test_a_flipped_bit_in_a_segment_is_noticed(files: Files, number: int, boot: int) -> None:
    path = files.segments[number]
    content = files.before[path]
    loud = 0
    for byte, bit in flips(len(content)):
        harmed = bytearray(content)
        harmed[byte] ^= bit
        path.write_bytes(harmed)
        found = outcome(files, boot)
        if isinstance(found, LogDamaged):
            loud += 1
            assert found.segment == str(path)
            assert found.byte <= byte
        else:
            assert found == IDS, f"byte {byte}, bit {bit}"
        files.restore()
    assert loud > len(content) * 0.7, "only padding may be flipped without harm"


@pytest.mark.parametrize("name", ["tail", "sequence"])
@pytest.mark.parametrize("boot", [BOOT, BOOT + 1], ids=["same boot", "another boot"])
def test_a_flipped_bit_in_what_is_never_synced_loses_nothing(files: Files, name: str, boot: int) -> None:
    path = files.log / "tail" if name == "tail" else files.folder / "log" / "sequence"
    content = files.before[path]
    for byte, bit in flips(len(content)):
        harmed = bytearray(content)
        harmed[byte] ^= bit
        path.write_bytes(harmed)
        assert outcome(files, boot) == IDS, f"byte {byte}, bit {bit}"
        log = files.opened(boot)
        position = log.append("orders", {0: rows(8)}, producer="p", sequence=8)
        assert position.in_topic("orders")[0] > len(IDS)
        assert ids(log) == [*IDS, 8]
        log.close()
        files.restore()


def test_a_flipped_bit_in_an_index_only_costs_time(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "headwater.db"))
    log = EmbeddedLog(str(tmp_path / "log"), store, boot=BOOT)
    log.declare(TOPICS[0])
    big = rows(*range(12_000))
    for _ in range(6):
        log.append("orders", {0: big})
    path = next((tmp_path / "log").rglob("*.index"))
    content = path.read_bytes()
    assert len(content) >= 80
    for byte, bit in flips(len(content)):
        harmed = bytearray(content)
        harmed[byte] ^= bit
        path.write_bytes(harmed)
        assert ids(log, start=30_000, end=30_002) == [6_000, 6_001]
        assert log.offset_at("orders", 0, 0) == 0
