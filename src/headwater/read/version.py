"""Version: the pipeline as one committed tick left it, and how to hold on to one."""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from headwater.catalog.relation import Relation
from headwater.catalog.suspension import Suspension, suspensions_of
from headwater.errors import HeadwaterError, NotReached, VersionExpired
from headwater.liveness import Liveness
from headwater.log import Cut
from headwater.position import Position
from headwater.state.manifest import ANEW
from headwater.state.pins import Pins
from headwater.store import Store, driving
from headwater.topics.declaration import DEAD_LETTERS

LONGEST_WAIT = 1.0
"""After so many seconds who waits for a tick looks, though nobody told of one: its driver may have died before."""
_REMEMBERED = 16


@dataclass(frozen=True, slots=True)
class Version:
    """A tick's number, up to where it read the log, what every arrangement consisted of, which views stood still.

    Number 0 is the beginning, before the first tick: nothing is in.
    """

    number: int = 0
    cut: Cut = field(default_factory=Cut)
    arrangements: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    suspended: Mapping[str, Suspension] = field(default_factory=dict)

    def covers(self, position: Position) -> bool:
        """Whether everything below the position is in."""
        return all(self.cut.end(topic, partition) >= end for topic, partition, end in position.ends)

    def has(self, relation: Relation) -> bool:
        """Whether the relation can be read at this version: no view before it was filled, nor what was lost."""
        if relation.kind in {"view", "letters"}:
            return relation.owner in self.arrangements
        return ANEW not in self.arrangements.get(relation.arrangement or "", {})

    def stopped(self, relation: Relation) -> Suspension | None:
        """Why the relation stood still at this version, if it did."""
        found = self.suspended.get(relation.name.removesuffix(DEAD_LETTERS))
        return found if found is not None and found.number == relation.number else None


class Versions:
    """The versions that are kept. Safe for threads.

    What the store tells of a version is valid only if the version is still kept afterwards: whoever drives may
    forget it at any moment until a pin is seen. So `held` pins first, then reads, then checks.
    """

    def __init__(self, store: Store, liveness: Liveness, folder: str) -> None:
        self.pins = Pins(os.path.join(folder, "state"))
        self._store = store
        self._liveness = liveness
        self._folder = folder
        self._threads = threading.Lock()
        self._known: dict[int, Version] = {}

    def numbers(self) -> list[int]:
        """The ticks that are kept, in order."""
        return [number for number, _ in self._store.ticks()]

    def at(self, number: int) -> Version | None:
        """The version of a tick, to be believed if the tick is still kept afterwards; None if it is not now."""
        if number == 0:
            return Version()
        known = self._known.get(number)
        if known is not None:
            return known
        tick = self._store.tick(number)
        if tick is None:
            return None
        arrangements = self._store.arrangements(number)
        version = Version(number, Cut.from_dict(tick.cut), arrangements, suspensions_of(tick.detail))
        with self._threads:
            self._known[number] = version
            while len(self._known) > _REMEMBERED:
                del self._known[next(iter(self._known))]
        return version

    def forget(self) -> None:
        """Ask the store anew: what arrangements had may be forgotten, since they were built again."""
        with self._threads:
            self._known.clear()

    @contextmanager
    def held(self, as_of: int | None) -> Iterator[Version]:
        """A version that is not swept while it is held: the newest, or that of a tick.

        `HeadwaterError` if that tick never was, `VersionExpired` if it is no longer kept. With no tick at all the
        newest is the beginning.
        """
        numbers = self.numbers()
        if as_of is None and not numbers:
            yield Version()
            return
        number = numbers[-1] if as_of is None else self._checked(as_of, numbers)
        while True:
            with self.pins.hold(number):
                version = self.at(number)
                numbers = self.numbers()
                if version is not None and number in numbers:
                    yield version
                    return
            number = numbers[-1] if as_of is None else self._checked(as_of, numbers)

    def _checked(self, as_of: int, numbers: list[int]) -> int:
        newest = numbers[-1] if numbers else 0
        if isinstance(as_of, bool) or not isinstance(as_of, int) or not 1 <= as_of <= newest:
            msg = f"there is no tick {as_of!r}"
            raise HeadwaterError(msg, hint=f"the newest is {newest}" if newest else "there was no tick yet")
        if as_of not in numbers:
            msg = f"the version of tick {as_of} is no longer kept"
            raise VersionExpired(msg, oldest=numbers[0], hint=f"the oldest is {numbers[0]}")
        return as_of

    def oldest(self, relation: Relation) -> int | None:
        """The oldest tick at which the relation can be read; None if there is none yet."""
        numbers = self.numbers()
        if relation.arrangement is None:
            return numbers[0] if numbers else None
        place = bisect_left(
            numbers, True, key=lambda number: (self.at(number) or Version()).has(relation.at(number))
        )
        return numbers[place] if place < len(numbers) else None

    def unfilled(self, relation: Relation) -> HeadwaterError:
        """The error for a view that has no versions yet."""
        numbers = self.numbers()
        newest = self.at(numbers[-1]) if numbers else None
        stopped = newest.stopped(relation) if newest is not None else None
        if stopped is not None:
            return stopped.error(relation.name)
        return NotReached("no tick has filled this view yet", where=relation.name, hint=self.driving())

    def wait(self, reached: Callable[[Version], bool], awaited: str, timeout: float) -> None:
        """Return when the newest version is as wanted; `NotReached` after so many seconds."""
        if self._has_reached(reached):
            return
        deadline = time.monotonic() + timeout
        with closing(self._store.watch()) as news:
            while not self._has_reached(reached):
                left = deadline - time.monotonic()
                if left <= 0:
                    msg = f"no tick had {awaited} within {timeout:g} seconds"
                    raise NotReached(msg, where=self._folder, hint=self.driving())
                news.wait(min(LONGEST_WAIT, left))

    def _has_reached(self, reached: Callable[[Version], bool]) -> bool:
        numbers = self.numbers()
        version = self.at(numbers[-1] if numbers else 0)
        return version is not None and reached(version)

    def driving(self) -> str:
        """Whether anything makes ticks at this moment, for people who wait for one."""
        lease = driving(self._store, self._liveness)
        if lease is not None:
            return f"process {lease.holder.get('pid')} drives this pipeline; it may need longer"
        return "no process drives this pipeline now: call tick() or run()"
