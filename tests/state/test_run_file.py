"""A file of runs: when it comes to be, when it can be read, and what is left when it fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.change import HASH, gather
from headwater.change.consolidate import consolidate
from headwater.errors import Unavailable
from headwater.files import Files
from headwater.state import HIGHEST, LOWEST, Arrangement, Manifest, Run, RunFile
from headwater.state.files import LocalStateFiles
from headwater.state.manifest import files_of
from tests.state.changes import SCHEMA, changes, table, total


def some(seed: int, rows: int = 100) -> pa.Table:
    return consolidate(changes(np.random.default_rng(seed), rows, keys=rows))


def read(folder: Path, *runs: Run) -> pa.Table:
    return pa.concat_tables([SCHEMA.empty_table(), *Arrangement(LocalStateFiles(str(folder)), SCHEMA, runs).scan()])


class FullDisk(Files):
    """Takes so many writes, then no more."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    def write(self, handle: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(handle, buffers, position)


def test_nothing_added_is_no_file(tmp_path: Path) -> None:
    files = Files()
    RunFile(LocalStateFiles(str(tmp_path / "state"), files), "1-1-1.runs").finish()
    RunFile(LocalStateFiles(str(tmp_path / "state"), files), "1-1-1.runs").abandon()
    assert list(tmp_path.iterdir()) == []
    assert files.syncs == 0


def test_runs_of_one_file_are_read_apart_and_each_is_aligned(tmp_path: Path) -> None:
    writer = RunFile(LocalStateFiles(str(tmp_path)), "1-1-1.runs")
    tables = [some(seed) for seed in range(5)]
    runs = [writer.add(one) for one in tables]
    writer.finish()
    for run, one in zip(runs, tables, strict=True):
        assert run.offset % 64 == 0
        assert (run.rows, run.low, run.high, run.whole) == (one.num_rows, LOWEST, HIGHEST, one.num_rows)
        assert total(read(tmp_path, run)) == total(one)


def test_a_run_can_be_read_before_its_file_is_finished_and_after_more_was_added(tmp_path: Path) -> None:
    writer = RunFile(LocalStateFiles(str(tmp_path)), "1-1-1.runs")
    first = writer.add(some(1))
    assert total(read(tmp_path, first)) == total(some(1))
    second = writer.add(some(2))
    assert total(read(tmp_path, first, second)) == total(some(1), some(2))
    writer.finish()
    assert total(read(tmp_path, first, second)) == total(some(1), some(2))


def test_finishing_syncs_the_file_and_gives_its_handle_back(tmp_path: Path) -> None:
    files = Files()
    before = len(os.listdir("/proc/self/fd"))
    writer = RunFile(LocalStateFiles(str(tmp_path), files), "1-1-1.runs")
    writer.add(some(1))
    assert files.syncs == 0
    writer.finish()
    assert files.syncs == 1
    assert len(os.listdir("/proc/self/fd")) == before


def test_abandoning_removes_the_file_but_not_from_those_who_read_it(tmp_path: Path) -> None:
    writer = RunFile(LocalStateFiles(str(tmp_path)), "1-1-1.runs")
    reader = Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, [writer.add(some(1))])
    assert total(*reader.scan()) == total(some(1))
    writer.abandon()
    assert list(tmp_path.iterdir()) == []
    assert total(*reader.scan()) == total(some(1))


def test_a_file_left_by_another_of_the_same_name_is_replaced_not_overwritten(tmp_path: Path) -> None:
    old = RunFile(LocalStateFiles(str(tmp_path)), "1-1-1.runs")
    before = Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, [old.add(some(1, rows=1000))])
    old.finish()
    assert total(*before.scan()) == total(some(1, rows=1000))
    new = RunFile(LocalStateFiles(str(tmp_path)), "1-1-1.runs")
    run = new.add(some(2))
    new.finish()
    assert (tmp_path / "1-1-1.runs").read_bytes().endswith(b"HWR2")
    assert total(read(tmp_path, run)) == total(some(2))
    assert total(*before.scan()) == total(some(1, rows=1000))


@pytest.mark.parametrize("writes", range(6))
def test_a_full_disk_is_told_and_leaves_nothing_once_abandoned(tmp_path: Path, writes: int) -> None:
    writer = RunFile(LocalStateFiles(str(tmp_path), FullDisk(writes)), "1-1-1.runs")
    with pytest.raises(Unavailable, match="the disk refused") as caught:
        [writer.add(some(seed)) for seed in range(5)]
    assert caught.value.retry
    writer.abandon()
    assert list(tmp_path.iterdir()) == []


def test_rows_are_sorted_and_split_into_batches_of_modest_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "CHUNK_BYTES", 1000)
    writer = RunFile(LocalStateFiles(str(tmp_path)), "1-1-1.runs")
    given = some(3, rows=1000)
    run = writer.add(pa.concat_tables([given.slice(200), given.slice(0, 200)]))
    stream = (tmp_path / run.file).read_bytes()[run.offset : run.offset + run.length]
    batches = list(pa.ipc.open_stream(stream))
    assert len(batches) > 10
    assert max(batch.nbytes for batch in batches) < 2000
    hashes = [value for batch in batches for value in batch.column(HASH).to_pylist()]
    assert hashes == sorted(hashes)
    assert total(read(tmp_path, run)) == total(given)


def test_a_run_has_rows_and_keeps_to_its_range(tmp_path: Path) -> None:
    writer = RunFile(LocalStateFiles(str(tmp_path)), "1-1-1.runs")
    for rows in ([], [(1, "a", None, 4, 1)], [(1, "a", None, 11, 1)]):
        with pytest.raises(ValueError, match="from 5 to 10 only"):
            writer.add(table(rows), low=5, high=10)
    run = writer.add(table([(1, "a", None, 5, 1), (2, "a", None, 10, 1)]), low=5, high=10)
    assert (run.low, run.high) == (5, 10)


def test_runs_and_manifests_travel_as_plain_data() -> None:
    run = Run("1-1-1.runs", 64, 100, 10, 100)
    narrow = run.narrowed(0, 5, 3)
    assert narrow == Run("1-1-1.runs", 64, 100, 3, 30, 0, 5, 10)
    manifest = Manifest((run, narrow))
    assert Manifest.from_dict(manifest.as_dict()) == manifest
    assert set(files_of(manifest.as_dict())) == {"1-1-1.runs"}
    assert Manifest().as_dict() == {"runs": []}
