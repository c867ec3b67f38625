"""Each bit of a small log flipped: the exact records, the exact prefix of an unsynced tail, or a loud error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.errors import LogDamaged
from headwater.log import index
from tests.crash.replay import folder
from tests.crash.victim import Outcome, Victim, batch_of
from tests.seed import every

ALL = [1, 2, 3, 4]


@pytest.fixture
def victim() -> Iterator[Victim]:
    """Three acknowledged frames in one segment."""
    with folder() as root:
        made = Victim(root)
        made.append(1, 2)
        made.append(3)
        made.append(4)
        made.remember()
        yield made
        made.close()


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def flips(victim: Victim, kind: str, bits: Iterator[int] | range, *, boot: int) -> Iterator[tuple[int, Outcome]]:
    """Each of the bits flipped in turn, with what a fresh log then shows; other partitions must keep working."""
    path, whole = victim.path(kind), victim.bytes_of(kind)
    for bit in bits:
        victim.restore()
        victim.harm(path, flipped(whole, bit))
        with victim.opened(boot=boot) as log:
            yield bit, victim.outcome(log)
            if bit % 64 == 0:
                assert victim.outcome(log, partition=1) == [1000]
                log.append("orders", {1: batch_of(1001)})
                assert victim.outcome(log, partition=1) == [1000, 1001]


def frame_starts(victim: Victim, length: int, segment: int = 0) -> dict[int, int]:
    """For each byte of a segment where its frame begins; 0 for the header."""
    starts = [0, *(start.byte for start, _ in victim.frames() if start.segment == segment)]
    return {byte: max(start for start in starts if start <= byte) for byte in range(length)}


def check(outcome: Outcome, expected: list[int], path: str, begins: dict[int, int], bit: int) -> None:
    if isinstance(outcome, LogDamaged):
        assert outcome.segment == path, f"bit {bit}: {outcome}"
        assert outcome.byte <= bit // 8, f"bit {bit}: {outcome}"
        assert outcome.byte == begins[bit // 8], f"bit {bit} is in the frame at {begins[bit // 8]}: {outcome}"
    else:
        assert outcome == expected, f"bit {bit}: {outcome}"


@pytest.mark.slow
@pytest.mark.parametrize("boot", [1, 2])
def test_a_flipped_bit_of_a_segment_is_harmless_or_loud(victim: Victim, boot: int) -> None:
    """Harmless is only the padding behind a frame's body. After a power cut every third bit, else every ninth."""
    whole = victim.bytes_of("segment")
    begins = frame_starts(victim, len(whole))
    silent = 0
    for bit, outcome in flips(victim, "segment", every(9 if boot == 1 else 3, len(whole) * 8), boot=boot):
        check(outcome, ALL, victim.path("segment"), begins, bit)
        silent += isinstance(outcome, list)
    padding = sum(end.byte - _end_of_body(whole, start.byte) for start, end in victim.frames())
    assert silent <= padding * 8


def _end_of_body(data: bytes, frame: int) -> int:
    head_length = int.from_bytes(data[frame + 36 : frame + 40], "little")
    return frame + head_length + int.from_bytes(data[frame + 40 : frame + 44], "little")


@pytest.mark.slow
def test_a_flipped_bit_in_the_last_frame_is_a_torn_tail_if_nobody_knows_that_it_was_synced(victim: Victim) -> None:
    """After a power cut that took the tail file too; frames before are covered by its `synced`. Every tenth bit."""
    whole = victim.bytes_of("segment")
    begins = frame_starts(victim, len(whole))
    last = max(begins.values())
    victim.harm(victim.path("tail"), b"")
    victim.whole[victim.path("tail")] = b""
    for bit, outcome in flips(victim, "segment", every(10, len(whole) * 8), boot=2):
        if begins[bit // 8] == last and isinstance(outcome, list):
            assert outcome in (ALL, ALL[:-1]), f"bit {bit}: {outcome}"
        else:
            check(outcome, ALL, victim.path("segment"), begins, bit)


@pytest.mark.slow
@pytest.mark.parametrize("boot", [1, 2])
@pytest.mark.parametrize("kind", ["tail", "sequence"])
def test_a_flipped_bit_of_the_tail_or_sequence_file_changes_nothing(victim: Victim, kind: str, boot: int) -> None:
    """Every sixth bit; appends go on too."""
    with victim.opened(boot=1) as log:
        last = log.cut(["orders"]).sequence
    for bit, outcome in flips(victim, kind, every(6, len(victim.bytes_of(kind)) * 8), boot=boot):
        assert outcome == ALL, f"bit {bit}: {outcome}"
        with victim.opened(boot=boot) as log:
            position = log.append("orders", {0: batch_of(5)})
            assert position.in_topic("orders") == {0: 5}, f"bit {bit}"
            assert victim.outcome(log) == [*ALL, 5]
            assert log.cut(["orders"]).sequence > last, f"bit {bit}"


class TestWithASealedSegmentAndAnIndex:
    @pytest.fixture
    def victim(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Victim]:
        """Two frames in a sealed segment with an index, two in the active one."""
        monkeypatch.setattr(index, "SPACING", 64)
        with folder() as root:
            made = Victim(root, segment_bytes=1000)
            for number in ALL:
                made.append(number)
            assert made.path("sealed") != made.path("segment")
            made.remember()
            yield made
            made.close()

    @pytest.mark.slow
    @pytest.mark.parametrize("boot", [1, 2])
    def test_a_flipped_bit_of_a_sealed_segment_is_harmless_or_loud(self, victim: Victim, boot: int) -> None:
        """Every sixth bit."""
        whole, path = victim.bytes_of("sealed"), victim.path("sealed")
        begins = frame_starts(victim, len(whole))
        for bit, outcome in flips(victim, "sealed", every(6, len(whole) * 8), boot=boot):
            check(outcome, ALL, path, begins, bit)

    @pytest.mark.parametrize("boot", [1, 2])
    def test_a_flipped_bit_of_an_index_changes_nothing(self, victim: Victim, boot: int) -> None:
        assert victim.bytes_of("index")
        for bit, outcome in flips(victim, "index", range(len(victim.bytes_of("index")) * 8), boot=boot):
            assert outcome == ALL, f"bit {bit}: {outcome}"
            with victim.opened(boot=boot) as log:
                for start in range(4):
                    ids = [i for r in log.read("orders", 0, start) for i in r.batch.column("id").to_pylist()]
                    assert ids == ALL[start:], f"bit {bit}, from {start}: {ids}"
