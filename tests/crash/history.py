"""The history checker: a pure function from what writers and readers noted to the promises that were broken.

Every row carries a tag: its writer, the number of the writer's operation, its place in the operation and how many
rows the operation has. So whatever comes out of the log can be held against what was put in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Place = tuple[str, int]
Name = tuple[int, int]
"""An operation: its writer and its number."""

NEVER = 1 << 62


@dataclass(frozen=True, slots=True, order=True)
class Tag:
    """What a row says of itself. `str` and `parse` are inverse."""

    writer: int
    operation: int
    index: int
    total: int

    @classmethod
    def parse(cls, text: str) -> Tag:
        return cls(*map(int, text.split(".")))

    @property
    def name(self) -> Name:
        return self.writer, self.operation

    def __str__(self) -> str:
        return f"{self.writer}.{self.operation}.{self.index}.{self.total}"


@dataclass(frozen=True, slots=True)
class Record:
    """A row as it was read."""

    offset: int
    tag: Tag


@dataclass(frozen=True, slots=True)
class Operation:
    """What a writer noted of one operation, over all its tries.

    `topics` names the topic of each row. `asked` is False while the commit was never asked for, and `withdrawn`
    says that the writer took the operation back itself. `started` is when the first try began, `acknowledged`
    when the first one returned, both on the machine's one monotonic clock. `ends` is the position of each
    acknowledgement; `keeps` tells that the commit also kept the operation's number under the writer's name.
    """

    writer: int
    number: int
    topics: tuple[str, ...]
    started: int
    acknowledged: int | None = None
    asked: bool = True
    withdrawn: bool = False
    keeps: bool = False
    ends: tuple[Mapping[Place, int], ...] = ()

    @property
    def name(self) -> Name:
        return self.writer, self.number


@dataclass(frozen=True, slots=True)
class Step:
    """One cut of a chain, with what was read between the cut before it and this one."""

    rows: int
    records: Mapping[Place, Sequence[Record]]


@dataclass(frozen=True, slots=True)
class History:
    """All that was noted. `final` is one full read after everybody stopped; tails and chains ran until then."""

    operations: Sequence[Operation]
    final: Mapping[Place, Sequence[Record]]
    tails: Sequence[Mapping[Place, Sequence[Record]]] = ()
    chains: Sequence[Sequence[Step]] = ()
    kept: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: its kind in one or two words, and where it shows."""

    kind: str
    text: str


def check(history: History) -> list[Violation]:
    """Everything that is wrong with a history; empty if nothing is."""
    operations = {operation.name: operation for operation in history.operations}
    found = [
        *_offsets(history.final),
        *_order(history.final),
        *_contents(operations, history.final),
        *_positions(operations, history.final),
        *_kept(operations, history),
    ]
    for number, tail in enumerate(history.tails):
        found += _same(f"tail {number}", history.final, tail)
    for number, chain in enumerate(history.chains):
        found += _same(f"chain {number}", history.final, _joined(chain))
        found += _whole(chain)
        found += _causal(operations, chain)
    return found


def _offsets(final: Mapping[Place, Sequence[Record]]) -> Iterator[Violation]:
    for place, records in final.items():
        for before, after in pairwise(records):
            if after.offset <= before.offset:
                yield Violation("offsets", f"{place}: {after.offset} comes after {before.offset}")


def _order(final: Mapping[Place, Sequence[Record]]) -> Iterator[Violation]:
    for place, records in final.items():
        last: dict[int, Tag] = {}
        for record in records:
            before = last.get(record.tag.writer)
            if before is not None and record.tag < before:
                yield Violation("reordered", f"{place} at {record.offset}: {record.tag} comes after {before}")
            last[record.tag.writer] = record.tag


