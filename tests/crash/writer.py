"""A writer process that lives to be killed: random appends and transactions, each noted before and after."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater import Pipeline, crashpoint
from headwater.log import spill
from headwater.position import Position
from headwater.topics import Stream, Table
from tests.crash.history import Tag
from tests.crash.notes import Notes
from tests.inside import log_of

TOPICS = ("orders", "items", "checked", "checked__dead_letters", "loose")
"""The topics that the history is about; `recent` is trimmed all the time and looked at apart."""

SEGMENT_BYTES = 20_000
_KINDS = {"append": 46, "transaction": 30, "resend": 12, "trim": 10, "declare": 2}
_LEADS_TO = {"transaction": "transaction", "trim": "trim", "declare": "declare"}
"""What leads to a crash point that starts so: done more often by a writer that is to die there."""


@dataclass(frozen=True, slots=True)
class Life:
    """How one run of a writer goes: where it dies by itself, if anywhere, and what its dice are."""

    folder: str
    writer: int
    seed: str
    point: str | None = None
    nth: int = 1


def declare(pipeline: Pipeline) -> dict[str, Stream | Table]:
    """The topics of the test."""
    return {
        "orders": pipeline.stream("orders", "tag STRING, payload STRING"),
        "items": pipeline.table("items", "tag STRING, payload STRING", key="tag", partitions=3),
        "checked": pipeline.stream("checked", "tag STRING, payload STRING, amount INT", on_error="dead_letter"),
        "loose": pipeline.stream("loose", "tag STRING, payload STRING", partitions=2, durability="none"),
        "recent": pipeline.stream("recent", "tag STRING, payload STRING"),
    }


def run(life: Life, ready: Callable[[], None]) -> None:
    """Write until killed; `ready` is called when the pipeline is open."""
    os.environ["HEADWATER_SEGMENT_BYTES"] = str(SEGMENT_BYTES)
    if life.writer % 2:  # every other writer has such small limits that its batches are many frames, and spill
        spill.FRAME_BYTES = 600
        spill.Spill.__init__.__kwdefaults__["limit"] = 1500  # type: ignore[index]
    crashpoint.arm(life.point, nth=life.nth)
    writer = Writer(life)
    ready()
    writer.finish()
    while True:
        writer.step()


class Writer:
    """One writer's life. Its sequences, its next operation's number and what is unfinished are in its notes."""

    def __init__(self, life: Life) -> None:
        self._random = random.Random(life.seed)
        self._writer = life.writer
        wanted = _LEADS_TO.get((life.point or "").split(".")[0])
        self._weights = [weight + 50 * (kind == wanted) for kind, weight in _KINDS.items()]
        self._notes = Notes(Path(life.folder, f"writer-{life.writer}.notes"))
        self._pipeline = Pipeline("kills", Path(life.folder, "pipeline"))
        self._topics = declare(self._pipeline)
        self._number = 0
        self._sequences: dict[str, int] = {}
        self._unfinished: dict[str, Any] | None = None
        self._last: dict[str, Any] | None = None
        for note in self._notes.recent():
            if "begin" in note:
                self._number, self._sequences = note["begin"], note["sequences"]
                self._unfinished = note
            elif self._unfinished is not None and note.get("done") == self._unfinished["begin"]:
                self._last = self._unfinished if self._unfinished["once"] else self._last
                self._unfinished = None

    def finish(self) -> None:
        """Send the batch again whose acknowledgement was never noted; without a sequence it must be left alone."""
        note = self._unfinished
        if note is not None and note["once"]:
            self._send(note)

    def step(self) -> None:
        """Do something."""
        kind = self._random.choices(list(_KINDS), self._weights)[0]
        if kind == "resend":
            if self._last is not None:
                self._send(self._last)
        elif kind == "transaction":
            self._transaction()
        elif kind == "trim":
            self._trim()
        else:
            self._append(kind)

    def _begin(self, rows: list[str], **more: Any) -> dict[str, Any]:
        self._number += 1
        note = {
            "begin": self._number,
            "at": time.monotonic_ns(),
            "rows": rows,
            "once": False,
            "sequences": dict(self._sequences),
            **more,
        }
        self._notes.add(note)
        return note

    def _done(self, note: dict[str, Any], position: Position) -> None:
        self._notes.add({"done": note["begin"], "at": time.monotonic_ns(), "position": str(position)})

    def _append(self, kind: str) -> None:
        topic = (
            "extra" if kind == "declare" else self._random.choice(["orders", "items", "items", "checked", "loose"])
        )
        count = 1 if kind == "declare" else self._random.randint(1, 6)
        once = kind == "declare" or self._random.random() < 0.5
        rows = [topic] * count
        if topic == "checked":
            rows = [self._fate(topic) for _ in rows]
        if once:
            self._sequences[topic] = self._sequences.get(topic, 0) + 1
        verb = self._random.choice(["upsert", "delete"]) if topic == "items" else "append"
        note = self._begin(rows, once=once, topic=topic, verb=verb)
        self._send(note)
        self._last = note if once else self._last

    def _fate(self, topic: str) -> str:
        """Where a row for a topic will end: one in three of those that are checked is bad."""
        return topic + "__dead_letters" * (topic == "checked" and self._random.random() < 0.33)

    def _send(self, note: dict[str, Any]) -> None:
        """Append a batch as it was noted, for the first time or again."""
        name = note["topic"]
        if name == "extra":
            topic = self._pipeline.stream(f"extra_{self._writer}_{note['begin']}", "tag STRING, payload STRING")
        else:
            topic = self._topics[name]  # type: ignore[assignment]
        once = {"producer": f"w{self._writer}", "sequence": note["sequences"][name]} if note["once"] else {}
        rows = [self._row(note, index) for index in range(len(note["rows"]))]
        if note["verb"] == "delete":
            rows = [{"tag": row["tag"]} for row in rows]
        self._done(note, getattr(topic, note["verb"])(rows, **once))

    def _row(self, note: dict[str, Any], index: int) -> dict[str, Any]:
        tag = Tag(self._writer, note["begin"], index, len(note["rows"]))
        row: dict[str, Any] = {"tag": str(tag), "payload": "x" * ((note["begin"] * 37 + index * 11) % 300)}
        if note["rows"][index].startswith("checked"):
            row["amount"] = 1 if note["rows"][index] == "checked" else "many"
        return row

    def _transaction(self) -> None:
        """Rows for several topics, with the operation's number kept; one in five is taken back."""
        names = self._random.sample(["orders", "items", "checked", "loose"], self._random.randint(2, 4))
        rows = [self._fate(name) for name in names for _ in range(self._random.randint(1, 4))]
        note = self._begin(rows, explicit=True)
        withdrawn = self._random.random() < 0.2
        try:
            with self._pipeline.transaction() as transaction:
                for name in names:
                    some = [self._row(note, index) for index, of in enumerate(rows) if of.startswith(name)]
                    if name == "items":
                        transaction.upsert(name, some)
                    else:
                        transaction.append(name, some)
                transaction.keep(f"writer.{self._writer}", str(note["begin"]))
                if withdrawn:
                    self._notes.add({"withdrawn": note["begin"]})
                    raise _WithdrawnError
                self._notes.add({"asked": note["begin"]})
        except _WithdrawnError:
            return
        self._done(note, transaction.position)

    def _trim(self) -> None:
        """Append to a topic of its own kind, then forget all but its end."""
        note = self._begin(["recent"], verb="append", topic="recent")
        self._send(note)
        log = log_of(self._pipeline)
        if self._random.random() < 0.5:
            log.trim("recent", 0, log.partition("recent", 0).next_offset() - 30)


class _WithdrawnError(Exception):
    """The writer changed its mind."""
