"""Changes: what each tick changed in a relation, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from headwater.change import WEIGHT
from headwater.errors import HeadwaterError, Unavailable, VersionExpired
from headwater.log import Cut
from headwater.read.contents import Contents, once
from headwater.read.relation import Relation, Relations
from headwater.read.version import Version, Versions
from headwater.state.manifest import CHANGES
from headwater.state.pins import Pin
from headwater.store import Store

TICK = "_tick"
_POLL = 0.05


class Changes:
    """An iterator of tables, one per tick with a change: `_tick`, `_weight`, then the relation's columns.

    Added up, all that came up to tick n is what the relation holds at n. A topic's records, which only appear,
    belong to the first tick that has them of those that are kept. It pins the tick that it stands at, so that
    what came after is kept until it is exhausted, closed or forgotten. Used by one thread at a time; `close` may
    be called from any and ends a wait.
    """

    def __init__(
        self,
        relation: Relation,
        store: Store,
        versions: Versions,
        contents: Contents,
        relations: Relations,
        since: int,
        *,
        follow: bool,
    ) -> None:
        self._relation = relation
        self._store = store
        self._versions = versions
        self._contents = contents
        self._relations = relations
        self._follow = follow
        self._pin: Pin | None = None
        self._closed = threading.Event()
        self._at = 0
        self._cut = Cut()
        self._tables = self._run()
        if since != 0 or isinstance(since, bool):
            try:
                self._begin_at(since)
            except BaseException:
                self.close()
                raise

    def __iter__(self) -> Changes:
        return self

    def __next__(self) -> pa.Table:
        if self._closed.is_set():
            self.close()  # again: it may have pinned anew while another thread closed it
            raise StopIteration
        try:
            return next(self._tables)
        except BaseException as error:
            was_closed = self._closed.is_set()
            self.close()
            if was_closed and isinstance(error, Exception):  # by another thread, which took the pin away
                raise StopIteration from None
            raise

    def close(self) -> None:
        """End it, and let go of what was kept for it. Safe to call twice."""
        self._closed.set()
        pin, self._pin = self._pin, None
        if pin is not None:
            pin.close()

    def __del__(self) -> None:
        if hasattr(self, "_closed"):
            self.close()

    def _run(self) -> Iterator[pa.Table]:
        while True:
            if self._at == 0:
                yield from self._oldest_version()
            if self._at:
                yield from self._later()
            if not self._follow or self._closed.wait(_POLL):
                return

    # -- where to begin

    def _begin_at(self, since: int) -> None:
        """Stand at a tick that a caller has seen, if everything that came after it is kept."""
        newest = (self._versions.numbers() or [0])[-1]
        if isinstance(since, bool) or not isinstance(since, int) or not 0 < since <= newest:
            msg = f"there is no tick {since!r}"
            raise HeadwaterError(msg, hint=f"the newest is {newest}; 0 is the beginning")
        self._at = since
        self._stand(since)
        if self._relation.arrangement is None:
            version = self._versions.at(since)
            if version is None:  # only at a tick that is kept is it known which records came after
                raise self._expired()
            self._cut = version.cut
        elif since < (self._oldest() or newest + 1):
            raise self._expired()
        self._check_kept()

    def _oldest_version(self) -> Iterator[pa.Table]:
        """The rows of the oldest version that there is, as insertions; nothing if there is none yet."""
        while (number := self._oldest()) is not None:
            self._stand(number)
            version = self._versions.at(number)
            if version is None or number not in self._versions.numbers():
                continue
            try:
                rows = self._contents.weighted(self._relation.at(number), version)
            except Unavailable:
                if number in self._versions.numbers():
                    raise
                continue
            self._at, self._cut = number, version.cut
            if rows.num_rows:
                yield _tagged(rows, number)
            return

    def _oldest(self) -> int | None:
        numbers = self._versions.numbers()
        if self._relation.arrangement is not None:
            oldest = self._versions.oldest(self._relation)
            first = max(oldest or 0, _alike_since(self._relation))
            return None if oldest is None else next((number for number in numbers if number >= first), None)
        whole = (
            number for number in numbers if not self._contents.lost_behind(self._relation, self._cut_at(number))
        )
        return next(whole, numbers[-1] if numbers else None)

    def _cut_at(self, number: int) -> Cut:
        return (self._versions.at(number) or Version()).cut

    def _look_again(self) -> None:
        """Go on with what replaced the relation, if that has the same columns."""
        found, known = self._relations.find(self._relation.name), self._relation
        if found is not None and found.number == known.number:
            return
        chain, others = found, []
        while chain is not None and chain.number != known.number:
            others += [] if chain.has_columns_of(known) else [chain]
            chain = chain.before
        if found is None or chain is None:
            msg = "it was dropped"
            raise HeadwaterError(msg, where=known.name, hint="begin again if it was declared anew")
        if others:
            msg = f"it was replaced at tick {others[-1].since} by a query with other columns"
            raise HeadwaterError(msg, where=known.name, hint="begin again with since=0")
        self._relation = found

    # -- what came later

    def _later(self) -> Iterator[pa.Table]:
        """What all ticks up to the newest one changed."""
        numbers = self._versions.numbers()
        self._look_again()
        if numbers[-1] <= self._at:
            return
        steps = self._arranged(numbers[-1]) if self._relation.arrangement is not None else self._recorded(numbers)
        for number, rows in steps:
            if rows.num_rows:
                yield _tagged(rows, number)
        self._at = numbers[-1]
        self._stand(self._at)

    def _arranged(self, newest: int) -> Iterator[tuple[int, pa.Table]]:
        details = [
            (number, relation, detail)
            for relation, after, until in self._relation.spans(self._at, newest)
            for number, detail in self._store.details(f"{relation.arrangement}{CHANGES}", after=after, until=until)
        ]
        self._check_kept()
        for number, relation, detail in details:
            try:
                rows = self._contents.change(relation, detail)
            except Unavailable:
                self._check_kept()
                raise
            self._at = number
            yield number, rows

    def _recorded(self, numbers: list[int]) -> Iterator[tuple[int, pa.Table]]:
        for number in numbers:
            version = self._versions.at(number) if number > self._at else None
            if version is None:
                continue  # delivered already, or forgotten meanwhile: the next tick has its records too
            rows = self._contents.records(self._relation, self._cut, version.cut)
            self._check_kept()
            self._at, self._cut = number, version.cut
            yield number, once(rows)

    # -- keeping what is still to come

    def _stand(self, number: int) -> None:
        """Pin the newest tick up to this one that is kept, and with it all that came after."""
        while True:
            kept = [each for each in self._versions.numbers() if each <= number]
            if not kept:
                raise self._expired()
            if self._pin is None:
                self._pin = self._versions.pins.hold(kept[-1])
            else:
                self._pin.move(kept[-1])
            if kept[-1] in self._versions.numbers():
                return

    def _check_kept(self) -> None:
        """`VersionExpired` if something that came after where it stands is gone."""
        if self._relation.arrangement is None:
            gone = self._contents.lost_behind(self._relation, self._cut)
        else:
            gone = self._versions.numbers()[0] > self._at
        if gone:
            raise self._expired()

    def _expired(self) -> HeadwaterError:
        oldest = self._oldest()
        if oldest is None:
            return self._versions.unfilled(self._relation)
        msg = f"what came after tick {self._at} is no longer kept"
        hint = f"the oldest version is {oldest}; since=0 begins with it"
        return VersionExpired(msg, oldest=oldest, where=self._relation.name, hint=hint)


def _alike_since(relation: Relation) -> int:
    """The tick from which on a name had these columns."""
    before = relation.before
    if before is None or not before.has_columns_of(relation):
        return relation.since
    return _alike_since(before)


def _tagged(weighted: pa.Table, number: int) -> pa.Table:
    """The rows behind the tick and their weights."""
    ticks = pa.array(np.full(weighted.num_rows, number, np.int64))
    weights = weighted.column(WEIGHT)
    rows = weighted.drop_columns([WEIGHT])
    schema = pa.schema(
        [pa.field(TICK, pa.int64(), nullable=False), pa.field(WEIGHT, pa.int64(), nullable=False), *rows.schema]
    )
    return pa.Table.from_arrays([ticks, weights, *rows.columns], schema=schema)
