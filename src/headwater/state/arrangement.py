"""An arrangement: the rows of a relation at one version, indexed by the hash of a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.columns import altered, conformed
from headwater.change.consolidate import combine, consolidate, settled
from headwater.change.gather import Indices, each_once
from headwater.change.shape import shaped
from headwater.state.files import StateFiles
from headwater.state.open_run import OpenRun, Search, Stretches, open_run
from headwater.state.packed import unpacked
from headwater.state.run import HIGHEST, LOWEST, Run
from headwater.state.threads import at_once, in_order

SLICE_ROWS = 1 << 20


class Arrangement:
    """The sum of its runs, of which some may be of before the table was altered. Immutable, and safe for threads.

    Every table that it gives has the columns of `schema`: those of the relation, `_hash`, `_weight`. Runs are
    opened when they are first needed, and stay open while the arrangement lives. All methods raise Unavailable if a
    run's file is missing or damaged.
    """

    def __init__(self, files: StateFiles, schema: pa.Schema, runs: Sequence[Run]) -> None:
        if list(schema.names[-2:]) != [HASH, WEIGHT]:
            msg = f"the last columns of an arrangement are {HASH} and {WEIGHT}, not {schema.names[-2:]}"
            raise ValueError(msg)
        self.schema = schema
        self.runs = tuple(runs)
        self._files = files
        self._stored = schema
        self._altered = altered(schema)
        self._columns: list[str] | None = None
        self._opened: dict[Run, OpenRun] = {}

    def select(self, columns: Sequence[str], schema: pa.Schema) -> Arrangement:
        """The same rows with these columns alone, under the names and types of `schema`.

        Rows that differ in other columns only may be there several times.
        """
        chosen = Arrangement(self._files, schema, self.runs)
        chosen._stored, chosen._altered = self._stored, self._altered
        chosen._columns = [*columns, HASH, WEIGHT]
        return chosen

    @property
    def rows(self) -> int:
        """How many rows the runs have; the arrangement has no more."""
        return sum(run.rows for run in self.runs)

    @property
    def bytes(self) -> int:
        """About how many bytes the runs have."""
        return sum(run.bytes for run in self.runs)

    def probe(self, hashes: Indices) -> pa.Table:
        """The consolidated rows with any of these hashes, in any order; the cost follows their number."""
        return self._found(list(self._searches(hashes)))

    def between(self, lows: Indices, highs: Indices) -> pa.Table:
        """The consolidated rows with hashes in any of these ranges, which may overlap, in any order."""
        lows, highs = _apart(lows, highs)
        several: list[tuple[OpenRun, Sequence[Search | Stretches]]] = []
        for run in self.runs:
            first, last = np.searchsorted(highs, run.low), np.searchsorted(lows, run.high, side="right")
            if first < last:
                opened = self._open(run)
                several.append((opened, opened.stretches(lows[first:last], highs[first:last])))
        return self._found(several)

    def _found(self, several: Sequence[tuple[OpenRun, Sequence[Search | Stretches]]]) -> pa.Table:
        """What is found by searches, several in each of some runs."""
        searches = [(run, search) for run, (_, each) in enumerate(several) for search in each]
        opened = [each for each, _ in several]
        earlier = {run for run, each in enumerate(opened) if self._is_earlier(each)}
        batches = at_once(lambda each: each[1].find(None if each[0] in earlier else self._columns), searches)
        found = [(run, batch) for (run, _), batch in zip(searches, batches, strict=True) if batch.num_rows]
        if not found:
            return self.schema.empty_table()
        if earlier:
            return self._settled_apart(found, opened)
        found.sort(key=lambda each: [kind.id for kind in each[1].schema.types])  # what is packed alike
        table = self._shaped(unpacked([batch for _, batch in found], self._columns_of(self._stored)))
        source = np.repeat([run for run, _ in found], [batch.num_rows for _, batch in found])
        return settled(table, source, ordered=False)

    def _settled_apart(self, found: Sequence[tuple[int, pa.RecordBatch]], opened: Sequence[OpenRun]) -> pa.Table:
        """The consolidated rows of batches, each of a run, of which some have the columns of before."""
        tables: list[pa.Table] = []
        for run, several in groupby(found, key=lambda each: each[0]):
            stored = opened[run].schema if self._is_earlier(opened[run]) else self._columns_of(self._stored)
            tables.append(self._read(opened[run], unpacked([batch for _, batch in several], stored)))
        source = np.repeat(np.arange(len(tables)), [table.num_rows for table in tables])
        whole = pa.concat_tables(tables)
        return settled(whole, source, ordered=False) if whole.num_rows else whole

    def matches(self, hashes: Indices) -> int:
        """How many rows the runs have with any of these hashes; consolidated there may be fewer."""
        return sum(search.matches() for _, searches in self._searches(hashes) for search in searches)

    def _searches(self, hashes: Indices) -> Iterator[tuple[OpenRun, list[Search]]]:
        """The runs that may have some of these hashes, and what to look for in each."""
        wanted = each_once(hashes)
        for run in self.runs:
            first, last = np.searchsorted(wanted, run.low), np.searchsorted(wanted, run.high, side="right")
            if first < last:
                opened = self._open(run)
                yield opened, opened.searches(wanted[first:last])

    def scan(self, low: int = LOWEST, high: int = HIGHEST, rows: int = SLICE_ROWS) -> Iterator[pa.Table]:
        """The consolidated rows with these hashes, in order of hash, in tables of about so many rows.

        Rows of one hash are never in two tables; no table is empty.
        """
        if self.count(low, high) <= rows:
            slices = iter([self._between(low, high)])
        else:
            slices = in_order(lambda bounds: self._between(*bounds), self._ranges(low, high, rows))
        yield from (table for table in slices if table.num_rows)

    def _ranges(self, low: int, high: int, rows: int) -> Iterator[tuple[int, int]]:
        while low <= high:
            end = self.reach(low, high, rows)
            yield low, end
            low = end + 1

    def reach(self, low: int, high: int, rows: int) -> int:
        """The largest hash up to `high` with at most `rows` rows from `low` to it; at least `low`."""
        if self.count(low, high) <= rows:
            return high
        first, last = low, high
        while first < last:
            middle = (first + last + 1) // 2
            if self.count(low, middle) <= rows:
                first = middle
            else:
                last = middle - 1
        return first

    def count(self, low: int, high: int) -> int:
        """How many rows the runs have from hash `low` to `high`; consolidated there may be fewer."""
        whole = [run for run in self.runs if low <= run.low and run.high <= high]
        parts = [run for run in self.runs if low > run.low or run.high > high]
        return sum(run.rows for run in whole) + sum(end - start for _, start, end in self._spans(parts, low, high))

    def _between(self, low: int, high: int) -> pa.Table:
        spans = self._spans(self.runs, low, high)
        parts = [self._slice(opened, start, end) for opened, start, end in spans if start < end]
        return combine(parts, ordered=True) if parts else self.schema.empty_table()

    def _slice(self, opened: OpenRun, start: int, end: int) -> pa.Table:
        columns = None if self._is_earlier(opened) else self._columns
        return self._read(opened, opened.slice(start, end, columns))

    def _spans(self, runs: Iterable[Run], low: int, high: int) -> list[tuple[OpenRun, int, int]]:
        """Of every run that has hashes in the range: from which row to which."""
        spans = []
        for run in runs:
            first, last = max(low, run.low), min(high, run.high)
            if first <= last:
                opened = self._open(run)
                spans.append((opened, opened.below(first), opened.upto(last)))
        return spans

    def _open(self, run: Run) -> OpenRun:
        opened = self._opened.get(run)
        if opened is None:
            opened = self._opened[run] = open_run(self._files, run, self._stored)
        return opened

    def _is_earlier(self, opened: OpenRun) -> bool:
        """Whether a run has the columns of a table that was altered since."""
        return opened.altered != self._altered

    def _read(self, opened: OpenRun, table: pa.Table) -> pa.Table:
        """Rows of a run with this schema. Without a column that is gone, rows may be the same that were not."""
        if self._is_earlier(opened):
            rows = consolidate(conformed(table, self._stored))
            table = rows if self._columns is None else rows.select(self._columns)
        return self._shaped(table)

    def _columns_of(self, stored: pa.Schema) -> pa.Schema:
        return stored if self._columns is None else pa.schema(map(stored.field, self._columns))

    def _shaped(self, table: pa.Table) -> pa.Table:
        """The table with this schema: whether columns may be null is not the file's business."""
        if self._columns is not None:
            return shaped(table, self.schema)
        return pa.Table.from_arrays(table.columns, schema=self.schema)


def _apart(lows: Indices, highs: Indices) -> tuple[Indices, Indices]:
    """The same ranges in order, those that overlap as one."""
    order = np.argsort(lows)
    lows, highs = lows[order], np.maximum.accumulate(highs[order])
    begins = np.flatnonzero(np.concatenate([[True], lows[1:] > highs[:-1]])) if len(lows) else np.arange(0)
    ends = np.append(begins[1:], len(lows)) - 1 if len(lows) else begins
    return lows[begins], highs[ends]
