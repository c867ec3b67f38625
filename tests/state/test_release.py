"""Large files are forgotten beside other work: nobody waits while the system gives back what they took."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.state.files import LocalStateFiles
from headwater.state.files.mapped import MappedFile
from headwater.state.files.release import Release

LARGE, SMALL = 16 << 20, 1000


def comes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        os.sched_yield()
    return condition()


def threads_that_release(size: int, *, begun: bool = True) -> list[str]:
    """Which threads do something about three files of a size."""
    release, done = Release(), []
    if begun:
        release.begin(size)
    for _ in range(3):
        release.soon(size, lambda: done.append(threading.current_thread().name))
    assert comes_true(lambda: len(done) == 3)
    return done


def test_what_is_large_is_released_by_another_thread() -> None:
    mine = threading.current_thread().name
    assert threads_that_release(LARGE) == ["headwater-release"] * 3
    assert threads_that_release(SMALL) == [mine] * 3
    assert threads_that_release(LARGE, begun=False) == [mine] * 3


def test_a_forked_child_releases_by_itself() -> None:
    release = Release()
    release.begin(LARGE)
    child = os.fork()
    if not child:
        seen: list[int] = []
        release.soon(LARGE, seen.append, 1)
        os._exit(seen != [1])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def handles_of(name: str) -> int:
    return sum(name in os.path.realpath(each) for each in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_file_that_is_removed_is_gone_at_once_and_let_go_soon(tmp_path: Path, size: int) -> None:
    files = LocalStateFiles(str(tmp_path))
    file = files.create("1-1-released.runs")
    file.write([bytes(size)])
    file.finish()
    opened = files.open("1-1-released.runs")
    files.remove("1-1-released.runs")
    assert not os.listdir(tmp_path)
    assert comes_true(lambda: handles_of("released") == 0)
    assert bytes(opened.read(size - 1, 9)) == b"\0"
    maps = Path("/proc/self/maps")
    assert "released" in maps.read_text()
    del opened
    assert comes_true(lambda: "released" not in maps.read_text())


def test_bytes_of_a_file_keep_it_mapped(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"abc" * LARGE)
    part = MappedFile(str(path)).read(3, 3)
    assert bytes(part) == b"abc"
    assert "kept" in Path("/proc/self/maps").read_text()
