"""A tail torn at every byte of a frame: cut back where nobody knows of a sync, and never where somebody does."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator

import pytest

from headwater.errors import LogDamaged
from tests.crash.replay import folder
from tests.crash.victim import Victim, batch_of

Tear = Callable[[bytes, int], bytes]
"""What is left of a file that was torn at a byte."""


def cut_off(data: bytes, byte: int) -> bytes:
    return data[:byte]


def zeros(data: bytes, byte: int) -> bytes:
    return data[:byte] + bytes(len(data) - byte)


def garbage(data: bytes, byte: int) -> bytes:
    return data[:byte] + random.Random(byte).randbytes(len(data) - byte)


TEARS = (cut_off, zeros, garbage)
each_tear = pytest.mark.parametrize("tear", TEARS)


@pytest.fixture
def victim() -> Iterator[Victim]:
    with folder() as root:
        made = Victim(root)
        made.append(1, 2)
        made.append(3)
        yield made
        made.close()


def check_prefix_and_go_on(
    victim: Victim, expected: list[int], *, boot: int, torn: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The prefix is shown, the tear is reported just once, and appends go on behind the last whole frame."""
    caplog.clear()
    with victim.opened(boot=boot) as log:
        assert victim.outcome(log) == expected
        position = log.append("orders", {0: batch_of(7)})
        assert position.in_topic("orders") == {0: len(expected) + 1}
        reports = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert len(reports) == torn
        assert all("cut a torn tail" in report.getMessage() for report in reports)
    with victim.opened(boot=boot) as log:
        assert victim.outcome(log) == [*expected, 7]


@each_tear
@pytest.mark.parametrize("tail", ["with the tail file", "without it"])
def test_after_a_power_cut_an_unsynced_frame_is_there_whole_or_not_at_all(
    victim: Victim, tear: Tear, tail: str, caplog: pytest.LogCaptureFixture
) -> None:
    victim.write(4, 5)
    victim.remember()
    (start, end) = victim.frames()[-1]
    whole = victim.bytes_of("segment")
    for byte in range(start.byte, end.byte + 1):
        victim.restore()
        data = tear(whole, byte)
        victim.harm(victim.path("segment"), data)
        if tail == "without it":
            victim.harm(victim.path("tail"), b"")
        # The last bytes of a frame are padding: without them it is still cut off, with others there it is whole.
        kept = data == whole or (len(data) == len(whole) and byte >= end_of_body(whole, start.byte))
        torn = not kept and len(data) > start.byte
        check_prefix_and_go_on(victim, [1, 2, 3, 4, 5] if kept else [1, 2, 3], boot=2, torn=torn, caplog=caplog)


def end_of_body(data: bytes, frame: int) -> int:
    head_length = int.from_bytes(data[frame + 36 : frame + 40], "little")
    return frame + head_length + int.from_bytes(data[frame + 40 : frame + 44], "little")


@pytest.mark.parametrize("tail", ["with the tail file", "without it"])
def test_a_frame_whose_writer_was_killed_at_any_byte_is_cut_off_by_the_next_one(
    victim: Victim, tail: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In the same boot, where the tail file tells how far others had written."""
    before = victim.path("tail")
    with open(before, "rb") as file:
        published = file.read()
    victim.write(4, 5)
    victim.remember()
    (start, end) = victim.frames()[-1]
    whole = victim.bytes_of("segment")
    for byte in range(start.byte, end.byte):
        victim.restore()
        victim.harm(victim.path("segment"), whole[:byte])
        victim.harm(victim.path("tail"), published if tail == "with the tail file" else b"")
        check_prefix_and_go_on(victim, [1, 2, 3], boot=1, torn=byte > start.byte, caplog=caplog)


@each_tear
@pytest.mark.parametrize("boot", [1, 2])
def test_a_frame_that_the_tail_file_knows_to_be_synced_is_never_given_up(
    victim: Victim, tear: Tear, boot: int, caplog: pytest.LogCaptureFixture
) -> None:
    victim.append(4, 5)
    victim.remember()
    (start, end) = victim.frames()[-1]
    whole = victim.bytes_of("segment")
    for byte in range(start.byte, end_of_body(whole, start.byte)):
        data = tear(whole, byte)
        if data == whole[: len(data)] and len(data) == len(whole):
            continue
        victim.restore()
        victim.harm(victim.path("segment"), data)
        with victim.opened(boot=boot) as log:
            damage = victim.outcome(log)
            assert isinstance(damage, LogDamaged), f"torn at {byte}: {damage}"
            assert damage.segment == victim.path("segment")
            assert start.byte <= damage.byte <= byte
            assert victim.outcome(log, partition=1) == [1000]
        with open(victim.path("segment"), "rb") as file:
            assert file.read() == data, f"torn at {byte}: the evidence was changed"
    assert end.byte == len(whole)
    assert not caplog.records


@pytest.mark.parametrize("tear", [zeros, garbage])
def test_a_frame_that_a_later_one_knows_to_be_synced_is_never_given_up(victim: Victim, tear: Tear) -> None:
    """The tail file is lost, but the last frame is whole and tells how far the file was synced before it."""
    victim.append(4, 5)
    victim.append(6)
    victim.remember()
    (start, end) = victim.frames()[-2]
    whole = victim.bytes_of("segment")
    for byte in range(start.byte, end_of_body(whole, start.byte)):
        victim.restore()
        data = tear(whole[: end.byte], byte) + whole[end.byte :]
        if data == whole:
            continue
        victim.harm(victim.path("segment"), data)
        victim.harm(victim.path("tail"), b"")
        with victim.opened(boot=2) as log:
            damage = victim.outcome(log)
            assert isinstance(damage, LogDamaged), f"torn at {byte}: {damage}"
            assert (damage.segment, damage.byte) == (victim.path("segment"), start.byte)


def test_a_segment_that_lost_its_last_synced_frames_whole_is_damage(victim: Victim) -> None:
    """It ends at the edge of a frame, so only the tail file can tell."""
    victim.append(4, 5)
    victim.remember()
    (start, _) = victim.frames()[-1]
    victim.harm(victim.path("segment"), victim.bytes_of("segment")[: start.byte])
    for boot in (1, 2):
        with victim.opened(boot=boot) as log:
            damage = victim.outcome(log)
            assert isinstance(damage, LogDamaged)
            assert (damage.segment, damage.byte) == (victim.path("segment"), start.byte)
