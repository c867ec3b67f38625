"""Pages of mapped files are made ready if they are in memory, and are never read from disk for it."""

from __future__ import annotations

import mmap
import os
import re
import sys
import weakref
from pathlib import Path

import pytest

from headwater.state import ready

SIZE = 20 << 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are made ready on Linux only")


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


def test_all_pages_that_are_in_memory_are_made_ready(file: Path) -> None:
    opened = mapped(file)
    assert ready_bytes(file) == 0
    ready._make_ready(weakref.ref(opened))
    assert ready_bytes(file) == SIZE


def test_what_is_not_in_memory_is_not_read(file: Path) -> None:
    opened = mapped(file)
    with file.open("rb") as cold:
        os.posix_fadvise(cold.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if ready._in_memory(opened, 0, SIZE):
        pytest.skip("this file system keeps its files in memory")
    ready._make_ready(weakref.ref(opened))
    assert ready_bytes(file) == 0


def test_a_file_that_nobody_has_mapped_any_more_is_left(file: Path) -> None:
    opened = mapped(file)
    reference = weakref.ref(opened)
    del opened
    ready._make_ready(reference)
    assert ready_bytes(file) == 0


def test_a_forked_child_makes_nothing_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "_pool", None)
    ready.keep_ready()
    assert ready._pool is not None
    child = os.fork()
    if not child:
        os._exit(ready._pool is not None)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    ready._pool.shutdown()