def _contents(operations: Mapping[Name, Operation], final: Mapping[Place, Sequence[Record]]) -> Iterator[Violation]:
    """Each operation is there wholly or not at all, once, and only if it was meant to be."""
    rows: dict[Name, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (topic, _), records in final.items():
        for record in records:
            rows[record.tag.name][record.tag.index].append(topic)
    for name in rows.keys() - operations.keys():
        yield Violation("invented", f"operation {name} was never begun")
    for name, operation in operations.items():
        yield from _content(operation, rows.get(name, {}))


def _content(operation: Operation, seen: Mapping[int, Sequence[str]]) -> Iterator[Violation]:
    name = operation.name
    if seen and (operation.withdrawn or not operation.asked):
        yield Violation("aborted read", f"operation {name} was never committed, and {len(seen)} rows are there")
    for index, topics in seen.items():
        if len(topics) > 1:
            yield Violation("duplicate", f"row {index} of operation {name} is there {len(topics)} times")
        if not 0 <= index < len(operation.topics) or operation.topics[index] not in topics:
            yield Violation("invented", f"row {index} of operation {name} is in {topics}")
    if seen and len(seen) < len(operation.topics):
        yield Violation("torn", f"{len(seen)} of {len(operation.topics)} rows of operation {name} are there")
    if not seen and operation.acknowledged is not None and operation.topics:
        yield Violation("lost", f"operation {name} was acknowledged and is not there")


def _positions(
    operations: Mapping[Name, Operation], final: Mapping[Place, Sequence[Record]]
) -> Iterator[Violation]:
    """Every acknowledgement named the end of the operation's rows in each partition."""
    ends: dict[Name, dict[Place, int]] = defaultdict(dict)
    for place, records in final.items():
        for record in records:
            ends[record.tag.name][place] = max(record.offset + 1, ends[record.tag.name].get(place, 0))
    for name, operation in operations.items():
        for given in operation.ends:
            wrong = {place: end for place, end in given.items() if ends[name].get(place, end) != end}
            if wrong:
                yield Violation("position", f"operation {name} was told {wrong}, and it is at {ends[name]}")


def _kept(operations: Mapping[Name, Operation], history: History) -> Iterator[Violation]:
    """What a transaction keeps in the store is there exactly when its rows are."""
    there = {record.tag.name for records in history.final.values() for record in records}
    last: dict[int, int] = {}
    for (writer, number), operation in operations.items():
        if operation.keeps and (writer, number) in there:
            last[writer] = max(number, last.get(writer, -1))
    for writer in last.keys() | history.kept.keys():
        if last.get(writer) != history.kept.get(writer):
            text = f"writer {writer} last committed {last.get(writer)}, and kept is {history.kept.get(writer)}"
            yield Violation("kept", text)


def _same(
    reader: str, final: Mapping[Place, Sequence[Record]], seen: Mapping[Place, Sequence[Record]]
) -> Iterator[Violation]:
    """A reader that ran to the end saw each partition exactly as it is."""
    for place in sorted(final.keys() | seen.keys()):
        expected, got = list(final.get(place, ())), list(seen.get(place, ()))
        if expected != got:
            yield _difference(f"{reader}, {place}", expected, got)


def _difference(where: str, expected: list[Record], got: list[Record]) -> Violation:
    there, times = set(expected), Counter(got)
    extra = [record for record in got if record not in there]
    if extra:
        return Violation("vanished", f"{where}: {extra[0]} was read and is not there")
    again = [record for record, number in times.items() if number > 1]
    if again:
        return Violation("read twice", f"{where}: {again[0]}")
    missing = [record for record in expected if record not in times]
    if missing:
        return Violation("skipped", f"{where}: {len(missing)} records, the first of them {missing[0]}")
    return Violation("reordered", f"{where}: the same records in another order")


def _joined(chain: Sequence[Step]) -> dict[Place, list[Record]]:
    joined: dict[Place, list[Record]] = defaultdict(list)
    for step in chain:
        for place, records in step.records.items():
            joined[place] += records
    return joined


def _whole(chain: Sequence[Step]) -> Iterator[Violation]:
    """No cut splits an operation, and each counts its rows rightly."""
    first: dict[Name, int] = {}
    for number, step in enumerate(chain):
        records = [record for of_one in step.records.values() for record in of_one]
        if step.rows != len(records):
            yield Violation("count", f"cut {number} says {step.rows} rows and has {len(records)}")
        for name in {record.tag.name for record in records}:
            if first.setdefault(name, number) != number:
                yield Violation("torn", f"operation {name} is split between cuts {first[name]} and {number}")


def _causal(operations: Mapping[Name, Operation], chain: Sequence[Step]) -> Iterator[Violation]:
    """If B was begun after A was acknowledged, no cut has B without A."""
    cut_of: dict[Name, int] = {}
    for number, step in enumerate(chain):
        for records in step.records.values():
            for record in records:
                cut_of.setdefault(record.tag.name, number)
    real = [operation for operation in operations.values() if operation.topics and not operation.withdrawn]
    finished = sorted((o for o in real if o.acknowledged is not None), key=lambda o: o.acknowledged or 0)
    latest, done = (-1, (0, 0)), 0
    for later in sorted(real, key=lambda operation: operation.started):
        while done < len(finished) and (finished[done].acknowledged or 0) < later.started:
            latest = max(latest, (cut_of.get(finished[done].name, NEVER), finished[done].name))
            done += 1
        if latest[0] > cut_of.get(later.name, NEVER):
            text = f"cut {cut_of[later.name]} has operation {later.name} without {latest[1]}, which was before it"
            yield Violation("not causal", text)
