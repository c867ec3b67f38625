"""Changes: what each tick changed in a relation, one after the other."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, suppress

import pyarrow as pa

from headwater.catalog.relation import Relation
from headwater.catalog.relations import Relations
from headwater.errors import HeadwaterError, Unavailable, VersionExpired
from headwater.log import Cut
from headwater.read.batches import tagged
from headwater.read.contents import Contents
from headwater.read.cursor import Cursor
from headwater.read.version import LONGEST_WAIT, Version, Versions
from headwater.state.manifest import ANEW, CHANGES
from headwater.state.pins import Pin
from headwater.store import CursorRecord, Store
from headwater.watch import News

_TICKS = 256
"""So many ticks are asked for at a time."""


class Changes:
    """An iterator of tables, one or more for each tick with a change: `_tick`, `_weight`, then the columns.

    The tables are of bounded size, in the order of the ticks, each of one tick. Added up, all that came up to tick
    n is what the relation holds at n. A topic's records, which only appear, belong to the first tick that has them
    of those that are kept. It pins the tick that it stands at, so that what came after is kept until it is
    exhausted, closed or forgotten.

    With a cursor it pins nothing: the store keeps what comes after the cursor. A tick is acknowledged when the
    table after its last one is asked for.

    Used by one thread at a time; `close` may be called from any and ends a wait.
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
        cursor: Cursor | None = None,
    ) -> None:
        self._relation = relation
        self._store = store
        self._versions = versions
        self._contents = contents
        self._relations = relations
        self._follow = follow
        self._cursor = cursor
        self._pin: Pin | None = None
        self._closed = threading.Event()
        self._news: News | None = None
        self._at = 0
        self._cut = Cut()
        self._tables = self._run()
        try:
            if cursor is not None and cursor.record is not None:
                self._go_on(cursor.record)
            elif since != 0 or isinstance(since, bool):
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
        if self._news is not None:
            self._news.wake()
        self._let_go()
        with suppress(ValueError):  # another thread is at it, and will end it
            self._tables.close()

    def _let_go(self) -> None:
        pin, self._pin = self._pin, None
        if pin is not None:
            pin.close()

    def __del__(self) -> None:
        if hasattr(self, "_closed"):
            self.close()

    def _run(self) -> Generator[pa.Table]:
        yield from self._all()
        if not self._follow:
            return
        with closing(self._store.watch()) as news:
            self._news = news
            while not self._closed.is_set():
                yield from self._all()
                news.wait(LONGEST_WAIT)

    def _all(self) -> Iterator[pa.Table]:
        """What there is now."""
        if self._at == 0:
            yield from self._oldest_version()
        if self._at:
            yield from self._later()

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
        if not self._begun(since, filling=False):
            raise self._expired()

    def _go_on(self, record: CursorRecord) -> None:
        """Stand where the cursor does."""
        if record.given_up:
            raise self._expired()
        if record.declared != self._relation.number:  # replaced in this moment
            self._look_again()
        if record.tick < (since := _alike_since(self._relation)):
            raise _other_columns(self._relation, since)
        if record.filling:
            return  # its version is still to come
        self._at = record.tick
        if record.ends is not None and self._relation.topic is not None:
            topic = self._relation.topic.name
            self._cut = Cut(0, {(topic, int(number)): end for number, end in record.ends.items()})
            self._check_kept()

    def _begun(self, tick: int, *, filling: bool) -> bool:
        """Have kept what comes after a tick, by the cursor if there is one; False if it is not kept any more."""
        if self._cursor is None:
            return True
        spans = self._relation.spans(tick, max(tick + 1, self._relation.since))
        changes = [f"{each.arrangement}{CHANGES}" for each, _, _ in spans if each.arrangement is not None]
        if not self._cursor.begin(self._relation, tick, filling=filling, changes=changes, ends=self._ends()):
            if self._cursor.is_lost:
                raise self._expired()
            return False
        self._let_go()
        return True

    def _oldest_version(self) -> Iterator[pa.Table]:
        """The rows of the oldest version that there is, as insertions; nothing if there is none yet.

        Of the version with which a cursor began, if it has not come to its end.
        """
        while (number := self._first()) is not None:
            try:
                cut, tables = self._opened(number)
            except VersionExpired:  # forgotten in this moment
                if self._is_held_by_cursor:
                    raise
                continue
            for table in tables:
                yield tagged(table, number)
            self._taken(number, cut)
            return

    def _first(self) -> int | None:
        if self._cursor is not None and self._cursor.is_filling:
            return self._cursor.tick
        return self._oldest()

    def _opened(self, number: int) -> tuple[Cut, Iterator[pa.Table]]:
        """The cut of a version, and its rows, the first of which can be read; VersionExpired if it is forgotten."""
        if self._is_held_by_cursor and self._relation.arrangement is None:
            (cut,) = (cut for _, cut in self._cuts(number - 1, limit=1))
            return cut, self._contents.record_batches(self._relation, Cut(), cut)
        is_begun = self._is_held_by_cursor
        self._stand(number)
        version = self._versions.at(number)
        if version is None or number not in self._versions.numbers():
            raise self._expired()
        if not is_begun and not self._begun(number, filling=True):
            raise self._expired()
        tables = self._contents.all_batches(self._relation.at(number), version)
        try:
            first = list(itertools.islice(tables, 1))
        except Unavailable:
            if number in self._versions.numbers():
                raise
            raise self._expired() from None
        return version.cut, itertools.chain(first, self._readable(tables, number))

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
            self._relation = found  # which may have been altered
            return
        chain, others = found, []
        while chain is not None and chain.number != known.number:
            others += [] if chain.has_columns_of(known) else [chain]
            chain = chain.before
        if found is None or chain is None:
            msg = "it was dropped"
            raise HeadwaterError(msg, where=known.name, hint="begin again if it was declared anew")
        if others:
            raise _other_columns(known, others[-1].since)
        self._relation = found

    # -- what came later

    def _later(self) -> Iterator[pa.Table]:
        """What all ticks up to the newest one changed."""
        numbers = self._versions.numbers()
        self._look_again()
        if numbers[-1] <= self._at:
            return
        if self._relation.arrangement is not None:
            yield from self._arranged(numbers[-1])
        else:
            yield from self._recorded(numbers)
        self._stand(self._at)

    def _arranged(self, newest: int) -> Iterator[pa.Table]:
        """What the ticks up to one changed in an arrangement; a cursor may be far behind, so of some at a time."""
        while self._at < newest:
            until = min(newest, self._at + _TICKS)
            details = [
                (number, relation, detail)
                for relation, after, end in self._relation.spans(self._at, until)
                for number, detail in self._store.details(
                    f"{relation.arrangement}{CHANGES}", after=after, until=end
                )
            ]
            self._check_kept()
            for number, relation, detail in details:
                if ANEW in detail:
                    self._versions.forget()
                    raise self._expired()
                for rows in self._readable(self._contents.batches(relation, detail)):
                    yield tagged(rows, number)
                self._taken(number)
            self._at = until

    def _recorded(self, numbers: list[int]) -> Iterator[pa.Table]:
        for number, until in self._ticks(numbers):
            any_rows = False
            for rows in self._contents.record_batches(self._relation, self._cut, until):
                self._check_kept()
                any_rows = True
                yield tagged(rows, number)
            self._check_kept()
            if any_rows:
                self._taken(number, until)
            else:
                self._at, self._cut = number, until

    def _ticks(self, numbers: list[int]) -> Iterator[tuple[int, Cut]]:
        """The ticks to come and their cuts: those that are kept, or all, if a cursor has had them kept."""
        if self._is_held_by_cursor:
            while found := [each for each in self._cuts(self._at, limit=_TICKS) if each[0] <= numbers[-1]]:
                yield from found
            return
        for number in numbers:
            version = self._versions.at(number) if number > self._at else None
            if version is not None:  # else delivered already, or forgotten: the next tick has its records too
                yield number, version.cut

    def _cuts(self, after: int, *, limit: int) -> list[tuple[int, Cut]]:
        found = self._store.cursors.cuts(after=after, limit=limit)
        return [(number, Cut.from_dict(cut)) for number, cut in found]

    def _readable(self, tables: Iterator[pa.Table], version: int | None = None) -> Iterator[pa.Table]:
        """The tables, maybe of a version; what cannot be read since it was forgotten meanwhile is told so."""
        try:
            yield from tables
        except Unavailable:
            if version is None:
                self._check_kept()
            elif version not in self._versions.numbers():
                raise self._expired() from None
            raise

    def _taken(self, number: int, cut: Cut | None = None) -> None:
        """Note that everything up to and with a tick was taken by whoever asks for more."""
        self._at, self._cut = number, cut or self._cut
        if self._cursor is not None and not self._cursor.acknowledge(number, self._ends()):
            raise self._expired()

    def _ends(self) -> dict[str, int] | None:
        """Up to where the records of a topic were taken; None of an arrangement."""
        topic = self._relation.topic
        if topic is None or self._relation.arrangement is not None:
            return None
        return {str(number): self._cut.end(topic.name, number) for number in range(topic.partitions)}

    # -- keeping what is still to come

    @property
    def _is_held_by_cursor(self) -> bool:
        return self._cursor is not None and self._cursor.record is not None

    def _stand(self, number: int) -> None:
        """Pin the newest tick up to this one that is kept, and with it all that came after; no need by a cursor."""
        while not self._is_held_by_cursor:
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
        elif self._is_held_by_cursor:
            gone = self._cursor is not None and self._cursor.is_lost
        else:
            gone = self._versions.numbers()[0] > self._at
        if gone:
            raise self._expired()

    def _expired(self) -> HeadwaterError:
        oldest = self._oldest()
        if self._cursor is not None and self._cursor.is_lost:
            return self._cursor.lost(oldest or 0)
        if oldest is None:
            return self._versions.unfilled(self._relation)
        msg = f"what came after tick {self._at} is no longer kept"
        hint = f"the oldest version is {oldest}; since=0 begins with it"
        return VersionExpired(msg, oldest=oldest, where=self._relation.name, hint=hint)


def _other_columns(relation: Relation, since: int) -> HeadwaterError:
    msg = f"it was replaced at tick {since} by a query with other columns"
    return HeadwaterError(msg, where=relation.name, hint="begin again with since=0")


def _alike_since(relation: Relation) -> int:
    """The tick from which on a name had these columns."""
    before = relation.before
    if before is None or not before.has_columns_of(relation):
        return relation.since
    return _alike_since(before)
