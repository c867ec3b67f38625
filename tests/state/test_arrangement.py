"""An arrangement is the sum of its runs, found by hash."""

from __future__ import annotations

import errno
import importlib
import os
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from headwater.change import HASH, gather
from headwater.change.consolidate import consolidate
from headwater.errors import Unavailable
from headwater.state import HIGHEST, LOWEST, Arrangement, Run, RunFile, open_run
from headwater.state import arrangement as module
from headwater.state.files import LocalStateFiles
from headwater.state.files.local import Maps
from headwater.state.files.mapped import MappedFile
from headwater.state.files.prefetch import Prefetch
from tests.state.changes import SCHEMA, Total, changes, hash_of, table, total


def written(folder: Path, *tables: pa.Table, name: str = "1-1-1.runs") -> list[Run]:
    writer = RunFile(LocalStateFiles(str(folder)), name)
    runs = [writer.add(one) for one in tables]
    writer.finish()
    return runs


def with_hashes(content: Total, hashes: set[int]) -> Total:
    return Total({row: weight for row, weight in content.items() if row[-1] in hashes})


@pytest.mark.parametrize("seed", range(25))
def test_probes_and_scans_find_what_adding_up_all_changes_gives(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(seed)
    monkeypatch.setattr(gather, "CHUNK_BYTES", int(random.choice([300, 3000, 1 << 20])))
    hashes = int(random.choice([6, 1 << 62]))
    many = [consolidate(changes(random, int(random.integers(1, 200)), 80, hashes)) for _ in range(seed % 7)]
    tables = [one for one in many if one.num_rows]
    arrangement = Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, written(tmp_path, *tables) if tables else [])
    content = total(*tables)
    assert arrangement.rows == sum(one.num_rows for one in tables)

    wanted = [hash_of(int(key), hashes) for key in random.integers(0, 120, int(random.integers(0, 40)))]
    found = arrangement.probe(np.array([*wanted, *wanted], dtype=np.int64))
    assert found.schema == SCHEMA
    assert total(found) == with_hashes(content, set(wanted))
    assert found.num_rows == len(total(found))

    bounds = np.array([hash_of(int(key), hashes) for key in random.integers(0, 120, 2 * (seed % 5))], np.int64)
    lows, highs = np.sort(bounds.reshape(2, -1), axis=0)
    between = arrangement.between(lows, highs)
    pairs = list(zip(lows.tolist(), highs.tolist(), strict=True))
    within = {row[-1] for row in content if any(low <= row[-1] <= high for low, high in pairs)}
    assert total(between) == with_hashes(content, within)
    assert between.num_rows == len(total(between))

    slices = list(arrangement.scan(rows=int(random.integers(1, 200))))
    order = [value for one in slices for value in one.column(HASH).to_pylist()]
    assert order == sorted(order)
    assert total(*slices) == content
    assert len(order) == len(content)
    for one, other in pairwise(slices):
        assert one.column(HASH)[-1].as_py() < other.column(HASH)[0].as_py()

    low, high = sorted(hash_of(int(key), hashes) for key in random.integers(0, 80, 2))
    assert total(*arrangement.scan(low, high)) == with_hashes(content, {h for h in order if low <= h <= high})


def test_only_hashes_within_a_runs_range_count(tmp_path: Path) -> None:
    extremes = [LOWEST, -1, 0, 1, HIGHEST]
    (run,) = written(tmp_path, table([(n, "a", None, h, 1) for n, h in enumerate(extremes)]))
    for low, high in ((LOWEST, HIGHEST), (0, 0), (LOWEST, -1), (1, HIGHEST), (2, HIGHEST - 1)):
        inside = [h for h in extremes if low <= h <= high]
        arrangement = Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, [run.narrowed(low, high, len(inside))])
        assert arrangement.probe(np.array(extremes)).column(HASH).to_pylist() == inside
        assert [h for one in arrangement.scan() for h in one.column(HASH).to_pylist()] == inside


def test_a_hash_that_is_nowhere_finds_nothing(tmp_path: Path) -> None:
    runs = written(tmp_path, table([(1, "a", None, 5, 1)]))
    for arrangement in (
        Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs),
        Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, []),
    ):
        for hashes in ([], [4], [6, LOWEST, HIGHEST]):
            assert arrangement.probe(np.array(hashes, dtype=np.int64)).equals(SCHEMA.empty_table())
    assert list(Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, []).scan()) == []


