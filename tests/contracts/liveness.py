"""What every liveness must do. A test module subclasses this and says how to open one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from headwater.liveness import Liveness

Open = Callable[[], Liveness]


def held_by_a_child(opened: Open, name: str) -> int:
    """A process that holds a name, and does so when this returns."""
    ready, tell = os.pipe()
    child = os.fork()
    if not child:
        held = opened().hold(name)
        os.write(tell, b"y" if held is not None else b"n")
        signal.pause()
    assert os.read(ready, 1) == b"y"
    os.close(ready)
    os.close(tell)
    return child


def ended(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


class LivenessContract:
    @pytest.fixture
    def opened(self) -> Open:
        """A function that opens the same anew, as another process would."""
        raise NotImplementedError

    def test_a_name_is_held_by_one(self, opened: Open) -> None:
        assert not opened().is_alive("driver")
        held = opened().hold("driver")
        assert held is not None
        assert opened().is_alive("driver")
        assert opened().hold("driver") is None
        assert not opened().is_alive("other")
        assert opened().hold("other") is not None

    def test_a_name_that_was_given_back_is_free_at_once(self, opened: Open) -> None:
        held = opened().hold("driver")
        assert held is not None
        held.release()
        held.release()
        assert not opened().is_alive("driver")
        assert opened().hold("driver") is not None

    def test_the_dead_hold_nothing(self, opened: Open) -> None:
        child = held_by_a_child(opened, "driver")
        assert opened().is_alive("driver")
        assert opened().hold("driver") is None
        assert opened().who("driver") in {child, None}
        ended(child)
        assert not opened().is_alive("driver")
        assert opened().hold("driver") is not None

    def test_a_process_that_is_stopped_is_alive(self, opened: Open) -> None:
        child = held_by_a_child(opened, "driver")
        try:
            os.kill(child, signal.SIGSTOP)
            assert opened().is_alive("driver")
            assert opened().hold("driver") is None
        finally:
            ended(child)

    def test_a_forked_child_does_not_hold_what_its_parent_does(self, opened: Open) -> None:
        held = opened().hold("driver")
        assert held is not None
        child = held_by_a_child(opened, "other")  # which would keep the parent's too
        held.release()
        try:
            assert not opened().is_alive("driver")
        finally:
            ended(child)

    def test_what_is_held_is_not_forgotten(self, opened: Open) -> None:
        held = opened().hold("driver")
        assert held is not None
        opened().forget("driver")
        assert opened().is_alive("driver")
        held.release()
        for _ in range(2):
            opened().forget("driver")
            assert not opened().is_alive("driver")
        assert opened().hold("driver") is not None

    def test_nobody_holds_what_was_never_held(self, opened: Open) -> None:
        assert opened().who("driver") is None
