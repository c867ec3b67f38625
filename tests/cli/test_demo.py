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

from .conftest import COMMAND, Headwater, Started, environment

pytestmark = pytest.mark.slow


def test_it_ends_by_itself_with_a_summary_and_leaves_nothing_behind(shell: Headwater, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = shell("demo", "--seconds", "2", TMPDIR=str(temporary))
    assert (done.returncode, done.stderr) == (0, "")
    assert "headwater tail orders -f --pipeline" in done.stdout
    assert next(line.split()[0] for line in done.stdout.splitlines() if " s  customers" in line) == "0.0"
    assert done.stdout.splitlines()[-1].startswith("In 2.")
    assert list(temporary.iterdir()) == []


def test_json_lines_show_topics_that_grow(shell: Headwater) -> None:
    done = shell("demo", "--seconds", "2", "--json")
    *sights, summary = [json.loads(line) for line in done.stdout.splitlines()]
    assert [topic["name"] for topic in sights[0]["topics"]] == ["customers", "products", "orders", "clicks"]
    clicks = [sight["topics"][3]["records"] for sight in sights]
    assert clicks == sorted(clicks)
    assert clicks[-1] > 0
    assert summary["summary"]["records"] > 0


def test_a_folder_that_was_named_is_kept_and_can_be_looked_at(shell: Headwater) -> None:
    assert shell("demo", "--seconds", "1", "--pipeline", "kept").returncode == 0
    topics = json.loads(shell("topics", "--json", "--pipeline", "kept").stdout)
    assert all(topic["records"] for topic in topics)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_with_a_summary(started: Callable[..., Started], ending: signal.Signals) -> None:
    demo = started("demo")
    while "customers" not in demo.line():
        pass
    demo.process.send_signal(ending)
    out, errors = demo.process.communicate(timeout=30)
    assert (demo.process.returncode, errors) == (0, "")
    assert out.splitlines()[-1].startswith("In ")


def test_a_terminal_is_painted_over_in_place_within_its_width(folder: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    environ = {k: v for k, v in environment(TERM="xterm").items() if k not in {"COLUMNS", "LINES"}}
    demo = subprocess.Popen([*COMMAND, "demo", "--seconds", "1"], cwd=folder, env=environ, stdout=theirs)
    os.close(theirs)
    painted = read_until_closed(ours)
    assert demo.wait(timeout=30) == 0
    paintings = painted.split("\x1b[7F")
    assert len(paintings) >= 4
    for painting in paintings[1:-1]:
        lines = [line.removesuffix("\x1b[K") for line in painting.split("\r\n")]
        assert len(lines) == 8
        assert all(len(line) < 60 for line in lines)


def read_until_closed(handle: int) -> str:
    data = b""
    deadline = time.monotonic() + 60
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
