"""Whatever goes wrong while a view is computed is that view's; what is the pipeline's own stops the tick."""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.change import HASH, WEIGHT, pairs
from headwater.change.gather import gather
from headwater.errors import Fenced, LogDamaged, Unavailable
from headwater.memory import TooLarge, all_fitting, allowing, shown
from headwater.operators.join import Side, join
from headwater.state.arrangement import Arrangement
from headwater.state.files import LocalStateFiles
from headwater.state.run_file import RunFile
from headwater.tick.driver import Driver
from headwater.tick.faults import is_the_pipelines, told
from tests.crash import expected
from tests.crash.hand_engine import HandEngine
from tests.inside import attempts_of, given_up, store_of
from tests.tick.bad_views import FAULTS, Way, _faulty
from tests.tick.moving import move, number_of


def test_a_fault_of_ours_suspends_the_view_by_name_and_nothing_else(driven: tuple[hw.Pipeline, Driver]) -> None:
    pipeline, _ = driven
    number = 1
    for place, fault in enumerate(FAULTS):
        late = place % 2 == 0
        before, number = pipeline.read("revenue"), number + 1
        move(pipeline, number)
        with _faulty({number_of(pipeline, "revenue"): Way(fault, "", fault=fault, late=late)}):
            assert pipeline.tick() is not None
            assert pipeline.read("revenue").equals(before), fault
            with pytest.raises(hw.ViewSuspended, match=r"^revenue: the view is suspended") as caught:
                pipeline.read("revenue", as_of=number)
            with pytest.raises(hw.ViewSuspended, match="it reads revenue"):
                pipeline.read("total", as_of=number)
            for name in ("dear", "words", "clicked"):
                pipeline.read(name, as_of=number)
            if fault not in {"MemoryError", "HeadwaterError"}:
                assert f"this is a fault of Headwater: {fault}" in caught.value.what
                assert "please report it" in caught.value.hint
        number += 1
        move(pipeline, number)
        pipeline.tick()
        assert expected.check(pipeline) == number, fault


