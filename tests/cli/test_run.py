from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import headwater as hw
from headwater.cli import run
from tests.inside import lease_of

from .conftest import Headwater, Started


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("x = 1", 2, "error: program.py: it makes no pipeline\nhint:  the file must make one"),
        (
            "from headwater import Pipeline\na, b = Pipeline('a'), Pipeline('b')",
            2,
            "error: program.py: it makes several pipelines: a, b\nhint:  choose one: headwater run program.py:a\n",
        ),
        ("shop = (", 1, "error: program.py, line 1: '(' was never closed: shop = (\n"),
        ("\nimport headwater\nheadwater.Pipelin", 1, "error: program.py, line 3: AttributeError: "),
        (
            "from headwater import Pipeline\nPipeline('a b')",
            1,
            "error: program.py, line 2: 'a b' is not a name for a pipeline\nhint:  ",
        ),
    ],
)
def test_a_program_that_cannot_be_run_is_told_in_a_line(
    headwater: Headwater, folder: Path, program: str, code: int, said: str
) -> None:
    (folder / "program.py").write_text(program)
    done = headwater("run", "program.py")
    assert done.returncode == code
    assert done.stderr.startswith(said)


def test_the_file_must_exist_and_the_name_be_a_pipeline(headwater: Headwater, folder: Path) -> None:
    assert headwater("run", "nowhere.py").stderr.startswith("error: nowhere.py: there is no such file\nhint:  ")
    (folder / "program.py").write_text("from headwater import Pipeline\nshop = again = Pipeline('shop')\nx = 1")
    done = headwater("run", "program.py:x")
    assert (done.returncode, done.stderr) == (
        2,
        "error: program.py: x is not a pipeline\nhint:  there are: shop, again\n",
    )


def test_whoever_may_not_drive_learns_it_before_spark_starts(headwater: Headwater, folder: Path) -> None:
    (folder / "program.py").write_text("from headwater import Pipeline\nshop = Pipeline('shop')")
    with hw.Pipeline("shop", folder / ".headwater" / "shop") as other:
        lease_of(other).acquire()
        done = headwater("run", "program.py")
    assert done.returncode == 1
    assert "drives this pipeline\nhint:  stop it" in done.stderr


def test_an_interrupt_of_a_tick_ends_with_a_line(
    headwater: Headwater, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    (folder / "program.py").write_text("from headwater import Pipeline\nshop = Pipeline('shop')")
    monkeypatch.setattr(hw.Pipeline, "_spark", lambda _: None)
    monkeypatch.setattr(run, "_drive", interrupted)
    done = headwater("run", "program.py")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "ended; nothing of a tick under way was kept\n"


def test_ticking_beside_a_driver_is_refused_before_spark_starts(pipeline: hw.Pipeline) -> None:
    with hw.Pipeline(pipeline.name, pipeline.path) as other:
        lease_of(other).acquire()
        for drive in (pipeline.tick, pipeline.run):
            with pytest.raises(hw.LeaseHeld, match="drives this pipeline"):
                drive()
    assert pipeline._parts is None


def test_a_lease_is_not_kept_by_who_cannot_start_spark(
    pipeline: hw.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java(_: hw.Pipeline) -> None:
        raise hw.Unavailable("there is no Java")

    monkeypatch.setattr(hw.Pipeline, "_spark", no_java)
    with pytest.raises(hw.Unavailable, match="no Java"):
        pipeline.tick()
    with hw.Pipeline(pipeline.name, pipeline.path) as other:
        assert lease_of(other).acquire() == 2


@pytest.mark.own_spark
def test_the_first_program_runs_until_ctrl_c(
    started: Callable[..., Started], shell: Headwater, folder: Path
) -> None:
    """The whole way of a newcomer: init, run, rows, views, query, explain."""
    shell("init")
    driver = started("run", "shop.py", "--json")
    assert json.loads(driver.line())["rows_out"] == {"revenue": 0}
    shell("produce", "customers", given='{"id": 1, "name": "Ada", "country": "NO"}')
    rows = [{"id": number, "customer_id": 1, "cents": 100} for number in range(3)]
    shell("produce", "orders", given=json.dumps(rows))
    while json.loads(driver.line())["rows_out"]["revenue"] == 0:
        pass
    second = shell("run", "shop.py")
    assert (second.returncode, "drives this pipeline" in second.stderr) == (1, True)
    assert shell("query", "FROM revenue").stdout == "country  orders  cents\nNO            3    300\n"
    (view,) = json.loads(shell("views", "--json").stdout)
    assert (view["name"], view["key"], view["rows"], view["filled"]) == ("revenue", ["country"], 1, True)
    assert "join on customer_id = id" in shell("explain", "revenue").stdout
    driver.process.send_signal(signal.SIGINT)
    _, errors = driver.process.communicate(timeout=60)
    assert driver.process.returncode == 0
    assert errors.splitlines()[-1].startswith("ended after ")
    again = shell("run", "shop.py", "--seconds", "1")
    assert again.returncode == 0
    assert again.stderr.splitlines()[-1] == "ended after 0 ticks"
