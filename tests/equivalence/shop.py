"""A pipeline for one readable test: views on either path, and every tick held against batch."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.testing import ManualClock, assert_same_as_batch
from tests.equivalence.changes import changes_add_up
from tests.inside import driver_of, store_of


class Shop:
    """A pipeline whose every tick is compared."""

    def __init__(self, folder: Path, path: str) -> None:
        self.path = path
        self.pipeline = hw.Pipeline("shop", folder, clock=ManualClock())
        self._views: list[str] = []

    def stream(self, name: str, schema: str, **options: Any) -> hw.Stream:
        return self.pipeline.stream(name, schema, durability="none", **options)

    def table(self, name: str, schema: str, **options: Any) -> hw.Table:
        return self.pipeline.table(name, schema, durability="none", **options)

    def view(self, name: str, sql: str, **options: Any) -> None:
        self.pipeline.view(name, sql, **options)
        self._views.append(name)

    def moved(self) -> hw.Tick | None:
        """A tick on the chosen path."""
        if self.path == "large":
            driver_of(self.pipeline).small_rows = 0
        return self.pipeline.tick()

    def tick(self) -> hw.Tick:
        """A tick, after which every view equals batch and its changes add up to it."""
        tick = self.moved()
        assert tick is not None
        assert not tick.rows_in or set(tick.paths.values()) <= {self.path}, tick.paths
        assert_same_as_batch(self.pipeline)
        for name in self._views:
            changes_add_up(self.pipeline, name, since=tick.number - 1)
        return tick

    @property
    def queries(self) -> int:
        """How many expressions Spark evaluated in this process for the last tick."""
        last = store_of(self.pipeline).last_tick()
        assert last is not None
        return int(last.detail["queries"])

    def rows(self, name: str) -> list[tuple[Hashable, ...]]:
        """The rows of a view as tuples, sorted."""
        found = [tuple(row.values()) for row in self.pipeline.read(name).to_pylist()]
        return sorted(found, key=repr)

    def changes(self, name: str, since: int) -> list[tuple[Hashable, ...]]:
        """What came after a tick: the weight, then the row."""
        tables = self.pipeline.changes(name, since=since)
        return sorted((tuple(row.values())[1:] for table in tables for row in table.to_pylist()), key=repr)
