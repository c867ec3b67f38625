"""Reader processes that may be killed: one follows every topic, one makes a chain of cuts."""

from __future__ import annotations

import json
import os
import random
import traceback
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater import Pipeline
from headwater.log import Cut
from headwater.pipeline.reopen import declared
from headwater.position import Position
from tests.crash.history import Place, Record, Tag
from tests.crash.notes import Notes, read
from tests.crash.writer import SEGMENT_BYTES, TOPICS, Life, declare
from tests.inside import log_of


def follow(life: Life, ready: Callable[[], None]) -> None:
    """Follow all topics until killed, going on from what was noted."""
    topics = declared(_open(life))
    ready()
    with ThreadPoolExecutor(len(TOPICS)) as threads:
        following = [threads.submit(_follow, life.folder, topics[name]) for name in TOPICS]
        done, _ = futures.wait(following, return_when=futures.FIRST_EXCEPTION)
        traceback.print_exception(next(iter(done)).exception())
        os._exit(1)


def _open(life: Life) -> Pipeline:
    os.environ["HEADWATER_SEGMENT_BYTES"] = str(SEGMENT_BYTES)
    pipeline = Pipeline("kills", Path(life.folder, "pipeline"))
    declare(pipeline)
    return pipeline


def _follow(folder: str, topic: Any) -> None:
    notes = Notes(Path(folder, f"tail-{topic.name}.notes"))
    ends = {note["partition"]: note["offsets"][-1] + 1 for note in read(notes.path)}
    for table in topic.tail(since=Position.of(topic.name, ends), follow=True):
        notes.add(
            {
                "partition": table["_partition"][0].as_py(),
                "offsets": table["_offset"].to_pylist(),
                "tags": tags(table),
            }
        )


def cut(life: Life, ready: Callable[[], None]) -> None:
    """Make cuts, each after the one before, and read what lies between, until killed."""
    pipeline = _open(life)
    dice = random.Random(life.seed)
    log = log_of(pipeline)
    ready()
    notes = Notes(Path(life.folder, "chain.notes"))
    last = Cut.from_dict(read(notes.path)[-1]["cut"]) if read(notes.path) else Cut()
    news = log.watch(TOPICS)
    while True:
        news.wait(0.5)
        while True:
            made = log.cut(TOPICS, after=last, target=dice.choice([1, 3, 20, 100, None]))
            if made.ends == last.ends:
                break
            records = {
                f"{topic}/{number}": _between(log, (topic, number), last, made) for topic, number in made.ends
            }
            notes.add({"cut": made.as_dict(), "records": records})
            last = made


def _between(log: Any, place: Place, last: Cut, made: Cut) -> list[list[Any]]:
    found = log.read(*place, last.end(*place), made.end(*place))
    return [
        [offset, tag]
        for records in found
        for offset, tag in zip(range(records.offset, records.end), tags(records.batch), strict=True)
    ]


def tags(rows: pa.Table | pa.RecordBatch) -> list[str]:
    """The rows' tags; a dead letter has it in what it was made of."""
    if "raw" in rows.schema.names:
        return [json.loads(raw)["tag"] for raw in rows.column("raw").to_pylist()]
    found: list[str] = rows.column("tag").to_pylist()
    return found


def everything(pipeline: Pipeline, name: str) -> dict[Place, list[Record]]:
    """All records of a topic by partition, in one read."""
    topic = declared(pipeline)[name]
    found: dict[Place, list[Record]] = {(name, number): [] for number in range(topic.partitions)}
    for table in topic.tail():
        place = name, table["_partition"][0].as_py()
        found[place] += map(Record, table["_offset"].to_pylist(), map(Tag.parse, tags(table)))
    return found
