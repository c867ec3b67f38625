from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import headwater as hw
from headwater.cli import demo as command
from headwater.examples.shop import VIEWS

from .conftest import COMMAND, Headwater, Started, environment


@pytest.mark.own_spark
def test_it_ends_by_itself_with_views_that_equal_batch_and_leaves_nothing_behind(
    shell: Headwater, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = shell("demo", "--seconds", "1", "--verify", TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "headwater query 'FROM revenue' --pipeline" in lines[1]
    first = next(line for line in lines if " s  customers" in line)
    assert (first.split()[0], first.endswith("starting Spark, which takes some seconds …")) == ("0.0", True)
    for view in VIEWS:
        assert any(line.startswith(f"{view.name} (") for line in lines)
    assert lines[-1].startswith("Every view equals a batch query over the same ")
    assert [path.name for path in temporary.iterdir() if path.name.startswith("headwater-demo")] == []


@pytest.mark.own_spark
def test_json_lines_show_views_that_follow_topics_and_a_named_folder_is_kept(shell: Headwater) -> None:
    done = shell("demo", "--seconds", "1", "--json", "--pipeline", "kept")
    *scenes, summary = [json.loads(line) for line in done.stdout.splitlines()]
    assert [topic["name"] for topic in scenes[0]["topics"]] == ["customers", "products", "orders", "clicks"]
    clicks = [scene["topics"][3]["records"] for scene in scenes]
    assert (clicks == sorted(clicks), clicks[-1] > 0) == (True, True)
    assert [view["name"] for view in scenes[-1]["views"]] == [view.name for view in VIEWS]
    assert (summary["summary"]["ticks"] >= 2, summary["summary"]["same_as_batch"]) == (True, None)
    records = sum(topic["records"] for topic in json.loads(shell("topics", "--json", "--pipeline", "kept").stdout))
    assert records == summary["summary"]["records"]
    counted = shell("query", "SELECT count(*) AS n FROM clicks", "--json", "--pipeline", "kept").stdout
    assert json.loads(counted)["n"] >= clicks[-1]


@pytest.mark.own_spark
def test_ctrl_c_ends_it_with_a_summary_also_while_spark_starts(started: Callable[..., Started]) -> None:
    demo = started("demo", "--verify")
    while "customers" not in demo.line():
        pass
    demo.process.send_signal(signal.SIGTERM)
    out, _ = demo.process.communicate(timeout=120)
    assert demo.process.returncode == 0
    assert out.splitlines()[-1].startswith("In ")


@pytest.mark.own_spark
def test_a_terminal_is_painted_over_in_place_within_its_size(folder: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    environ = {k: v for k, v in environment(TERM="xterm").items() if k not in {"COLUMNS", "LINES"}}
    demo = subprocess.Popen([*COMMAND, "demo", "--seconds", "1"], cwd=folder, env=environ, stdout=theirs)
    os.close(theirs)
    painted = read_until_closed(ours)
    assert demo.wait(timeout=30) == 0
    paintings = painted.partition("\n\r\n")[2].partition("\r\n\r\n")[0].split("\x1b[K\r\n")
    assert all(len(line.rpartition("F")[2]) < 60 for line in paintings)
    assert any(line.startswith("revenue (") for line in paintings)
    heights = [int(part[: part.index("F")]) for part in painted.split("\x1b[")[1:] if part.split("F")[0].isdigit()]
    assert len(heights) >= 4
    assert max(heights) < 24


def test_a_view_that_differs_from_batch_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def differs(_: hw.Pipeline) -> None:
        raise AssertionError("revenue: missing {'country': 'NO'}")

    monkeypatch.setattr("headwater.oracle.oracle.same_as_batch", differs)
    with hw.Pipeline("demo", tmp_path / "demo") as pipeline:
        assert command._compare(pipeline) == "revenue: missing {'country': 'NO'}"


def read_until_closed(handle: int) -> str:
    data = b""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if select.select([handle], [], [], 1)[0]:
            try:
                more = os.read(handle, 65536)
            except OSError:
                break
            if not more:
                break
            data += more
    os.close(handle)
    return data.decode()
