"""Where partitions begin now, and which decisions nobody can ask for any more."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from headwater.errors import LogDamaged
from headwater.files import Files
from headwater.log.segments import Segments
from headwater.store.store import Store


def place_of(folder: str) -> str:
    """How decisions call the partition in a folder."""
    topic, partition = os.path.split(folder)
    return f"{topic.rpartition('.')[2]}/{partition}"


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a partition begins now: behind which sequence, and which transactions its producers remember."""

    sequence: int
    remembered: frozenset[bytes] = frozenset()


def beginnings(files: Files, folder: str, starts: Callable[[int], Mapping[int, int]]) -> dict[str, Beginning]:
    """The beginning of each partition below a log's folder, by its place."""
    found = {}
    for topic in files.list(folder):
        number = topic.rpartition(".")[2]
        if "." not in topic or not number.isdecimal() or not os.path.isdir(os.path.join(folder, topic)):
            continue
        first = starts(int(number))
        for partition in files.list(os.path.join(folder, topic)):
            path = os.path.join(folder, topic, partition)
            found[place_of(path)] = _beginning(Segments(files, path, partial(_start, first, int(partition))))
    return found


def _start(starts: Mapping[int, int], partition: int) -> int:
    return starts.get(partition, 0)


def _beginning(segments: Segments) -> Beginning:
    """One that cannot be read begins before everything."""
    try:
        bases = segments.refresh()
        batches = segments.get(bases[-1]).header.producers.values()
        remembered = {bytes.fromhex(batch[3]) for each in batches for batch in each if batch[3]}
        return Beginning(segments.get(bases[0]).header.sequence, frozenset(remembered))
    except (LogDamaged, OSError, IndexError):  # or it is just being trimmed or dropped
        return Beginning(-1)
    finally:
        segments.forget()


def forget(store: Store, known: Mapping[str, Beginning], *, until: int) -> None:
    """Forget the decisions up to a sequence of which no record is left, as the partitions began before this call.

    All records of a transaction have its sequence, also those on both sides of a partition's beginning, so each
    partition that has some must begin behind a larger one, or be dropped. Whoever remembers a producer's batches
    asks about transactions whose records are gone, so those are kept; and one that is remembered from now on had a
    record that was still there. What was decided against is kept too: nobody knows where it has records.
    """
    decided = store.decisions(until=until)
    # asked last: what is neither there nor among these was dropped
    numbers = {str(each.number) for each in store.declarations().values()}
    remembered = {transaction for each in known.values() for transaction in each.remembered}

    def is_gone(place: str, sequence: int) -> bool:
        if place in known:
            return known[place].sequence > sequence
        return place.partition("/")[0] not in numbers

    gone = [
        each.transaction
        for each in decided
        if each.transaction not in remembered and all(is_gone(place, each.sequence) for place in each.places)
    ]
    if gone:
        store.forget_decisions(gone)
