"""What is remembered of idempotent producers, when batches are taken back and segments roll."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import Pipeline, SequenceGap, crashpoint
from tests.inside import topic_of


class Died(BaseException):
    """Stands for the death of a process, in this one."""


def die() -> None:
    raise Died


def tags(pipeline: Pipeline, topic: str) -> list[str]:
    return sorted(tag for table in topic_of(pipeline, topic).tail() for tag in table["tag"].to_pylist())


def test_a_batch_of_bad_rows_only_counts_as_sent(pipeline: Pipeline) -> None:
    checked = pipeline.stream("checked", "tag STRING, amount INT", on_error="dead_letter")
    checked.append([{"tag": "a", "amount": 1}], producer="p", sequence=1)
    for _ in range(2):
        checked.append([{"tag": "b", "amount": "many"}], producer="p", sequence=2)
    with pytest.raises(SequenceGap):
        checked.append([{"tag": "d", "amount": 1}], producer="p", sequence=4)
    checked.append([{"tag": "c", "amount": 1}], producer="p", sequence=3)
    assert tags(pipeline, "checked") == ["a", "c"]
    letters = [raw for t in topic_of(pipeline, "checked__dead_letters").tail() for raw in t["raw"].to_pylist()]
    assert len(letters) == 1


def test_many_tries_that_were_taken_back_do_not_crowd_out_what_was_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry that dies again and again, then another process's roll: the batch before it is still known."""
    monkeypatch.setenv("HEADWATER_SEGMENT_BYTES", "20000")

    def opened() -> Pipeline:
        return Pipeline("test", tmp_path)

    def send(pipeline: Pipeline, sequence: int) -> None:
        items = pipeline.table("items", "tag STRING", key="tag", partitions=3)
        items.upsert([{"tag": f"{sequence}.{i}"} for i in range(9)], producer="p", sequence=sequence)

    with opened() as pipeline:
        send(pipeline, 1)
    for _ in range(8):
        with opened() as pipeline:
            crashpoint.arm("transaction.synced", action=die)
            with pytest.raises(Died):
                send(pipeline, 2)
            crashpoint.arm(None)
    with opened() as pipeline:
        items = pipeline.table("items", "tag STRING", key="tag", partitions=3)
        for number in range(30):
            items.upsert([{"tag": f"other {number} {i} {'x' * 400}"} for i in range(9)])
    with opened() as pipeline:
        assert topic_of(pipeline, "items").size().segments > 3
        send(pipeline, 1)
        with pytest.raises(SequenceGap):
            send(pipeline, 3)
        send(pipeline, 2)
        mine = [tag for tag in tags(pipeline, "items") if not tag.startswith("other")]
        assert mine == sorted(f"{sequence}.{i}" for sequence in (1, 2) for i in range(9))
