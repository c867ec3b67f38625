"""Pages of mapped files are made ready if they are in memory, and are never read from disk for it."""

from __future__ import annotations

import gc
import mmap
import os
import re
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from headwater.files import Files
from headwater.state import Arrangement, RunFile, open_run
from headwater.state.ready import _STEP, Ready
from tests.state.changes import SCHEMA, table

SIZE = 2 * _STEP + 100
WHOLE = 2 * _STEP + mmap.PAGESIZE
POPULATE_READ = 22


def knows_how() -> bool:
    """Whether this system can make pages ready."""
    try:
        mmap.mmap(-1, mmap.PAGESIZE).madvise(POPULATE_READ)
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not knows_how(), reason="pages are made ready by Linux 5.14 and later"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "1-1-1.runs"
    with path.open("wb") as written:
        written.write(os.urandom(SIZE))
        written.flush()
        os.fsync(written.fileno())
    return path


def mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as opened:
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)


def ready_bytes(path: Path) -> int:
    """How much of a file this process can touch without a fault."""
    maps = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text())
    found = [re.search(r"Rss: +(\d+) kB", each) for each in maps if str(path) in each]
    return sum(int(each[1]) << 10 for each in found if each)


def is_cold(path: Path, place: int) -> bool:
    """Whether reading there would wait for the disk."""
    with path.open("rb") as opened:
        try:
            os.preadv(opened.fileno(), [bytearray(1)], place, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
        except OSError:  # this file system cannot tell
            return False
    return False


def test_all_pages_that_are_in_memory_are_made_ready(file: Path) -> None:
    opened = mapped(file)
    if is_cold(file, 0):
        pytest.skip("this file system does not keep what was written in memory")
    assert ready_bytes(file) == 0
    Ready().make(weakref.ref(opened))
    assert ready_bytes(file) == WHOLE


def test_what_is_not_in_memory_is_not_read(file: Path) -> None:
    opened = mapped(file)
    with file.open("rb") as cold:
        os.posix_fadvise(cold.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if not all(is_cold(file, place) for place in (_STEP // 2, _STEP + _STEP // 2)):
        pytest.skip("this file system keeps its files in memory")
    Ready().make(weakref.ref(opened))
    assert ready_bytes(file) < _STEP


def test_a_run_that_is_opened_is_made_ready_unless_it_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Ready()
    monkeypatch.setattr(open_run, "ready", made)
    monkeypatch.setattr(made, "_thread", object())  # begun, but slow
    for name, rows in (("1-1-1.runs", 10), ("1-2-1.runs", 100_000)):
        writer = RunFile(Files(), str(tmp_path), name)
        run = writer.add(table([(n, "a", None, n, 1) for n in range(rows)]))
        writer.finish()
        arrangement = Arrangement(str(tmp_path), SCHEMA, [run])
        assert arrangement.probe(np.array([5])).num_rows == 1
        assert made._waiting.qsize() == (rows > 10)
    reference = made._waiting.get()
    assert reference() is not None
    del arrangement
    with open_run._cache._lock:
        open_run._cache._runs.clear()
    gc.collect()
    assert reference() is None


def test_nothing_is_made_ready_before_it_has_begun_nor_in_a_forked_child(file: Path) -> None:
    made, opened = Ready(), mapped(file)
    made.soon(opened)
    assert made._waiting.empty()
    made.begin()
    assert made._thread is not None
    child = os.fork()
    if not child:
        made.soon(opened)
        os._exit(made._thread is not None or not made._waiting.empty())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
