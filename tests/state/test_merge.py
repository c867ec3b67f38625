"""Merging changes how an arrangement is stored, never what it holds; its cost and its effect are bounded."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.hash import hash_rows
from headwater.state import HIGHEST, LOWEST, Arrangement, MergeResult, Run, RunFile, merge
from headwater.state.files import LocalStateFiles
from headwater.state.merge import CROWD, tier
from tests.state.changes import SCHEMA, Total, changes, table, total

WITHOUT_LIMIT = 1 << 60


class State:
    """An arrangement that gets a run and a merge at every tick."""

    def __init__(self, folder: Path, schema: pa.Schema = SCHEMA) -> None:
        self.folder, self.schema = str(folder), schema
        self.runs: tuple[Run, ...] = ()
        self.ticks = 0
        self.added = self.rewritten = 0

    def tick(self, change: pa.Table, budget: int) -> MergeResult:
        self.ticks += 1
        writer = RunFile(LocalStateFiles(self.folder), f"1-{self.ticks}-1.runs")
        added = [writer.add(change)] if change.num_rows else []
        done = merge(LocalStateFiles(self.folder), self.schema, [*self.runs, *added], writer, budget)
        writer.finish()
        self.added += sum(run.length for run in added)
        self.rewritten += done.rewritten_bytes
        self.runs = done.runs
        return done

    def content(self) -> Total:
        return total(*Arrangement(LocalStateFiles(self.folder), self.schema, self.runs).scan())

    @property
    def deepest(self) -> int:
        return max((depth(self.runs, hash_) for run in self.runs for hash_ in (run.low, run.high)), default=0)


def depth(runs: Sequence[Run], hash_: int) -> int:
    """How many runs must be asked for a hash."""
    return sum(run.low <= hash_ <= run.high for run in runs)


def fresh(numbers: range) -> pa.Table:
    """New rows with spread hashes."""
    return rows_of(np.arange(numbers.start, numbers.stop), "name")


def rows_of(keys: npt.NDArray[np.int64], name: str) -> pa.Table:
    zeros, ones = np.zeros(len(keys)), np.ones(len(keys), dtype=np.int64)
    columns = [keys, [name] * len(keys), zeros, hash_rows([pa.array(keys)]), ones]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=SCHEMA)


@pytest.mark.parametrize("seed", range(20))
def test_any_sequence_of_additions_and_merges_keeps_the_sum(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    hashes = int(random.choice([3, 50, 1 << 62]))
    state, content = State(tmp_path), Total()
    for _ in range(40):
        rows = int(random.choice([0, 1, 5, 60, 300]))
        change = consolidate(changes(random, rows, keys=200, hashes=hashes))
        budget = int(random.choice([0, 1, 2_000, 20_000, WITHOUT_LIMIT]))
        content = total(change, *([as_table(content)] if content else []))
        state.tick(change, budget)
        assert state.content() == content
        assert sum(run.rows for run in state.runs) == Arrangement(
            LocalStateFiles(str(tmp_path)), SCHEMA, state.runs
        ).count(LOWEST, HIGHEST)


def as_table(content: Total) -> pa.Table:
    return table([(*row, weight) for row, weight in content.items()])


def test_four_runs_of_a_size_become_one(tmp_path: Path) -> None:
    state = State(tmp_path)
    for number in range(3):
        assert state.tick(fresh(range(100 * number, 100 * number + 100)), WITHOUT_LIMIT).rewritten_bytes == 0
    assert len(state.runs) == 3
    done = state.tick(fresh(range(300, 400)), WITHOUT_LIMIT)
    assert len(done.runs) == 1
    assert done.runs[0].rows == done.runs[0].whole == 400
    assert done.rewritten_bytes == done.runs[0].length


def test_a_large_crowd_is_left_to_others_until_it_is_twice_as_large_as_it_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, writer = State(tmp_path), RunFile(LocalStateFiles(str(tmp_path)), "1-0-0.runs")
    runs = [writer.add(fresh(range(100 * number, 100 * number + 100))) for number in range(2 * CROWD)]
    monkeypatch.setattr(sys.modules[tier.__module__], "_LARGE", sum(run.bytes for run in runs[:CROWD]) // 2)
    arguments = LocalStateFiles(state.folder), SCHEMA, runs[:CROWD], writer, WITHOUT_LIMIT
    left = merge(*arguments, elsewhere=True)
    assert left.runs == tuple(runs[:CROWD])
    assert left.left is not None
    assert left.left.runs == tuple(runs[:CROWD])
    assert len(merge(*arguments).runs) == 1
    assert len(merge(LocalStateFiles(state.folder), SCHEMA, runs, writer, WITHOUT_LIMIT, elsewhere=True).runs) == 1
    monkeypatch.setattr(sys.modules[tier.__module__], "_LARGE", sum(run.bytes for run in runs[:CROWD]))
    assert len(merge(*arguments, elsewhere=True).runs) == 1
    writer.finish()


def test_runs_of_different_sizes_are_left_alone(tmp_path: Path) -> None:
    state = State(tmp_path)
    for rows in (5000, 1200, 300, 70, 10):
        state.tick(fresh(range(rows)), WITHOUT_LIMIT)
    assert state.rewritten == 0


def test_rows_that_cancel_leave_no_run(tmp_path: Path) -> None:
    state, rows = State(tmp_path), fresh(range(100))
    back = rows.set_column(4, SCHEMA.field(WEIGHT), pa.array(np.full(100, -1)))
    for change in (rows, back, rows, back):
        done = state.tick(change, WITHOUT_LIMIT)
    assert done == MergeResult((), 0)


def test_what_cancelled_does_not_count_for_the_size_of_a_run(tmp_path: Path) -> None:
    state, back = State(tmp_path), pa.array(np.full(90, -1))
    for start in (0, 100):
        state.tick(fresh(range(start, start + 100)), WITHOUT_LIMIT)
        state.tick(fresh(range(start, start + 90)).set_column(4, SCHEMA.field(WEIGHT), back), WITHOUT_LIMIT)
    assert [(run.rows, run.whole) for run in state.runs] == [(20, 20)]


def test_a_merge_too_large_for_one_call_goes_on_piece_by_piece(tmp_path: Path) -> None:
    state = State(tmp_path)
    for number in range(4):
        state.tick(fresh(range(1000 * number, 1000 * number + 1000)), budget=0)
    assert state.rewritten == 0
    size = sum(run.bytes for run in state.runs)
    content, seen = state.content(), []
    while state.deepest >= CROWD:
        done = state.tick(SCHEMA.empty_table(), budget=size // 5)
        assert 0 < done.rewritten_bytes < size // 5 + 5000
        assert state.content() == content
        seen.append(len(done.runs))
    assert len(seen) in {5, 6}
    assert state.deepest == 1
    assert {tier(run) for run in state.runs} == {tier(Run("", 0, 0, 4000, 0))}
    pieces = sorted(state.runs, key=lambda run: run.low)
    assert (pieces[0].low, pieces[-1].high) == (LOWEST, HIGHEST)
    assert all(one.high + 1 == other.low for one, other in pairwise(pieces))


def test_runs_that_come_during_a_merge_join_in(tmp_path: Path) -> None:
    state = State(tmp_path)
    for number in range(4):
        state.tick(fresh(range(1000 * number, 1000 * number + 1000)), budget=0)
    size = sum(run.bytes for run in state.runs)
    for number in range(4, 40):
        state.tick(fresh(range(1000 * number, 1000 * number + 1000)), budget=size)
        assert state.deepest <= 9
    assert state.content() == total(fresh(range(40_000)))


def test_runs_side_by_side_count_as_one(tmp_path: Path) -> None:
    """As those that the tasks of a large tick write, each for a range of hashes."""
    writer = RunFile(LocalStateFiles(str(tmp_path)), "1-1-1.runs")
    rows = fresh(range(1000))
    runs = []
    for low, high in ((LOWEST, -1), (0, HIGHEST)):
        inside = (rows.column(HASH).to_numpy() >= low) & (rows.column(HASH).to_numpy() <= high)
        runs += [writer.add(rows.filter(pa.array(inside)), low=low, high=high) for _ in range(3)]
    assert merge(LocalStateFiles(str(tmp_path)), SCHEMA, runs, writer, WITHOUT_LIMIT) == MergeResult(tuple(runs), 0)
    runs.append(writer.add(rows))
    assert tier(runs[0]) == tier(runs[-1])
    done = merge(LocalStateFiles(str(tmp_path)), SCHEMA, runs, writer, WITHOUT_LIMIT)
    assert [(run.low, run.high, run.rows) for run in done.runs] == [(LOWEST, HIGHEST, 1000)]


def test_the_result_depends_on_nothing_but_the_arguments(tmp_path: Path) -> None:
    def history(folder: Path) -> list[object]:
        random, state = np.random.default_rng(3), State(folder)
        return [state.tick(consolidate(changes(random, 100, 1000)), budget=10_000) for _ in range(30)]

    assert history(tmp_path / "one") == history(tmp_path / "other")


def _updates(random: np.random.Generator, rows: int, tick: int) -> pa.Table:
    """Rows of the same 2,000 keys come again and again, each another row."""
    return rows_of(np.unique(random.integers(0, 2000, rows)), str(tick))


def _growing(_random: np.random.Generator, rows: int, tick: int) -> pa.Table:
    return fresh(range(rows * tick, rows * tick + rows))


def _same_rows(_random: np.random.Generator, rows: int, tick: int) -> pa.Table:
    """The same rows come and go."""
    change = fresh(range(rows))
    return change.set_column(4, SCHEMA.field(WEIGHT), pa.array(np.full(rows, 1 if tick % 3 else -1)))


Workload = Callable[[np.random.Generator, int, int], pa.Table]


@pytest.mark.slow
@pytest.mark.parametrize("workload", [_updates, _growing, _same_rows])
@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("limited", [True, False])
def test_the_work_follows_the_change_and_no_hash_is_in_many_runs(
    tmp_path: Path, workload: Workload, rows: int, limited: bool
) -> None:
    random, state, ticks = np.random.default_rng(11), State(tmp_path), 250
    for tick in range(ticks):
        change = workload(random, rows, tick)
        budget = 12 * (state.added // state.ticks + 2000) if limited and state.ticks else WITHOUT_LIMIT
        done = state.tick(change, budget)
        if limited:
            assert done.rewritten_bytes <= budget + 5000
    tiers = math.log(ticks, 4)
    assert state.rewritten <= 2 * tiers * state.added
    assert state.deepest <= (CROWD - 1) * (tiers + 2) + (CROWD if limited else 0)
    assert len(state.runs) <= (CROWD - 1) * (tiers + 2) + (20 if limited else 0)


def test_a_large_table_is_not_rewritten_for_small_changes(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.tick(fresh(range(50_000)), WITHOUT_LIMIT)
    base = state.added
    for tick in range(60):
        state.tick(fresh(range(10 * tick, 10 * tick + 10)), WITHOUT_LIMIT)
    assert state.rewritten < base / 4
    assert state.deepest <= 8


def test_tiers_are_powers_of_four_from_64_rows_on() -> None:
    sizes = (1, 63, 64, 255, 256, 1023, 1024, 1 << 20)
    assert [tier(Run("", 0, 0, rows, 0)) for rows in sizes] == [0, 0, 1, 1, 2, 2, 3, 8]
    assert tier(Run("", 0, 0, 5, 0, whole=300)) == 2
