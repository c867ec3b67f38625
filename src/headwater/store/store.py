"""The protocol that every metadata store fulfils. `tests/contracts/store.py` is its specification."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from headwater.store.records import Declaration, LeaseRecord, TickRecord


class Store(Protocol):
    """Small facts, each changed by one atomic and lasting transaction.

    Safe for threads and for many processes at once. A write that returns has survived a power cut. A store
    that cannot be written raises `Unavailable` and has changed nothing.
    """

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
        """Take a declaration away; False, and nothing has changed, if it is gone or has another name."""
        ...

    def amend(self, declaration: Declaration) -> bool:
        """Change the spec of a declaration; False, and nothing has changed, if it is gone or has another name."""
        ...

    def decide(
        self,
        transaction: bytes,
        *,
        committed: bool,
        at: int,
        kept: Mapping[str, str] | None = None,
        durable: bool = True,
    ) -> bool:
        """Decide a transaction once and for all, and keep `kept` with it if it commits.

        Whoever decides first is right: the return value is the decision that holds. With `durable=False` it
        survives a killed process but not a power cut.
        """
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

    def lease(self) -> LeaseRecord:
        """Who drives now; epoch 0 and an empty holder if nobody ever did."""
        ...

    def raise_epoch(self, holder: Mapping[str, Any], *, seen: int, timeout: float | None = None) -> int:
        """Become the driver if the epoch is still `seen`, else `Fenced`; returns the new epoch."""
        ...

    def commit(
        self, tick: TickRecord, *, epoch: int, alone: bool = False, renamed: Collection[Declaration] = ()
    ) -> None:
        """Commit a tick; `Fenced` if the epoch is not the lease's or the tick is not the next one.

        With `alone` it replaces all that were before it, at the same instant: they and their details are forgotten.
        At the same instant too, each declaration in `renamed`, known by its number, gets that name and spec, in
        place of the one whose number its spec calls `before`; `DeclarationChanged` if one of both is gone.
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

        Details of arrangements called `…/changes` describe one tick only: those up to `changes_after` go.
        `Fenced` if the epoch is not the lease's.
        """
        ...

    def drop_arrangements(self, prefix: str) -> None:
        """Forget all details of the arrangement of this name and of those below it (`prefix/…`)."""
        ...

    def files(self) -> list[Mapping[str, Any]]:
        """Every detail that is kept, of whatever arrangement: whoever sweeps reads from them what is in use."""
        ...

    def set_start(self, topic: int, partition: int, offset: int) -> None:
        """Record that a partition begins at this offset from now on (it never goes back)."""
        ...

    def starts(self, topic: int) -> dict[int, int]:
        """The recorded beginnings of a topic's partitions."""
        ...

    def writer(self) -> int | None:
        """The id of the process that is inside a write at this moment, where that can be told."""
        ...

    def close(self) -> None:
        """Give back what it holds; it may not be used afterwards."""
        ...
