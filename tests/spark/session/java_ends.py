"""A process whose Java ends, is shared and is inherited: `python -m tests.spark.session.java_ends FOLDER`.

Each step raises if something is not as promised; the program prints its name when it is done.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import headwater as hw
from headwater import crashpoint
from headwater.pipeline import reopen
from headwater.spark.session import running
from headwater.spark.session.start import start
from headwater.testing import assert_same_as_batch
from tests.inside import driver_of, engine_of, store_of

RANKED = "SELECT k, id, rank() OVER (PARTITION BY k ORDER BY id) AS place FROM t"
DOUBLED = "SELECT id, doubled(id) AS twice FROM t"


def made(folder: Path, name: str) -> tuple[hw.Pipeline, hw.Table]:
    pipeline = hw.Pipeline(name, folder / name, master="local[1]")
    table = pipeline.table("t", "id BIGINT, k STRING", key="id")
    pipeline.view("ranked", RANKED)
    change(table, 0)
    return pipeline, table


def change(table: hw.Table, number: int) -> None:
    """Insert, update and delete."""
    table.upsert([{"id": number * 10 + each, "k": "a" if each % 2 else None} for each in range(6)])
    table.upsert([{"id": number * 10 + 1, "k": "b"}, {"id": 2, "k": "c"}])
    table.delete([number * 10 + 3])


def java() -> int:
    """The process id of Java."""
    gateway = SparkContext._gateway
    assert gateway is not None
    return int(vars(gateway)["proc"].pid)


def kill() -> None:
    os.kill(java(), signal.SIGKILL)


def kill_and_wait() -> None:
    kill()
    os.waitid(os.P_PID, java(), os.WEXITED | os.WNOWAIT)


def killing(point: str) -> Any:
    """Kill Java when a tick comes to a point."""
    reach = crashpoint.reach

    def reached(name: str) -> None:
        if name == point:
            kill()
        reach(name)

    return mock.patch.object(crashpoint, "reach", reached)


def refused(call: Callable[[], object], *said: str) -> None:
    """That a call says that Java ended, without what py4j said."""
    try:
        call()
    except hw.Unavailable as error:
        text = "".join(traceback.format_exception(error))
        if all(each in str(error) for each in said) and error.retry and "py4j" not in text:
            return
        raise AssertionError(text) from None
    raise AssertionError("it was not refused")


def a_child_leaves_the_parents_spark_alone(pipeline: hw.Pipeline, table: hw.Table) -> None:
    for use in (hw.Pipeline.close, hw.Pipeline.tick):
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            try:
                table.upsert([{"id": 1, "k": "of a child"}])
                use(pipeline)
            except hw.LeaseHeld:
                os._exit(3)
            os._exit(0 if SparkContext._active_spark_context is None else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == (3 if use is hw.Pipeline.tick else 0)
    change(table, 1)
    ticked = pipeline.tick()
    assert ticked is not None
    assert ticked.rows_out["ranked"]
    assert_same_as_batch(pipeline)


def the_first_of_two_stops_nothing(pipeline: hw.Pipeline, table: hw.Table) -> None:
    other, _ = made(Path(pipeline.path).parent, "other")
    other.tick()
    other.close()
    change(table, 2)
    assert pipeline.tick() is not None
    assert_same_as_batch(pipeline)


def an_interrupt_is_one_and_nothing_else(pipeline: hw.Pipeline, table: hw.Table) -> None:
    began = pipeline.path + "/began"

    def waiting(number: int) -> int:
        deadline = time.monotonic() + 60
        Path(began).touch()
        while Path(began).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return 2 * number

    def interrupt() -> None:
        while not Path(began).exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    pipeline.udf("doubled", waiting, "BIGINT")
    pipeline.view("doubled", DOUBLED)
    threading.Thread(target=interrupt, daemon=True).start()
    said = "it was not interrupted"
    try:
        pipeline.tick()
    except KeyboardInterrupt as error:
        said = "".join(traceback.format_exception(error))
    assert said.count("Traceback") == 1, said
    Path(began).unlink()
    pipeline.drop("doubled")
    change(table, 3)
    assert pipeline.tick() is not None
    assert_same_as_batch(pipeline)


def in_the_middle_of_a_tick(pipeline: hw.Pipeline, table: hw.Table) -> None:
    change(table, 4)
    before = store_of(pipeline).last_tick()
    state = set(os.listdir(pipeline.path + "/state"))
    with killing("tick.tables"):
        refused(pipeline.tick, "Spark: Java ended by SIGKILL", "the next tick starts it again")
    assert store_of(pipeline).last_tick() == before
    assert set(os.listdir(pipeline.path + "/state")) <= state
    refused_of_another = hw.Pipeline(pipeline.name, pipeline.path)
    try:
        refused_of_another.tick()
    except hw.LeaseHeld:
        refused_of_another.close()


def when_it_is_told_to_end(pipeline: hw.Pipeline, table: hw.Table) -> None:
    change(table, 9)
    assert pipeline.tick() is not None  # by a Java that runs
    ending, jvm, context = java(), SparkContext._jvm, SparkContext._active_spark_context
    assert jvm is not None
    assert context is not None
    waiting = jvm.org.apache.commons.io.monitor.FileAlterationMonitor(50)  # which does not come to an end
    waiting.start()
    jvm.java.lang.Runtime.getRuntime().addShutdownHook(jvm.java.lang.Thread(waiting))
    os.kill(ending, signal.SIGTERM)
    try:
        deadline = time.monotonic() + 60
        while not running._is_stopped(context):
            assert time.monotonic() < deadline
        change(table, 8)
        refused(pipeline.tick, "Spark: Java is ending", "the next tick starts it again")
        assert pipeline.tick() is not None
        assert_same_as_batch(pipeline)
        assert java() != ending
    finally:
        os.kill(ending, signal.SIGKILL)


def while_workers_run(pipeline: hw.Pipeline, table: hw.Table) -> None:
    driver_of(pipeline)  # Java is started again
    parent = java()

    def doubled(number: int) -> int:
        if os.path.exists(f"/proc/{parent}") and os.path.exists(flag):
            os.unlink(flag)
            os.kill(parent, signal.SIGKILL)
        return 2 * number

    flag = pipeline.path + "/kill"
    Path(flag).touch()
    pipeline.udf("doubled", doubled, "BIGINT")
    pipeline.view("doubled", DOUBLED)
    driver_of(pipeline).small_rows = 0
    refused(pipeline.tick, "Java ended by SIGKILL")
    driver_of(pipeline).small_rows = 0
    pipeline.tick()
    assert_same_as_batch(pipeline)


def time_and_again_by_the_same_view(pipeline: hw.Pipeline, table: hw.Table) -> None:
    def deadly(number: int) -> int:
        if number == 666:
            with open(f"/proc/{os.getppid()}/stat", encoding="ascii") as file:
                os.kill(int(file.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
        return number

    pipeline.udf("deadly", deadly, "BIGINT")
    pipeline.view("deadly", "SELECT id, deadly(id) AS x FROM t")
    pipeline.view("above", "SELECT count(x) AS n FROM deadly")
    change(table, 5)
    assert pipeline.tick() is not None
    table.upsert([{"id": 666, "k": "a"}])
    for _ in range(2):  # beside others, and alone
        refused(pipeline.tick, "Java ended by SIGKILL")
    ticked = pipeline.tick()
    assert ticked is not None
    for name in ("deadly", "above"):
        with pytest.raises(hw.ViewSuspended, match="Java ended whenever it was computed"):
            pipeline.read(name, as_of=ticked.number)
    assert_same_as_batch(pipeline, ["ranked", "doubled"])
    change(table, 6)
    assert pipeline.tick() is not None
    assert_same_as_batch(pipeline, ["ranked", "doubled"])
    pipeline.drop("above")
    pipeline.drop("deadly")
    table.delete([666])
    pipeline.tick()


def while_a_view_is_declared(pipeline: hw.Pipeline, table: hw.Table) -> None:
    analyser = engine_of(pipeline)._analyser
    plan = analyser.plan

    def killed(name: str, sql: str, relation: Any) -> Any:
        kill()
        return plan(name, sql, relation)

    with mock.patch.object(analyser, "plan", killed):
        refused(lambda: pipeline.view("counted", "SELECT k, count(*) AS n FROM t GROUP BY k"), "Java ended")
    assert store_of(pipeline).find("counted") is None
    pipeline.close()  # which releases the lease, though there is nobody to stop
    assert SparkContext._active_spark_context is None


def ending(dies: Callable[[], None]) -> Any:
    """Java ends when it was just found to run."""
    end_of = running._end_of
    asked: list[str] = []

    def found(gateway: Any, *, wait: bool, ask: bool) -> str:
        asked.append(end_of(gateway, wait=wait, ask=ask))
        if len(asked) == 1:
            assert not asked[0]
            dies()
        return asked[-1]

    return mock.patch.object(running, "_end_of", found)


def while_it_is_closed(closed: hw.Pipeline, table: hw.Table) -> None:
    for dies in (kill, kill_and_wait):
        pipeline = reopen(closed.path)
        change(pipeline.table("t", "id BIGINT, k STRING", key="id"), 7)
        assert pipeline.tick() is not None  # nobody holds what the one before gave back
        with warnings.catch_warnings(record=True) as warned, ending(dies):
            warnings.simplefilter("always")
            pipeline.close()
        assert not warned, warned
        assert SparkContext._active_spark_context is None
        assert SparkContext._gateway is None


def the_users_own_is_not_started_again(folder: Path) -> None:
    own = start("own", master="local[1]")
    pipeline, table = made(folder, "guest")
    pipeline.tick()
    kill_and_wait()
    change(table, 1)
    for _ in range(2):
        refused(pipeline.tick, "had started by itself has ended", "Java ended by SIGKILL", "call stop()")
    pipeline.close()
    with reopen(pipeline.path) as again:
        refused(again.tick, "had started by itself has ended")
        try:
            own.stop()
        except OSError:
            pass  # pyspark's own way
        assert again.tick() is not None
        assert_same_as_batch(again)
        SparkSession.builder.getOrCreate().stop()
        change(again.table("t", "id BIGINT, k STRING", key="id"), 2)
        refused(again.tick, "Spark was stopped")
        assert again.tick() is not None
        assert_same_as_batch(again)
    assert SparkContext._active_spark_context is None


def main(folder: Path) -> None:
    the_users_own_is_not_started_again(folder)
    print(the_users_own_is_not_started_again.__name__, flush=True)
    pipeline, table = made(folder, "shop")
    pipeline.tick()
    for step in STEPS:
        step(pipeline, table)
        print(step.__name__, flush=True)


STEPS = (
    a_child_leaves_the_parents_spark_alone,
    the_first_of_two_stops_nothing,
    an_interrupt_is_one_and_nothing_else,
    in_the_middle_of_a_tick,
    when_it_is_told_to_end,
    while_workers_run,
    time_and_again_by_the_same_view,
    while_a_view_is_declared,
    while_it_is_closed,
)

if __name__ == "__main__":
    faulthandler.dump_traceback_later(570, exit=True)
    main(Path(sys.argv[1]))
