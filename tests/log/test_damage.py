"""A torn tail is cut back to the last whole frame; damage before what was synced is loud and changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater import LogDamaged, Pipeline


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
        return [number for table in pipeline._topic("orders").tail() for number in table["id"].to_pylist()]


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
