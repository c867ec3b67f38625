"""The protocol that every metadata store fulfils. `tests/contracts/store.py` is its specification."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from headwater.store.records import DRIVER, CursorRecord, DecisionRecord, Declaration, LeaseRecord, TickRecord
from headwater.watch import News


class Cursors(Protocol):
    """The cursors of a store. What one has begun with and not acknowledged is kept by `Store.expire`."""

    def find(self, name: str) -> CursorRecord | None:
        """A cursor by its name, if there is one."""
        ...

    def all(self) -> list[CursorRecord]:
        """All cursors, by name."""
        ...

    def change(
        self, seen: CursorRecord | None, becomes: CursorRecord, *, durable: bool = True
    ) -> CursorRecord | None:
        """Compare and set: put `becomes` in the place of `seen`, or of nothing, and give it a new revision.

        None, and nothing has changed, if it is not as it was seen. None too if one begins and its declaration is
        gone, or something of what comes after its tick is, or, if it is to be filled or reads records, the tick.
        With `durable=False` a power cut may take it back, until the store is next written durably.
        """
        ...

    def remove(self, name: str) -> bool:
        """Forget a cursor; False if there is none."""
        ...

    def cuts(self, *, after: int, limit: int) -> list[tuple[int, Mapping[str, Any]]]:
        """The first ticks after one, with their cuts: all that are kept, or needed by a cursor on records."""
        ...


class Store(Protocol):
    """Small facts, each changed by one atomic and lasting transaction.

    Safe for threads and for many processes at once. A write that returns has survived a power cut. A store
    that cannot be written raises `Unavailable` and has changed nothing.
    """

    @property
    def cursors(self) -> Cursors:
        """How far readers have got."""
        ...

    def declare(self, name: str, kind: str, spec: Mapping[str, Any]) -> Declaration:
        """Declare a name; the same again is fine, another kind or spec is `DeclarationChanged`."""
        ...

    def find(self, name: str) -> Declaration | None:
        """One declared name, if it is."""
        ...

    def declarations(self) -> dict[str, Declaration]:
        """All declared names."""
        ...

    def forget(self, declaration: Declaration) -> bool:
        """Take a declaration away, and the cursors on it; False, and nothing has changed, if it is not there so."""
        ...

    def amend(self, declaration: Declaration, *, seen: Declaration | None = None) -> bool:
        """Change the spec of a declaration; False, and nothing has changed, if it is gone or has another name.

        Nor if it is not as it was `seen`, if that is given.
        """
        ...

    def decide(
        self,
        transaction: bytes,
        *,
        committed: bool,
        at: int,
        kept: Mapping[str, str] | None = None,
        durable: bool = True,
        sequence: int | None = None,
        places: Collection[str] = (),
    ) -> bool:
        """Decide a transaction once and for all, and keep `kept` with it if it commits.

        Whoever decides first is right: the return value is the decision that holds. With `durable=False` it
        survives a killed process but not a power cut. Only one whose `sequence` is given can be forgotten.
        """
        ...

    def decisions(self, *, until: int) -> list[DecisionRecord]:
        """What was committed with a known sequence up to this one, in order of it."""
        ...

    def forget_decisions(self, transactions: Collection[bytes]) -> None:
        """Forget decisions for which nobody can ever ask: of whom they are is not known again."""
        ...

    def decision(self, transaction: bytes) -> bool | None:
        """Whether a transaction is committed; None if it is not decided."""
        ...

    def kept(self, name: str) -> str | None:
        """What a transaction last kept under this name."""
        ...

    def keep(self, values: Mapping[str, str]) -> None:
        """Keep values under their names, outside any transaction of the log."""
        ...

    def keep_first(self, values: Mapping[str, str]) -> dict[str, str]:
        """Keep values under those of the names that have none yet; what is kept under them all now."""
        ...

    def keep_if(self, name: str, expected: str | None, value: str) -> bool:
        """Keep a value in the place of an expected one (None: of none); False, and no change, if it is another."""
        ...

    def lease(self, name: str = DRIVER) -> LeaseRecord:
        """Who holds a lease now; epoch 0 and an empty holder if nobody ever did. The driver's is one of many."""
        ...

    def raise_epoch(
        self, holder: Mapping[str, Any], *, seen: int, timeout: float | None = None, name: str = DRIVER
    ) -> int:
        """Become the holder of a lease if its epoch is still `seen`, else `Fenced`; returns the new epoch."""
        ...

    def commit(
        self,
        tick: TickRecord,
        *,
        epoch: int,
        alone: bool = False,
        renamed: Collection[Declaration] = (),
        anew: Mapping[str, Mapping[str, Any] | None] | None = None,
    ) -> None:
        """Commit a tick; `Fenced` if the epoch is not the lease's or the tick is not the next one.

        With `alone` it replaces all that were before it, at the same instant: they and their details are forgotten.
        So are the earlier details of arrangements of a name in `anew`, and of those below it (`name/…`); from the
        beginning on it has the detail that is given there, if any.
        Cursors that need what is so forgotten are given up.
        At the same instant too, each declaration in `renamed`, known by its number, gets that name and spec, in
        place of the one whose number its spec calls `before`, and the cursors of that; `DeclarationChanged` if one
        of both is gone.
        """
        ...

    def last_tick(self) -> TickRecord | None:
        """The newest committed tick."""
        ...

    def tick(self, number: int) -> TickRecord | None:
        """One committed tick."""
        ...

    def arrangements(self, tick: int) -> dict[str, Mapping[str, Any]]:
        """What every arrangement consisted of at that tick: its newest detail at or before it."""
        ...

    def details(self, arrangement: str, *, after: int, until: int) -> list[tuple[int, Mapping[str, Any]]]:
        """The details of one arrangement with their ticks, of those ticks with `after < tick <= until`."""
        ...

    def ticks(self) -> list[tuple[int, int]]:
        """Number and time of all ticks that are kept, in order."""
        ...

    def expire(self, keep: Collection[int], *, changes_after: int, epoch: int) -> None:
        """Forget all ticks but these and the newest, and every detail that none of the kept ones needs.

        Details of arrangements called `…/changes` describe one tick only: those up to `changes_after` go. What a
        cursor needs stays: the tick with which it is filled, and the changes behind its tick that it names, or, of
        records, the cuts of many ticks; and it is noted since when each has something to take in. `Fenced` if the
        epoch is not the lease's.
        """
        ...

    def drop_arrangements(self, prefix: str) -> None:
        """Forget all details of the arrangement of this name and of those below it (`prefix/…`).

        Changes that a cursor needs stay.
        """
        ...

    def files(self) -> list[Mapping[str, Any]]:
        """Every detail that is kept, of whatever arrangement: whoever sweeps reads from them what is in use."""
        ...

    def check(self) -> None:
        """`Unavailable` if it is not whole, as far as that is quickly told."""
        ...

    def faults(self) -> list[str]:
        """Read everything, and say what is not what was written."""
        ...

    def set_start(self, topic: int, partition: int, offset: int) -> None:
        """Record that a partition begins at this offset from now on (it never goes back)."""
        ...

    def starts(self, topic: int) -> dict[int, int]:
        """The recorded beginnings of a topic's partitions."""
        ...

    def watch(self) -> News:
        """News of ticks that are committed, by whatever process, from now on.

        Who dies as it commits may tell nobody, so who waits looks now and then all the same.
        """
        ...

    def writer(self) -> int | None:
        """The id of the process that is inside a write at this moment, where that can be told."""
        ...

    def close(self) -> None:
        """Give back what it holds; it may not be used afterwards."""
        ...