def test_rows_that_cancel_over_all_runs_are_not_there(tmp_path: Path) -> None:
    rows = [(1, "a", None, 5, 1), (2, "b", None, 6, 1)]
    runs = written(tmp_path, table(rows), table([(*row[:-1], -1) for row in rows]))
    arrangement = Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs)
    assert arrangement.probe(np.array([5, 6])).num_rows == 0
    assert list(arrangement.scan()) == []


def test_a_probe_consolidates_only_hashes_that_several_runs_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run is consolidated already: grouping by all columns is for the rows that may have a counterpart."""
    algebra = importlib.import_module("headwater.change.consolidate")
    looked_at = []
    real = algebra._sums

    def sums(given: pa.Table, suspects: npt.NDArray[np.int64]) -> object:
        looked_at.append(len(suspects))
        return real(given, suspects)

    monkeypatch.setattr(algebra, "_sums", sums)
    runs = written(
        tmp_path,
        table([(n, "a", None, n // 2, 1) for n in range(100)]),
        table([(n, "b", None, n, 1) for n in (7, 8, 90)]),
    )
    arrangement = Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs)
    arrangement.probe(np.array([1, 2, 90]))
    assert looked_at == []
    arrangement.probe(np.array([1, 2, 7, 90]))
    assert looked_at == [3]


def test_a_removed_file_stays_readable_for_who_opened_it(tmp_path: Path) -> None:
    rows = table([(1, "a", None, 5, 1)])
    runs = written(tmp_path, rows)
    arrangement = Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs)
    assert arrangement.probe(np.array([5])).num_rows == 1
    os.unlink(tmp_path / "1-1-1.runs")
    assert total(*arrangement.scan()) == total(rows)
    with pytest.raises(Unavailable):
        Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs).probe(np.array([5]))


def test_another_file_of_the_same_name_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    """As when a pipeline is deleted and made again in the same place."""
    for key in (1, 2):
        (run,) = written(tmp_path, table([(key, "a", None, 5, 1)]))
        assert Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, [run]).probe(np.array([5])).column(
            "key"
        ).to_pylist() == [key]
        os.unlink(tmp_path / run.file)


def test_runs_of_one_file_share_one_map_and_keep_no_descriptor(tmp_path: Path) -> None:
    runs = written(tmp_path, *(table([(n, "a", None, 5, 1)]) for n in range(20)))
    arrangement = Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs)
    assert arrangement.probe(np.array([5])).num_rows == 20
    path = str(tmp_path / "1-1-1.runs")
    assert Path("/proc/self/maps").read_text().count(path) == 1
    assert [os.path.realpath(handle) for handle in Path("/proc/self/fd").iterdir()].count(path) == 0


def test_removed_files_are_let_go_when_others_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opening = importlib.import_module("headwater.state.open_run")
    monkeypatch.setattr(opening, "_cache", opening._Cache())
    for number in range(50):
        (run,) = written(tmp_path, table([(number, "a", None, 5, 1)]), name=f"1-{number}-1.runs")
        Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, [run]).probe(np.array([5]))
        os.unlink(tmp_path / run.file)
    assert Path("/proc/self/maps").read_text().count(str(tmp_path)) <= 32


def test_runs_that_a_fill_leaves_are_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two operators that a fill evaluates in 512 ranges each, with all else, are more than a thousand."""
    opening = importlib.import_module("headwater.state.open_run")
    runs = written(tmp_path, *(table([(n, "a", None, 5, 1)]) for n in range(2_000)))
    assert Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs).probe(np.array([5])).num_rows == len(runs)
    monkeypatch.setattr(opening, "OpenRun", None)
    assert Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs).probe(np.array([5])).num_rows == len(runs)


def before_the_end(data: bytes) -> bytes:
    return data[: data.rindex(b"\xff\xff\xff\xff\0\0\0\0")]


DAMAGE = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:200]),
    "cut behind the last batch": lambda path: path.write_bytes(before_the_end(path.read_bytes())),
    "zeros": lambda path: path.write_bytes(bytes(len(path.read_bytes()))),
    "noise": lambda path: path.write_bytes(b"\xa5" * len(path.read_bytes())),
    "no batches": lambda path: path.write_bytes(b"\xff\xff\xff\xff\0\0\0\0" + bytes(len(path.read_bytes()))),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_told_with_what_to_do(tmp_path: Path, damage: str) -> None:
    runs = written(tmp_path, table([(n, "a", None, n, 1) for n in range(100)]))
    DAMAGE[damage](tmp_path / "1-1-1.runs")
    for read in (lambda a: a.probe(np.array([5])), lambda a: list(a.scan())):
        with pytest.raises(Unavailable) as caught:
            read(Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs))
        assert caught.value.where == str(tmp_path / "1-1-1.runs")
        assert "`state`" in caught.value.hint
        assert "rebuilt from the log" in caught.value.hint


