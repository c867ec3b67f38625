"""Merging runs, a bounded amount at a time, so that no hash is ever in many of them.

Runs of about the same size form a *tier*; where four or more runs of a tier cover the same hashes, they are merged
there into one. A row that is written again comes into a higher tier (or other rows vanished), so a row is written
about as often as there are tiers: log4 of the table's size over the change's. A merge that is too large for one
call writes a piece: a run for the hashes up to h; its inputs are narrowed to h + 1 and above, where there are still
four of them. So the list of runs is all there is to remember, pieces side by side count as one run, and runs that
come meanwhile join in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

import pyarrow as pa

from headwater.state.arrangement import Arrangement
from headwater.state.files import StateFiles
from headwater.state.run import Run
from headwater.state.run_file import RunFile

CROWD = 4
"""So many runs of a tier that cover the same hash are too many."""
_LARGE = 64 << 20
"""Crowds of more bytes are large, whatever the budget: nobody should wait for them."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Runs of one tier, and a range of hashes that each cover in part and four or more cover everywhere."""

    runs: tuple[Run, ...]
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The runs from now on, which have the same sum as before, and how many bytes were written for it.

    `left` is what needs it too, but not now.
    """

    runs: tuple[Run, ...]
    rewritten_bytes: int
    left: Crowd | None = None


def merge(
    files: StateFiles,
    schema: pa.Schema,
    runs: Sequence[Run],
    writer: RunFile,
    budget: int,
    *,
    elsewhere: bool = False,
) -> MergeResult:
    """Merge what needs it, small runs first, reading and writing no more than about `budget` bytes.

    The result depends on nothing but the arguments. To keep up, the budget must be several (eight are enough) times
    the bytes added since the last call. It is also the size of the pieces in which large runs are merged, so it
    should not be a small part of the whole: a hundredth gives some hundred runs.

    If large crowds are merged `elsewhere`, at their own time and whole, they and those that the budget does not
    allow are left, unless they have become twice as large as they should.
    """
    current = tuple(runs)
    spent = written = 0
    while spent < budget and (crowd := _first_crowd(current)) is not None:
        step = _Step.of(files, schema, crowd, budget - spent)
        large = step.is_cut or step.bytes > _LARGE
        if large and elsewhere and _crowded(crowd.runs, 2 * CROWD) is None:
            return MergeResult(current, written, crowd)
        if step.is_cut and spent and budget - spent < budget // 4:
            break  # better a larger piece next time
        merged = step.run(writer)
        written += sum(run.length for run in merged)
        spent += max(step.bytes, 1)
        current = (*(run for run in current if run not in crowd.runs), *step.remains(), *merged)
    return MergeResult(current, written)


def merge_crowd(
    files: StateFiles, schema: pa.Schema, crowd: Crowd, writer: RunFile, pause: Callable[[], None]
) -> tuple[Run, ...]:
    """The runs that take a crowd's place. `pause` is called now and then, and may raise to give up."""
    whole = Arrangement(files, schema, crowd.runs)
    step = _Step.of(files, schema, crowd, whole.bytes)
    return (*step.remains(), *step.run(writer, pause))


@dataclass(frozen=True, slots=True)
class _Step:
    """One crowd merged from `low` up to `high`."""

    files: StateFiles
    schema: pa.Schema
    runs: tuple[Run, ...]
    low: int
    high: int
    is_cut: bool
    rows: int
    bytes: int

    @classmethod
    def of(cls, files: StateFiles, schema: pa.Schema, crowd: Crowd, budget: int) -> _Step:
        """As much of the crowd, from its low end, as the budget allows, but something."""
        arrangement = Arrangement(files, schema, crowd.runs)
        row_bytes = max(1, arrangement.bytes // max(1, arrangement.rows))
        high = arrangement.reach(crowd.low, crowd.high, max(1, budget // row_bytes))
        rows = arrangement.count(crowd.low, high)
        return cls(files, schema, crowd.runs, crowd.low, high, high < crowd.high, rows, rows * row_bytes)

    def run(self, writer: RunFile, pause: Callable[[], None] = lambda: None) -> list[Run]:
        """Write the sum: one run, or none if nothing is left of it."""
        slices = self._slices(pause)
        first = next(slices, None)
        if first is None:
            return []
        run = writer.add_sorted(chain([first], slices), low=self.low, high=self.high)
        return [replace(run, whole=max(1, self._whole() * run.rows // self.rows))]

    def _slices(self, pause: Callable[[], None]) -> Iterator[pa.Table]:
        for table in Arrangement(self.files, self.schema, self.runs).scan(self.low, self.high):
            pause()
            yield table

    def _whole(self) -> int:
        """How many rows the inputs would have together, if they all covered all hashes."""
        covered = sum(
            run.whole * (min(run.high, self.high) - max(run.low, self.low) + 1)
            for run in self.runs
            if run.low <= self.high and run.high >= self.low
        )
        return covered // (self.high - self.low + 1)

    def remains(self) -> list[Run]:
        """What the inputs still have below and above."""
        left = []
        for run in self.runs:
            alone = Arrangement(self.files, self.schema, [run])
            for low, high in ((run.low, self.low - 1), (self.high + 1, run.high)):
                rows = alone.count(low, high)
                if rows:
                    left.append(run.narrowed(low, high, rows))
        return left


def tier(run: Run) -> int:
    """The same for runs of about the same size: 0 below 64 rows, then one more for each factor of 4."""
    return max(0, (run.whole.bit_length() - 1) // 2 - 2)


def _first_crowd(runs: Sequence[Run]) -> Crowd | None:
    """Of the lowest tier that has one, the crowd at the lowest hashes."""
    for _, group in groupby(sorted(runs, key=tier), key=tier):
        members = tuple(group)
        found = _crowded(members) if len(members) >= CROWD else None
        if found is not None:
            low, high = found
            return Crowd(tuple(run for run in members if run.low <= high and run.high >= low), low, high)
    return None


def _crowded(runs: Sequence[Run], many: int = CROWD) -> tuple[int, int] | None:
    """The lowest range of hashes of which each is covered by so many runs."""
    changes = sorted(chain(((run.low, 1) for run in runs), ((run.high + 1, -1) for run in runs)))
    depth, low = 0, None
    for place, steps in groupby(changes, key=lambda change: change[0]):
        depth += sum(step for _, step in steps)
        if low is None and depth >= many:
            low = place
        elif low is not None and depth < many:
            return low, place - 1
    return None
