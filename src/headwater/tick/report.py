"""Tick: what one step of the pipeline's clock did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headwater.clock import as_datetime
from headwater.store import TickRecord


@dataclass(frozen=True)
class Tick:
    """One committed tick.

    `rows_in` counts the records it took from the log, `rows_out` the changed rows of each view, `rows_read` the
    rows of state that it looked up. `paths` says for each view that had work whether it was done in this process
    (`small`) or by Spark's executors (`large`). `watermark` is None while there is no event time.
    """

    number: int
    at: datetime
    seconds: float
    rows_in: int
    rows_out: Mapping[str, int] = field(default_factory=dict)
    rows_read: int = 0
    paths: Mapping[str, str] = field(default_factory=dict)
    watermark: datetime | None = None

    @classmethod
    def of(cls, record: TickRecord) -> Tick:
        """The report that was stored with a tick."""
        detail: Mapping[str, Any] = record.detail
        views: Mapping[str, Mapping[str, Any]] = detail["views"]
        return cls(
            record.number,
            as_datetime(record.at),
            detail["seconds"],
            detail["rows_in"],
            {name: each["changed"] for name, each in views.items()},
            detail["rows_read"],
            {name: each["path"] for name, each in views.items()},
        )
