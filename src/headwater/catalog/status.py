"""Status: one picture of a pipeline, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True)
class TopicStatus:
    """A topic. `records` and `bytes` are those of its log; `waiting` are its records that no tick has taken in.

    `rate` is how many records a second came in the last minute, `dead_letters` how many of its rows were set aside.
    What cannot be told since the topic cannot be opened is None, and `fault` says why.
    """

    name: str
    kind: str
    key: tuple[str, ...] = ()
    schema: str = ""
    partitions: int = 1
    durability: str = "fsync"
    records: int | None = None
    bytes: int | None = None
    rate: float | None = None
    waiting: int | None = None
    dead_letters: int | None = None
    fault: str = ""


@dataclass(frozen=True)
class SuspensionStatus:
    """Why a view stands still `since` its last good tick (0: it was never filled), in a line, and what to do.

    It reads the view `because`, if it is not itself that fails.
    """

    since: int
    reason: str
    hint: str = ""
    because: str = ""


@dataclass(frozen=True)
class ReplacementStatus:
    """What is to replace a view: being built, held until `views switch`, ready for the next tick, or suspended.

    One that is `waiting` cannot take over before views that read the old columns are dropped. `reason` is why the
    view is made anew by itself, if it is.
    """

    number: int
    state: Literal["building", "held", "waiting", "ready", "suspended"]
    reason: str = ""
    suspended: SuspensionStatus | None = None


@dataclass(frozen=True)
class ViewStatus:
    """A view.

    It is `fresh` at tick `tick`, `behind` by so many records, being filled for the first time, or suspended.
    `changed` is the tick that last changed a row of it, at `changed_at`; `rows` how many it has, `bytes` how many
    it and what it keeps alone take; None where that is not quickly told. `filling` is from how many rows it is
    being filled at this moment, if this process does so. `seconds` and `path` are of the newest tick, if it had
    work in it. `begins` says for topics that had lost their beginning when it was filled from which offset on it
    has read them, by partition. `unseen` are columns, by topic, that came after a view with `SELECT *` was
    declared: it has them once it is replaced. One that `pairs_all` has a join in which each change looks at all
    rows of the other side.
    """

    name: str
    number: int
    key: tuple[str, ...]
    schema: str
    state: Literal["fresh", "behind", "filling", "suspended"]
    tick: int | None = None
    changed: int | None = None
    changed_at: datetime | None = None
    rows: int | None = None
    bytes: int | None = None
    behind: int | None = None
    filling: int | None = None
    seconds: float | None = None
    path: str | None = None
    suspended: SuspensionStatus | None = None
    replacement: ReplacementStatus | None = None
    begins: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unseen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pairs_all: bool = False


@dataclass(frozen=True)
class TicksStatus:
    """The newest tick, and the oldest that is kept; so many are `kept`."""

    number: int
    at: datetime
    seconds: float
    rows_in: int
    rows_out: int
    rows_read: int
    oldest: int
    kept: int


@dataclass(frozen=True)
class DriverStatus:
    """Whoever drives, or drove last: the process, since when, and its epoch; None if nobody ever did."""

    running: bool
    epoch: int = 0
    pid: int | None = None
    host: str | None = None
    since: datetime | None = None


@dataclass(frozen=True)
class Status:
    """A pipeline at one moment. `ticks` is None before the first one."""

    name: str
    path: str
    at: datetime
    topics: tuple[TopicStatus, ...]
    views: tuple[ViewStatus, ...]
    ticks: TicksStatus | None
    driver: DriverStatus

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON-ready data: times in ISO 8601."""
        made: dict[str, Any] = _plain(asdict(self))
        return made


def unseen_columns(view: str, topic: str, columns: Sequence[str]) -> str:
    """That a view with `SELECT *` keeps its columns, in words."""
    came = f"{', '.join(columns)} of {topic}, which came later"
    return f"{view} keeps its columns until it is replaced: it has not {came}"


def begun(places: Mapping[str, int]) -> str:
    """From where a topic was read, in words."""
    return ", ".join(f"offset {offset:,} of partition {partition}" for partition, offset in places.items())


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.isoformat(timespec="milliseconds") if isinstance(value, datetime) else value
