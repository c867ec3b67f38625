"""What goes wrong in a task is told by its type: a bug of ours is never taken for a bad row."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.errors import LogDamaged, Unavailable
from headwater.evaluation.errors import EvaluationFailed, OutOfMemory, OwnFault
from headwater.operators.stateless import Fragment
from headwater.spark.evaluator.tasks import TaskFailed, TaskFailures
from headwater.spark.workers.stages import SparkStages
from tests.inside import planning_of

FAILURES = TaskFailures("a mark ")
BUGS: dict[str, Callable[[], BaseException]] = {
    "KeyError": lambda: KeyError("c17"),
    "IndexError": lambda: IndexError("list index out of range"),
    "AssertionError": AssertionError,
    "ZeroDivisionError": lambda: ZeroDivisionError("division by zero"),
    "ValueError of a row": lambda: ValueError("[CAST_INVALID_INPUT] for the row 1"),
    "ArrowInvalid": lambda: pa.ArrowInvalid("Integer value 300 not in range: -128 to 127"),
    "words of ours": lambda: RuntimeError("headwater.evaluation.errors.EvaluationFailed: x, for the row 2"),
    "words of a disk": lambda: RuntimeError("OSError: No space left on device"),
    "of Arrow's files": lambda: OSError("Invalid: a run was not what it said"),
    "said otherwise": lambda: Exception('\udc80\n  File \u2028 "{}'),
}


def came_of(error: BaseException, failures: TaskFailures = FAILURES) -> Any:
    """What a driver makes of what a task raises, of which it gets the text alone."""
    try:
        with failures.told():
            raise error
    except TaskFailed as failed:
        text = "".join(traceback.format_exception(failed)).encode("utf-8", "backslashreplace").decode()
    return FAILURES.found(f"Job aborted due to stage failure: {text}\nDriver stacktrace:")


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_of_ours_is_told_by_its_type_whatever_it_says(bug: str) -> None:
    error = BUGS[bug]()
    found = came_of(error)
    assert isinstance(found, OwnFault)
    assert not isinstance(found, EvaluationFailed)
    assert type(error).__name__ in found.what
    assert "test_failures.py" in found.what
    assert "report" in found.hint


def test_a_row_without_a_value_is_told_by_its_type_and_named() -> None:
    found = came_of(EvaluationFailed("it is six", row='{"a":6}', where="f(a)", hint="correct it"))
    assert type(found) is EvaluationFailed
    assert (found.what, found.row, found.where, found.hint) == ("it is six", '{"a":6}', "f(a)", "correct it")


def test_what_is_the_machines_is_told_by_its_type() -> None:
    assert type(came_of(OSError(errno.ENOSPC, "No space left on device"))) is Unavailable
    assert type(came_of(LogDamaged("a frame is torn", segment="0", byte=7))) is Unavailable
    assert type(came_of(pa.ArrowMemoryError("malloc"))) is OutOfMemory
    assert type(came_of(OutOfMemory("too much"))) is OutOfMemory


def test_an_error_that_is_very_long_is_told_whole_enough() -> None:
    for said in ("x" * 1_000_000, "\x01" * 1_000_000, '"' * 1_000_000):
        assert max(map(len, str(came_of(EvaluationFailed(said, row=said, where=said)).what).splitlines())) <= 1000
    with pytest.raises(TaskFailed) as caught, FAILURES.told():
        raise EvaluationFailed("\x01" * 9999, row="\x01" * 9999)
    assert len(str(caught.value)) < 10_000  # of a line so long the beginning is told


def test_what_has_no_mark_or_another_is_not_of_a_task() -> None:
    assert FAILURES.found("Traceback (most recent call last):\nKeyError: 1") is None
    assert came_of(EvaluationFailed("it is six"), TaskFailures("another ")) is None


def test_what_spark_gives_to_a_task_fails_as_what_it_is() -> None:
    def torn() -> Iterator[int]:
        yield 1
        raise EOFError("nobody sends any more")

    assert list(FAILURES.of_spark([1, 2])) == [1, 2]
    with pytest.raises(EOFError, match="nobody"), FAILURES.told():
        list(FAILURES.of_spark(torn()))


def _bug(number: int) -> int:
    return [1][number]


def _bad_row(number: int) -> int:
    raise EvaluationFailed(f"it is {number}", row="{}")


@pytest.mark.spark
def test_a_stage_tells_a_bug_from_a_row(pipeline: hw.Pipeline) -> None:
    stages = planning_of(pipeline).engine.stages
    assert isinstance(stages, SparkStages)
    with pytest.raises(OwnFault, match=r"IndexError: list index out of range, at test_failures.py:\d+ in _bug"):
        stages.each(_bug, [7])
    with pytest.raises(EvaluationFailed, match="it is 7"):
        stages.each(_bad_row, [7])


def _broken(*_: object) -> pa.Table:
    raise KeyError("a column that is not there")


@pytest.mark.spark
@pytest.mark.slow
def test_a_bug_sets_no_row_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hw.Pipeline("bug", tmp_path / "bug") as pipeline:
        table = pipeline.table("words", "id BIGINT, text STRING", key="id")
        pipeline.view("lengths", "SELECT id, length(text) AS n FROM words", on_error="dead_letter")
        table.upsert([{"id": 1, "text": "a"}])
        with monkeypatch.context() as patched:
            patched.setattr(Fragment, "_computed", _broken)
            pipeline.tick()
        with pytest.raises(hw.ViewSuspended, match="fault of Headwater: KeyError"):
            pipeline.read("lengths")
        table.upsert([{"id": 2, "text": "ab"}])
        pipeline.tick()
        assert sorted(row["n"] for row in pipeline.read("lengths").to_pylist()) == [1, 2]
        assert pipeline.read("lengths__dead_letters").num_rows == 0
