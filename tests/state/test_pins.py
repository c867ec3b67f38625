"""Pins hold versions while their process lives, and not a moment longer."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headwater.lock import Lock
from headwater.state import Pins
from headwater.state import pins as module

CHILD = """
import sys, time
from headwater.state import Pins
pin = Pins(sys.argv[1]).hold(int(sys.argv[2]))
print("held", flush=True)
time.sleep(600)
"""


def test_held_is_what_is_held(tmp_path: Path) -> None:
    pins = Pins(str(tmp_path))
    assert pins.held() == set()
    with pins.hold(7), pins.hold(9) as second, Pins(str(tmp_path)).hold(9):
        assert pins.held() == {7, 9}
        second.move(12)
        assert pins.held() == {7, 9, 12}
    assert os.listdir(tmp_path / "pins") == []
    assert pins.held() == set()


def test_closing_twice_and_moving_afterwards_do_nothing(tmp_path: Path) -> None:
    pin = Pins(str(tmp_path)).hold(7)
    pin.close()
    pin.close()
    pin.move(8)
    assert Pins(str(tmp_path)).held() == set()


def test_a_pin_may_be_closed_by_another_thread(tmp_path: Path) -> None:
    pin = Pins(str(tmp_path)).hold(7)
    thread = threading.Thread(target=pin.close)
    thread.start()
    thread.join()
    assert Pins(str(tmp_path)).held() == set()


def test_a_pin_dies_with_its_process_and_its_file_is_swept(tmp_path: Path) -> None:
    pins = Pins(str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path), "41"], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        assert pins.held() == {41}
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert pins.held() == set()
    assert os.listdir(tmp_path / "pins") == []


def test_a_forked_child_neither_keeps_nor_ends_its_parents_pins(tmp_path: Path) -> None:
    pins = Pins(str(tmp_path))
    pin = pins.hold(7)
    child = os.fork()
    if not child:
        pin.move(8)
        pin.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert pins.held() == {7}
    pin.close()
    assert pins.held() == set()


def test_a_file_not_yet_locked_is_swept_and_its_maker_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making the file and locking it comes someone who asks what is held."""
    pins = Pins(str(tmp_path))
    real = Lock.is_removed
    swept: list[str] = []

    def is_removed(lock: Lock) -> bool:
        if not swept:
            swept.append(lock.path)
            os.unlink(lock.path)
        return real(lock)

    monkeypatch.setattr(Lock, "is_removed", is_removed)
    with pins.hold(7):
        assert pins.held() == {7}
        assert os.listdir(tmp_path / "pins") != [os.path.basename(swept[0])]


def test_a_pin_that_does_not_say_its_tick_yet_is_not_counted_and_not_swept(tmp_path: Path) -> None:
    pins = Pins(str(tmp_path))
    (tmp_path / "pins").mkdir()
    lock = Lock(str(tmp_path / "pins" / "new"))
    with lock:
        assert pins.held() == set()
        assert os.listdir(tmp_path / "pins") == ["new"]
    lock.close()
    assert pins.held() == set()
    assert os.listdir(tmp_path / "pins") == []


def test_a_pin_read_while_it_is_written_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half, whole = f"{19:020d}{9:020d}".encode(), f"{10:020d}{10:020d}".encode()
    reads = [half, half, whole]
    monkeypatch.setattr(module, "open", lambda *_: io.BytesIO(reads.pop(0)), raising=False)
    with Pins(str(tmp_path)).hold(9):
        assert Pins(str(tmp_path)).held() == {10}


def test_while_pins_move_something_is_always_held(tmp_path: Path) -> None:
    pins, stop, seen = Pins(str(tmp_path)), threading.Event(), []

    def watch() -> None:
        while not stop.is_set():
            seen.append(pins.held())

    with pins.hold(0) as pin:
        watcher = threading.Thread(target=watch)
        watcher.start()
        for tick in range(2000):
            pin.move(tick)
        stop.set()
        watcher.join()
    assert seen
    assert all(len(ticks) == 1 for ticks in seen)
