"""Decisions are forgotten when nobody can ask for them any more, and not before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater import Pipeline
from tests.inside import log_of, store_of, topic_of

TOPICS = ("orders", "clicks")
ALL = 1 << 40


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HEADWATER_SEGMENT_BYTES", "1")  # each frame is a segment
    with Pipeline("test", tmp_path) as opened:
        for name in TOPICS:
            opened.stream(name, "n INT")
        yield opened


def transact(pipeline: Pipeline, *topics: str, n: int = 1) -> None:
    with pipeline.transaction() as transaction:
        for name in topics:
            transaction.append(name, [{"n": n}])


def decided(pipeline: Pipeline) -> int:
    with store_of(pipeline)._database.write() as connection:
        return int(connection.execute("SELECT count(*) FROM transactions").fetchone()[0])


def trim(pipeline: Pipeline, name: str) -> None:
    """Trim all but the last segment."""
    log_of(pipeline).trim(name, 0, ALL)


def numbers(pipeline: Pipeline, name: str) -> list[int]:
    return [n for table in topic_of(pipeline, name).tail() for n in table["n"].to_pylist()]


def test_a_decision_is_kept_while_any_record_of_it_is(pipeline: Pipeline) -> None:
    for n in (1, 2, 3):
        transact(pipeline, *TOPICS, n=n)
    trim(pipeline, "orders")
    assert decided(pipeline) == 3
    trim(pipeline, "clicks")
    assert decided(pipeline) == 2  # of the second no record is left either, but one might be beside the third's
    with Pipeline("test", pipeline.path) as other:
        assert [numbers(other, name) for name in TOPICS] == [[3], [3]]


def test_topics_that_were_never_part_of_it_do_not_count(pipeline: Pipeline) -> None:
    pipeline.stream("quiet", "n INT").append([{"n": 0}])
    for n in (1, 2, 3):
        transact(pipeline, *TOPICS, n=n)
    for name in TOPICS:
        trim(pipeline, name)
    assert decided(pipeline) == 2


def test_a_transaction_on_both_sides_of_a_beginning_is_kept(pipeline: Pipeline) -> None:
    """Its frames have one sequence, also that behind which the kept segment begins."""
    pipeline.stream("texts", "text STRING")
    with pipeline.transaction() as transaction:
        transaction.append("texts", [{"text": "x" * 1_000_000}] * 40)
        transaction.append("clicks", [{"n": 1}])
    for n in (2, 3):
        transact(pipeline, "clicks", "orders", n=n)
    for name in ("texts", "clicks", "orders"):
        trim(pipeline, name)
    with Pipeline("test", pipeline.path) as other:
        left = sum(table.num_rows for table in topic_of(other, "texts").tail())
        assert 0 < left < 40


def test_what_a_producer_sent_is_remembered_with_its_decision(pipeline: Pipeline) -> None:
    items = pipeline.stream("items", "n INT", partitions=2, on_error="dead_letter")
    bad_and_good = [{"n": 1}, {"n": "many"}]
    first = items.append(bad_and_good, producer="p", sequence=1)
    for _ in range(6):
        items.append([{"n": 2}, {"n": "more"}])
    before = decided(pipeline)
    for partition in (0, 1):
        log_of(pipeline).trim("items", partition, ALL)
    log_of(pipeline).trim("items__dead_letters", 0, ALL)
    assert decided(pipeline) < before
    pipeline.close()
    with Pipeline("test", pipeline.path) as other:
        again = other.stream("items", "n INT", partitions=2, on_error="dead_letter")
        assert again.append(bad_and_good, producer="p", sequence=1).topics == first.topics
        assert 1 not in numbers(other, "items")
        again.append([{"n": 3}], producer="p", sequence=2)


def test_dropped_topics_keep_no_decision(pipeline: Pipeline) -> None:
    transact(pipeline, *TOPICS)
    transact(pipeline, "clicks", "clicks")
    transact(pipeline, "orders", "orders")
    pipeline.drop("orders")
    assert decided(pipeline) == 2
    pipeline.drop("clicks")
    assert decided(pipeline) == 0


def test_what_was_decided_against_is_kept(pipeline: Pipeline) -> None:
    store_of(pipeline).decide(b"a" * 16, committed=False, at=1)
    transact(pipeline, *TOPICS)
    for name in TOPICS:
        pipeline.drop(name)
    assert store_of(pipeline).decision(b"a" * 16) is False
    assert decided(pipeline) == 1
