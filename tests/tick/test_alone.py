"""What may have ended Java, or takes too much memory, is computed alone, and blamed only for what it did then."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
import pytest

import headwater as hw
from headwater.catalog.relation import Relation
from headwater.errors import Unavailable
from headwater.plan.operators import Node
from headwater.plan.physical import Load, Step
from headwater.tick import attempts
from headwater.tick.attempts import JavaEnds
from headwater.tick.driver import Driver
from headwater.tick.large import Large
from headwater.tick.small import Small
from tests.crash import expected, shop
from tests.crash.hand_engine import HandEngine, drive
from tests.inside import driver_of, given_up, store_of
from tests.tick.moving import move, number_of


def _before_each_view(patched: pytest.MonkeyPatch, call: Callable[[str], None]) -> None:
    """Have this called with the arrangement of a view whenever it is computed, on either path."""
    small, large = Small.run, Large._view

    def run(self: Small, step: Step) -> pa.Table:
        if not isinstance(step, Load):  # once for each view
            call(self._view)
        return small(self, step)

    def view(self: Large, relation: Relation, root: Node) -> None:
        call(self._name)
        large(self, relation, root)

    patched.setattr(Small, "run", run)
    patched.setattr(Large, "_view", view)


def test_one_that_was_given_up_keeps_nobody_waiting_for_memory(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver = driven
    goes_on, alone, waited = threading.Event(), threading.Event(), list[bool]()
    tries = dict.fromkeys((number_of(pipeline, "dear"), number_of(pipeline, "clicked")), 0)
    dear, clicked = tries

    def hungry(view: str) -> None:
        if view not in tries:
            return
        tries[view] += 1
        if tries[view] == 1:
            assert view == dear or alone.wait(60)
            raise MemoryError
        if view == dear:
            alone.set()
            waited.append(goes_on.wait(20))

    driver.view_seconds = 0.2
    move(pipeline, 2)
    with monkeypatch.context() as patched:
        _before_each_view(patched, hungry)
        patched.setattr(driver.engine, "is_waiting", lambda attempt: not attempt.startswith("dear "))
        assert pipeline.tick() is not None
        assert waited == []
        goes_on.set()
    assert tries[clicked] == 2
    with pytest.raises(hw.ViewSuspended, match=r"^dear: .*it was not computed within"):
        pipeline.read("dear", as_of=2)
    assert given_up(driver, dear).ended.wait(60)


class _Java:
    """What may end while a view is computed, and is started again by the next tick."""

    def __init__(self, pipeline: hw.Pipeline, patched: pytest.MonkeyPatch, killers: set[str]) -> None:
        self._pipeline, self._large = pipeline, driver_of(pipeline).small_rows == 0
        self.lost, self.killers, self.ticks = False, killers, 0
        self._patched = patched
        _before_each_view(patched, self._computed)
        patched.setattr(HandEngine, "is_lost", lambda _: self.lost)

    def _computed(self, view: str) -> None:
        if self.lost or view in self.killers:
            self.lost = True
            raise Unavailable("Java ended by SIGKILL")

    def tick(self) -> bool:
        """Whether a tick of a driver that is made anew is committed."""
        self.lost = False
        drive(self._pipeline, large=self._large)
        try:
            return self._pipeline.tick() is not None
        except Unavailable:
            return False


def test_a_view_that_ends_java_time_and_again_is_found_and_suspended(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, _ = driven
    java = _Java(pipeline, monkeypatch, {number_of(pipeline, "revenue")})
    move(pipeline, 2)
    assert [java.tick() for _ in range(3)] == [False, False, True]  # beside others, alone, left out
    with pytest.raises(hw.ViewSuspended, match=r"^revenue: .*Java ended whenever it was computed") as caught:
        pipeline.read("revenue", as_of=2)
    assert "correct the row or the function" in caught.value.hint
    with pytest.raises(hw.ViewSuspended, match="it reads revenue"):
        pipeline.read("total", as_of=2)
    for name in ("dear", "words", "clicked"):
        pipeline.read(name, as_of=2)
    move(pipeline, 3)
    assert java.tick()  # it rests, in whatever process
    java.killers.clear()
    monkeypatch.setattr(attempts, "_REST_OF_JAVA", 0.0)
    move(pipeline, 4)
    assert java.tick()
    assert expected.check(pipeline) == 4
    assert JavaEnds(store_of(pipeline)).suspected == set()


def test_a_java_that_ends_once_blames_nobody(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, _ = driven
    every = {number_of(pipeline, name) for name in shop.VIEWS}
    java = _Java(pipeline, monkeypatch, every)
    move(pipeline, 2)
    assert not java.tick()
    assert JavaEnds(store_of(pipeline)).suspected <= every
    java.killers.clear()
    assert java.tick()
    assert expected.check(pipeline) == 2
    assert JavaEnds(store_of(pipeline)).suspected == set()
