"""The verdict on a run of writers and readers: their notes and the log itself, put before the history checker."""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from headwater import Pipeline
from headwater.pipeline.reopen import declared
from headwater.position import Position
from tests.crash import notes
from tests.crash.history import History, Operation, Place, Record, Step, Tag, Violation, check
from tests.crash.reader import everything
from tests.crash.writer import TOPICS
from tests.inside import log_of, store_of

_CATCH_UP = 60.0


def reach(folder: Path, violations: list[Violation]) -> dict[str, int]:
    """Wait for the readers to see the end, check everything, add what is wrong; returns some numbers.

    The writers are dead. What they left undecided is decided by the reading.
    """
    with Pipeline("kills", folder / "pipeline") as pipeline:
        final: dict[Place, list[Record]] = {}
        for name in TOPICS:
            declared(pipeline)[name].verify()
            final |= everything(pipeline, name)
        records = sum(map(len, final.values()))
        deadline = time.monotonic() + (0 if violations else _CATCH_UP)
        tail, chain = _tail(folder), _chain(folder)
        while time.monotonic() < deadline:
            if min(sum(map(len, tail.values())), sum(step.rows for step in chain)) >= records:
                break
            time.sleep(0.05)
            tail, chain = _tail(folder), _chain(folder)
        operations = _operations(folder)
        about = [o for o in operations if not o.topics or o.topics[0] not in {"recent", "extra"}]
        found = store_of(pipeline).kept
        kept = {w: int(found(f"writer.{w}") or 0) for w in {o.writer for o in about} if found(f"writer.{w}")}
        violations += check(History(about, final, tails=[tail], chains=[chain], kept=kept))
        violations += _trimmed(pipeline, operations) + _extra(pipeline, operations)
        return {
            "operations": len(operations),
            "acknowledged": sum(operation.acknowledged is not None for operation in operations),
            "records": records,
            "cuts": len(chain),
            "segments": sum(topic.size().segments for topic in declared(pipeline).values()),
        }


def _operations(folder: Path) -> list[Operation]:
    found: dict[tuple[int, int], Operation] = {}
    for path in folder.glob("writer-*.notes"):
        writer = int(path.stem.removeprefix("writer-"))
        for note in notes.read(path):
            name = (
                writer,
                next(
                    note[word]
                    for word in ("begin", "asked", "withdrawn", "done")
                    if word in note and (word != "asked" or "begin" not in note)
                ),
            )
            found[name] = _noted(name, found.get(name), note)
    return list(found.values())


def _noted(name: tuple[int, int], known: Operation | None, note: dict[str, Any]) -> Operation:
    if known is None:
        return Operation(
            *name,
            topics=tuple(note["rows"]),
            started=note["at"],
            asked=not note.get("explicit"),
            keeps=bool(note.get("explicit")),
        )
    if "asked" in note:
        return dataclasses.replace(known, asked=True)
    if "withdrawn" in note:
        return dataclasses.replace(known, withdrawn=True)
    ends = {(topic, partition): end for topic, partition, end in Position.parse(note["position"]).ends}
    return dataclasses.replace(known, acknowledged=known.acknowledged or note["at"], ends=(*known.ends, ends))


def _tail(folder: Path) -> dict[Place, list[Record]]:
    seen: dict[Place, list[Record]] = defaultdict(list)
    for name in TOPICS:
        for note in notes.read(folder / f"tail-{name}.notes"):
            seen[name, note["partition"]] += map(Record, note["offsets"], map(Tag.parse, note["tags"]))
    return seen


def _chain(folder: Path) -> list[Step]:
    steps = []
    for note in notes.read(folder / "chain.notes"):
        records = {
            (place.split("/")[0], int(place.split("/")[1])): [Record(at, Tag.parse(tag)) for at, tag in rows]
            for place, rows in note["records"].items()
        }
        steps.append(Step(note["cut"]["rows"], records))
    return steps


def _trimmed(pipeline: Pipeline, operations: list[Operation]) -> list[Violation]:
    """Of the topic whose beginning is forgotten, all that was acknowledged behind its start is there, once."""
    start = log_of(pipeline).start("recent", 0)
    there = [record.tag.name for record in everything(pipeline, "recent")["recent", 0]]
    wrong = [Violation("duplicate", f"{name} in recent") for name in there if there.count(name) > 1]
    for operation in operations:
        for ends in operation.ends if operation.topics == ("recent",) else ():
            if ends["recent", 0] > start and operation.name not in there:
                wrong.append(Violation("lost", f"{operation.name} in recent, which begins at {start}"))
    return wrong


def _extra(pipeline: Pipeline, operations: list[Operation]) -> list[Violation]:
    """Each topic that was declared on the way has its one row."""
    wrong = []
    for operation in operations:
        if operation.topics == ("extra",) and operation.acknowledged is not None:
            name = f"extra_{operation.writer}_{operation.number}"
            if [record.tag.name for record in everything(pipeline, name)[name, 0]] != [operation.name]:
                wrong.append(Violation("lost", f"{operation.name} in {name}"))
    return wrong
