"""An operator that is run by itself, tick after tick: what it keeps is in files, as a driver would have it.

Its change is asked for as either path does: of all hashes at once, or range by range with what can be made of parts
of a change made before. What it has emitted so far is counted, and nothing may be taken back that is not there. Of
what an operator gives too much of, since a condition follows it, only what `passes` counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.keys import with_hash, without_nulls
from headwater.operators.stateful import Stateful
from headwater.plan.operators import Field
from headwater.plan.physical import Evaluate, Exchange, Given, Made
from headwater.state.arrangement import Arrangement
from headwater.state.files import LocalStateFiles
from headwater.state.run import HIGHEST, LOWEST, Run
from headwater.state.run_file import RunFile

Row = tuple[Any, ...]
WAYS = ("whole", "in ranges")


def changed(fields: Sequence[Field], change: Counter[Row]) -> pa.Table:
    """A change as a table, every row once."""
    rows = [row for row, weight in change.items() if weight]
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(fields)]
    table = pa.table(columns, schema=pa.schema([field.arrow for field in fields]))
    return table.append_column(WEIGHT, pa.array([change[row] for row in rows], pa.int64()))


def counted(tables: Iterable[pa.Table], names: Sequence[str]) -> Counter[Row]:
    """The rows of a change, each with the sum of its weights."""
    found: Counter[Row] = Counter()
    for table in tables:
        columns = [table.column(name).to_pylist() for name in names]
        for row, weight in zip(zip(*columns, strict=True), table.column(WEIGHT).to_pylist(), strict=True):
            found[row] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def never(tables: Sequence[pa.Table]) -> pa.Table:
    raise AssertionError(tables)


class Running:
    """An operator with what it keeps."""

    def __init__(
        self,
        node: Stateful,
        folder: Path,
        way: str = "whole",
        evaluate: Evaluate = never,
        passes: Callable[[Row], bool] = lambda _: True,
    ) -> None:
        self.node = node
        self._passes = passes
        self.emitted: Counter[Row] = Counter()
        self.read = 0
        self._evaluate = evaluate
        self._place = LocalStateFiles(str(folder))
        self._ranges = way != "whole" and not node.is_whole
        self._runs: dict[str, list[Run]] = {}
        self._filling = True
        self._files = 0

    def take(self, *changes: Counter[Row]) -> Counter[Row]:
        """Take a change of each input; what changes in what it gives."""
        pairs = zip(self.node.exchanges, self.node.children, changes, strict=True)
        tables = [self._hashed(exchange, changed(child.output, change)) for exchange, child, change in pairs]
        bounds = self._bounds()
        made = [self.made_of(tables, low, high) for low, high in bounds]
        self._filling = False
        for each, (low, high) in zip(made, bounds, strict=True):
            self._keep(each, low, high)
        self.read = sum(each.read for each in made)
        given = counted([each.table() for each in made], self.node.schema.names)
        result = Counter({row: weight for row, weight in given.items() if self._passes(row)})
        for row, weight in result.items():
            self.emitted[row] += weight
            assert self.emitted[row] >= 0, f"{row} is taken back, and was never given"
        self.emitted = +self.emitted
        return result

    def _bounds(self) -> list[tuple[int, int]]:
        cuts = [LOWEST, -(1 << 61), 0, 1 << 62, HIGHEST + 1] if self._ranges else [LOWEST, HIGHEST + 1]
        return [(low, high - 1) for low, high in pairwise(cuts)]

    def _hashed(self, exchange: Exchange, change: pa.Table) -> pa.Table:
        present = without_nulls(change, exchange.key) if exchange.drops else change
        hashed = with_hash(present, exchange.key, matches=exchange.matches)
        return consolidate(hashed) if exchange.settles else hashed

    def made_of(self, tables: Sequence[pa.Table], low: int, high: int) -> Made:
        inputs = [self._given(*each, low, high) for each in zip(self.node.exchanges, tables, strict=True)]
        states = [self.held(state.name, state.schema) for state in self.node.states]
        return self.node.operate(inputs, states, self._evaluate, filling=self._filling)

    def _given(self, exchange: Exchange, table: pa.Table, low: int, high: int) -> Given:
        found = table.column(HASH).to_numpy()
        mine = table.filter(pa.array((low <= found) & (found <= high)))
        old = self.held(exchange.state, exchange.schema)
        partial = self.node.partial
        if not self._ranges or partial is None:
            return Given([mine], old, is_settled=exchange.settles)
        parts = [mine.slice(0, len(mine) // 2), mine.slice(len(mine) // 2)]
        return Given([partial.of(each) for each in parts if len(each)], old, is_partial=True)

    def held(self, name: str, schema: pa.Schema) -> Arrangement:
        """What is kept under a name."""
        return Arrangement(self._place, schema, self._runs.get(name, ()))

    def _keep(self, made: Made, low: int, high: int) -> None:
        names = [*(each.state for each in self.node.exchanges), *(each.name for each in self.node.states)]
        for name, rows in zip(names, made.kept, strict=True):
            if rows is not None and rows.num_rows:
                assert name, "rows are kept of an input that is not to be kept"
                self._files += 1
                file = RunFile(self._place, f"{self._files}.runs")
                self._runs.setdefault(name, []).append(file.add(rows, low=low, high=high))
                file.finish()

    def kept(self, name: str) -> int:
        """How many rows are kept under a name."""
        schemas = {each.state: each.schema for each in self.node.exchanges}
        schemas |= {each.name: each.schema for each in self.node.states}
        return sum(table.num_rows for table in self.held(name, schemas[name]).scan())


def collided(table: pa.Table) -> pa.Table:
    """The same rows, all with one hash."""
    zeros = pa.array(np.zeros(table.num_rows, np.int64))
    return table.set_column(table.schema.get_field_index(HASH), HASH, zeros)
