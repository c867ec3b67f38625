from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from headwater import Unavailable, lock
from headwater.lock import Lock


def interrupted(doing: Callable[[], object], step: int) -> str | None:
    """Do something, with Ctrl-C at the n-th line that it runs in lock.py; where that was, None if it ran fewer."""
    left, place = step, None

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left, place
        if frame.f_code.co_filename != lock.__file__:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                place = frame.f_code.co_name
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        doing()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return place


def is_free(path: str) -> bool:
    """Whether another process would get it: one that has the file open for itself."""
    other = Lock(path)
    try:
        return other.acquire(timeout=0)
    finally:
        other.close()


def is_free_for_threads(tried: Lock) -> bool:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(tries, tried).result(20)


def takes(tried: Lock) -> None:
    with tried:
        pass


def tries(tried: Lock) -> bool:
    got = tried.acquire(timeout=0)
    if got:
        tried.release()
    return got


def test_an_interrupt_at_any_step_leaves_the_lock_free_for_threads_and_processes(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    step, left, places = 1, 0, set()
    while True:
        tried = Lock(path)
        place = interrupted(lambda tried=tried: takes(tried), step)  # type: ignore[misc]
        if place is None:
            break
        if place == "__exit__" and not is_free(path):  # as it began: only `close` helps then
            left += 1
            with pytest.raises(Unavailable, match="interrupted"):
                tried.acquire()
            tried.close()
        places.add(place)
        assert is_free(path), (place, step)
        assert is_free_for_threads(tried), (place, step)
        takes(tried)
        step += 1
    assert left == 1
    assert places >= {"__enter__", "acquire", "_flock", "release", "__exit__"}


def test_an_interrupted_try_for_a_lock_leaves_its_holder_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    held, done = threading.Event(), threading.Event()
    tried = Lock(path)

    def hold() -> None:
        with tried:
            held.set()
            done.wait(20)

    with ThreadPoolExecutor(1) as threads:
        holding = threads.submit(hold)
        assert held.wait(20)
        try:
            step = 1
            while interrupted(lambda: tries(tried), step):
                assert not is_free(path)
                step += 1
            tried.release()
            assert not is_free(path)
        finally:
            done.set()
        holding.result(20)
    assert is_free(path)


def test_an_interrupted_try_for_another_processes_lock_can_be_repeated(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    theirs = Lock(path)
    step = 1
    while True:
        mine = Lock(path)
        with theirs:
            place = interrupted(lambda mine=mine: tries(mine), step)  # type: ignore[misc]
        if place is None:
            break
        assert is_free_for_threads(mine), (place, step)
        step += 1


def test_a_signals_handler_that_asks_for_a_lock_that_its_thread_waits_for_is_refused(tmp_path: Path) -> None:
    """Else it would get the lock in the middle of whatever its thread does with it."""
    path = str(tmp_path / "lock")
    theirs, mine = Lock(path), Lock(path)
    refused: list[bool] = []

    def handle(*_: object) -> None:
        with pytest.raises(Unavailable, match="already"):
            mine.acquire(timeout=0)
        refused.append(is_free(path))
        theirs.close()

    before = signal.signal(signal.SIGALRM, handle)
    try:
        theirs.acquire()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with mine:
            assert refused == [False]
            assert not is_free(path)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert is_free(path)


def test_a_lock_that_was_interrupted_while_it_was_made_is_given_up_quietly() -> None:
    Lock.__new__(Lock).__del__()