class Exhausted(LocalStateFiles):
    """Files that a process has no descriptors left for."""

    def open(self, name: str) -> MappedFile:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), self.place(name))


def test_a_system_out_of_files_is_not_taken_for_damage(tmp_path: Path) -> None:
    runs = written(tmp_path, table([(1, "a", None, 5, 1)]))
    with pytest.raises(Unavailable, match="Too many open files") as caught:
        Arrangement(Exhausted(str(tmp_path)), SCHEMA, runs).probe(np.array([5]))
    assert caught.value.retry
    assert "ulimit" in caught.value.hint
    assert Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs).probe(np.array([5])).num_rows == 1


def test_a_forked_child_can_read_whatever_its_parent_was_doing(tmp_path: Path) -> None:
    runs = written(tmp_path, table([(1, "a", None, 5, 1)]))
    with open_run._cache._lock:
        child = os.fork()
        if not child:
            os._exit(Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs).probe(np.array([5])).num_rows)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_a_run_of_other_columns_is_told(tmp_path: Path) -> None:
    runs = written(tmp_path, table([(1, "a", None, 5, 1)]))
    other = SCHEMA.set(1, pa.field("name", pa.int64()))
    with pytest.raises(Unavailable, match="other columns"):
        Arrangement(LocalStateFiles(str(tmp_path)), other, runs).probe(np.array([5]))


def test_the_last_columns_are_the_hash_and_the_weight(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="_hash and _weight"):
        Arrangement(LocalStateFiles(str(tmp_path)), pa.schema([("a", pa.int64())]), [])


def test_whether_a_column_may_be_null_is_not_the_files_business(tmp_path: Path) -> None:
    strict = pa.schema([field.with_nullable(False) for field in SCHEMA])
    runs = written(tmp_path, table([(1, "a", 1.0, 5, 1)], schema=strict))
    arrangement = Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs)
    assert arrangement.probe(np.array([5])).schema == SCHEMA
    assert next(arrangement.scan()).schema == SCHEMA


def test_many_threads_may_read_one_arrangement(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    tables = [consolidate(changes(random, 500, 300)) for _ in range(6)]
    runs = written(tmp_path, *tables)
    arrangement = Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs)
    hashes = np.array([hash_of(key) for key in range(300)])
    content, wrong = total(*tables), []

    def read() -> None:
        if total(arrangement.probe(hashes)) != content or total(*arrangement.scan(rows=100)) != content:
            wrong.append(threading.get_ident())

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_slice_of_a_scan_has_about_the_rows_asked_for(tmp_path: Path) -> None:
    assert module.SLICE_ROWS == 1 << 20
    runs = written(tmp_path, *(table([(n, "a", None, hash_of(n), 1) for n in range(m, 900, 3)]) for m in range(3)))
    sizes = [one.num_rows for one in Arrangement(LocalStateFiles(str(tmp_path)), SCHEMA, runs).scan(rows=100)]
    assert sizes == [100] * 9


class NotPrefetched(LocalStateFiles):
    """Files of which pages are touched only as they are needed, whoever drives in this process."""

    def open(self, name: str) -> MappedFile:
        return Maps(Prefetch()).get(self.place(name))


def test_a_probe_reads_only_the_pages_it_needs(tmp_path: Path) -> None:
    """Counted by the kernel, which makes pages resident as they are touched, and some (up to 2 MB) around them."""
    rows = 400_000
    wide = pa.table(
        {
            "key": np.arange(rows),
            "name": pa.array(["x" * 100]).take(pa.array(np.zeros(rows, dtype=np.int64))),
            "price": np.zeros(rows),
            HASH: np.arange(rows),
            "_weight": np.ones(rows, dtype=np.int64),
        }
    ).cast(SCHEMA)
    (run,) = written(tmp_path, wide)
    arrangement = Arrangement(NotPrefetched(str(tmp_path)), SCHEMA, [run])
    assert arrangement.probe(np.array([5, 200_000])).column("key").to_pylist() == [5, 200_000]
    smaps = Path("/proc/self/smaps").read_text()
    entry = smaps[smaps.index(str(tmp_path / run.file)) :]
    resident = 1024 * int(entry[entry.index("Rss:") :].split()[1])
    assert resident < run.length / 2
