"""Pages of mapped files are prefetched if they are in memory, and are never read from disk for it."""

from __future__ import annotations

import gc
import mmap
import os
import re
import sys
import weakref
from pathlib import Path

import pytest

from headwater.state.files.local import Maps
from headwater.state.files.mapped import MappedFile
from headwater.state.files.prefetch import _STEP, Prefetch

SIZE = 2 * _STEP + 100
WHOLE = 2 * _STEP + mmap.PAGESIZE
POPULATE_READ = 22


def knows_how() -> bool:
    """Whether this system can prefetch pages."""
    try:
        mmap.mmap(-1, mmap.PAGESIZE).madvise(POPULATE_READ)
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not knows_how(), reason="pages are prefetched by Linux 5.14 and later"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "1-1-1.runs"
    with path.open("wb") as written:
        written.write(os.urandom(SIZE))
        written.flush()
        os.fsync(written.fileno())
    return path


def touched_bytes(path: Path) -> int:
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


def test_all_pages_that_are_in_memory_are_prefetched(file: Path) -> None:
    opened = MappedFile(str(file))
    if is_cold(file, 0):
        pytest.skip("this file system does not keep what was written in memory")
    assert touched_bytes(file) == 0
    Prefetch().make(weakref.ref(opened))
    assert touched_bytes(file) == WHOLE


def test_what_is_not_in_memory_is_not_read(file: Path) -> None:
    opened = MappedFile(str(file))
    with file.open("rb") as cold:
        os.posix_fadvise(cold.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if not all(is_cold(file, place) for place in (_STEP // 2, _STEP + _STEP // 2)):
        pytest.skip("this file system keeps its files in memory")
    Prefetch().make(weakref.ref(opened))
    assert touched_bytes(file) < _STEP


def test_a_file_that_is_opened_is_prefetched_unless_it_is_small(tmp_path: Path) -> None:
    made = Prefetch()
    made._thread = object()  # type: ignore[assignment]  # begun, but slow
    maps = Maps(made)
    for name, size in (("small", 1000), ("large", 2 << 20)):
        (tmp_path / name).write_bytes(bytes(size))
        opened = maps.get(str(tmp_path / name))
        assert maps.get(str(tmp_path / name)) is opened
        assert made._waiting.qsize() == (name == "large")
    reference = made._waiting.get()
    assert reference() is opened
    del opened
    gc.collect()
    assert reference() is None


def test_nothing_is_prefetched_before_it_has_begun_nor_in_a_forked_child(file: Path) -> None:
    made, opened = Prefetch(), MappedFile(str(file))
    made.soon(opened)
    assert made._waiting.empty()
    made.begin()
    assert made._thread is not None
    child = os.fork()
    if not child:
        made.soon(opened)
        os._exit(made._thread is not None or not made._waiting.empty())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
