"""Whatever goes wrong while a view is planned is that view's, as while it is computed."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

import headwater as hw
from headwater.pipeline.planning import Planning
from headwater.pipeline.renewing import Renewing
from headwater.plan.fingerprint import Fingerprint
from headwater.plan.sharing import Split
from headwater.tick.driver import Driver
from tests.crash import expected
from tests.crash.hand_engine import HandEngine, drive
from tests.inside import driver_of
from tests.tick.moving import move

ERRORS = [
    RecursionError("deep"),
    MemoryError("much"),
    OSError("no number"),
    RuntimeError("odd"),
    hw.HeadwaterError("x"),
]


def begun_again(pipeline: hw.Pipeline) -> None:
    """As another process finds the pipeline."""
    drive(pipeline, large=driver_of(pipeline).small_rows == 0)


def stands_still(pipeline: hw.Pipeline, tick: int, error: Exception) -> None:
    ticked = pipeline.tick()
    assert ticked is not None
    assert ticked.number == tick
    with pytest.raises(hw.ViewSuspended, match=r"^dear: .*cannot be planned") as caught:
        pipeline.read("dear", as_of=tick)
    assert str(error) in caught.value.what
    for name in ("revenue", "total", "words", "clicked"):
        pipeline.read(name, as_of=tick)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_plan_that_cannot_be_opened_leaves_the_others_alone(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    pipeline, _ = driven
    real = HandEngine.fingerprints

    def broken(self: HandEngine, split: Split) -> tuple[Fingerprint, dict[str, Fingerprint]]:
        if "text='dear'" in repr(split):
            raise error
        return real(self, split)

    begun_again(pipeline)
    with monkeypatch.context() as patched:
        patched.setattr(HandEngine, "fingerprints", broken)
        for tick in (2, 3):
            move(pipeline, tick)
            stands_still(pipeline, tick, error)
    begun_again(pipeline)
    move(pipeline, 4)
    pipeline.tick()
    assert expected.check(pipeline) == 4


def test_a_view_that_cannot_be_made_anew_leaves_the_others_alone(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, _ = driven
    error = RecursionError("deep")

    def differs(_: Planning, view: Any, catalog: Any, arrangements: Any) -> str:
        return "its plan has become another" if view.name == "dear" else ""

    def broken(_: Renewing, *given: Any) -> Any:
        raise error

    begun_again(pipeline)
    with monkeypatch.context() as patched:
        patched.setattr(Planning, "differs", differs)
        patched.setattr(Renewing, "_again", broken)
        move(pipeline, 2)
        assert pipeline.tick() is not None
        with pytest.raises(hw.ViewSuspended, match=r"^dear: .*RecursionError: deep"):
            pipeline.read("dear", as_of=2)
        for name in ("revenue", "total", "words", "clicked"):
            pipeline.read(name, as_of=2)


def test_a_store_that_fails_is_no_view(driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, _ = driven

    def broken(*_: object) -> Any:
        raise sqlite3.OperationalError("disk I/O error")

    begun_again(pipeline)
    with monkeypatch.context() as patched:
        patched.setattr(HandEngine, "fingerprints", broken)
        move(pipeline, 2)
        with pytest.raises((sqlite3.Error, hw.Unavailable)):
            pipeline.tick()
    pipeline.tick()
    assert expected.check(pipeline) == 2