class Gone(Exception):
    """What a test looks for."""


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        sqlite3.OperationalError("disk I/O error"),
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        Unavailable("a file of the state is missing"),
        LogDamaged("a frame is damaged", segment="0.seg", byte=3),
        Fenced("replaced"),
        KeyboardInterrupt(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_the_pipelines_own_stops_the_tick(
    driven: tuple[hw.Pipeline, Driver], error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver = driven
    assert is_the_pipelines(error)

    def broken(*_: object) -> None:
        raise error

    move(pipeline, 2)
    with monkeypatch.context() as patched:
        patched.setattr(driver.engine, "evaluate", broken)
        with pytest.raises((type(error), Unavailable)):
            pipeline.tick()
    assert store_of(pipeline).last_tick().number == 1  # type: ignore[union-attr]
    pipeline.tick()
    assert expected.check(pipeline) == 2


def test_a_view_that_does_not_come_to_an_end_is_given_up_and_changes_nothing_later(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver = driven
    engine, goes_on = driver.engine, threading.Event()
    assert isinstance(engine, HandEngine)
    real, stopped = engine.evaluate, list[str]()

    def hanging(computing: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
        assert goes_on.wait(60)
        return real(computing, table)

    driver.view_seconds = 0.2
    move(pipeline, 2)
    with monkeypatch.context() as patched:
        patched.setattr(engine, "evaluate", hanging)
        patched.setattr(engine, "stop", stopped.append)
        patched.setattr(engine, "is_waiting", lambda attempt: not attempt.startswith("dear "))
        assert pipeline.tick() is not None
        with pytest.raises(hw.ViewSuspended, match=r"^dear: .*it was not computed within"):
            pipeline.read("dear", as_of=2)
        assert [name.split()[0] for name in stopped] == ["dear"]
        move(pipeline, 3)
        assert pipeline.tick() is not None  # it is not tried again while it hangs
        assert len(stopped) == 1
        goes_on.set()
    driver.view_seconds = 600
    ended = given_up(driver, number_of(pipeline, "dear")).ended
    assert ended.wait(60)
    assert pipeline.read("dear").num_rows == 1
    attempts_of(driver).forget()
    move(pipeline, 4)
    pipeline.tick()
    assert expected.check(pipeline) == 4


def test_what_is_given_up_adds_nothing_to_the_tick_when_it_goes_on(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver = driven
    engine, goes_on = driver.engine, threading.Event()
    real = engine.evaluate

    def hanging(computing: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
        assert goes_on.wait(60)
        return real(computing, table)

    def stop(_: str) -> None:
        goes_on.set()
        assert given_up(driver, number_of(pipeline, "dear")).ended.wait(60)

    driver.view_seconds = 0.2
    move(pipeline, 2)
    with monkeypatch.context() as patched:
        patched.setattr(engine, "evaluate", hanging)
        patched.setattr(engine, "stop", stop)
        patched.setattr(engine, "is_waiting", lambda attempt: not attempt.startswith("dear "))
        assert pipeline.tick() is not None
    assert pipeline.read("dear").num_rows == 1
    kept = [store_of(pipeline).arrangements(tick)[number_of(pipeline, "dear")] for tick in (1, 2)]
    assert kept[0] == kept[1]
    driver.view_seconds = 600
    attempts_of(driver).forget()
    move(pipeline, 3)
    pipeline.tick()
    assert expected.check(pipeline) == 3


def test_an_interrupt_gives_up_what_is_still_computed(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver = driven
    goes_on, real, stopped = threading.Event(), driver.engine.evaluate, list[str]()

    def interrupted(_: str) -> bool:
        raise KeyboardInterrupt

    def hanging(computing: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
        assert goes_on.wait(60)
        return real(computing, table)

    driver.view_seconds = 0.2
    move(pipeline, 2)
    with monkeypatch.context() as patched:
        patched.setattr(driver.engine, "evaluate", hanging)
        patched.setattr(driver.engine, "is_waiting", interrupted)
        patched.setattr(driver.engine, "stop", stopped.append)
        with pytest.raises(KeyboardInterrupt):
            pipeline.tick()
        assert stopped
    driver.view_seconds = 600
    pipeline.tick()
    goes_on.set()
    assert expected.check(pipeline) == 2
    move(pipeline, 3)
    pipeline.tick()
    assert expected.check(pipeline) == 3


def test_a_view_is_not_given_up_while_it_only_waits_for_others(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver = driven
    asked, real = threading.Event(), driver.engine.evaluate

    def waiting(_: str) -> bool:
        asked.set()
        return True

    def slow(computing: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
        assert asked.wait(60)
        return real(computing, table)

    driver.view_seconds = 0.2
    move(pipeline, 2)
    monkeypatch.setattr(driver.engine, "is_waiting", waiting)
    monkeypatch.setattr(driver.engine, "evaluate", slow)
    pipeline.tick()
    assert expected.check(pipeline) == 2


def sides(count: int) -> tuple[Side, Side]:
    schema = pa.schema([("a", pa.int64()), (HASH, pa.int64()), (WEIGHT, pa.int64())])
    other = pa.schema([("b", pa.int64()), (HASH, pa.int64()), (WEIGHT, pa.int64())])
    rows = [[*range(count)], [42] * count, [1] * count]
    left, right = (pa.table(rows, schema=each) for each in (schema, other))
    return Side(left, Arrangement(LocalStateFiles(""), schema, ()), ()), Side(
        right, Arrangement(LocalStateFiles(""), other, ()), ()
    )


def test_pairs_that_do_not_fit_into_memory_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "BLOCK_BYTES", 1 << 20)
    output = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    left, right = sides(400)
    alike = (left._replace(key=("a",)), right._replace(key=("b",)))
    for each in ((left, right), alike):
        (made, none), _ = join(*each, output)
        with allowing(1 << 20), pytest.raises(TooLarge, match="160,000 pairs of 400 and 400 rows would take 10 MB"):
            made.table()
        assert none.table().num_rows == 0
    blocks = [block.table() for part in join(*sides(400), output)[0] for block in part]
    assert sum(block.num_rows for block in blocks) == 160_000
    assert max(block.nbytes for block in blocks) < 1 << 20
    with pytest.raises(TooLarge, match="what passes would take"), allowing(1 << 20):
        all_fitting((block.table() for part in join(*sides(400), output)[0] for block in part), "what passes")
    assert [shown(each) for each in (999, 1500, 283e9, 12e15)] == ["999 bytes", "1.5 kB", "283 GB", "12 PB"]


def test_a_run_that_was_not_finished_leaves_nothing_between_others(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), (HASH, pa.int64()), (WEIGHT, pa.int64())])
    table = pa.table([[1, 2], [3, 4], [1, 1]], schema=schema)
    file = RunFile(LocalStateFiles(str(tmp_path)), "a.runs", packs=False)

    def broken() -> Iterator[pa.Table]:
        yield gather(table, pa.array([0, 1]).to_numpy())
        yield table.rename_columns(["other", HASH, WEIGHT])
        raise Gone

    first = file.add(table)
    with pytest.raises((Gone, KeyError, pa.ArrowInvalid)):
        file.add_sorted(broken())
    second = file.add(table)
    file.finish()
    assert second.offset == 64 * -(-(first.offset + first.length) // 64)
    for run in (first, second):
        found = list(Arrangement(LocalStateFiles(str(tmp_path)), schema, [run]).scan())
        assert found[0].to_pylist() == table.to_pylist()


def test_a_fault_says_its_class_and_where_it_is() -> None:
    try:
        gather(None, None)  # type: ignore[arg-type]
    except AttributeError as error:
        said = told(error)
    assert said["what"].startswith("this is a fault of Headwater: AttributeError: ")
    assert ", at change/gather.py:" in said["what"]
    assert said["what"].endswith(" in gather")
