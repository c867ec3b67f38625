from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.cli.main import main
from headwater.examples.shop import declare

Done = subprocess.CompletedProcess[str]
Headwater = Callable[..., Done]
COMMAND = [sys.executable, "-m", "headwater.cli.main"]


def click(session: str) -> str:
    """A row for the shop's clicks."""
    return json.dumps({"session": session, "customer_id": 1, "url": "/", "at": "2026-11-15T10:00:00Z"})


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "HEADWATER_PIPELINE"}
    return {**kept, "COLUMNS": "120", **changes}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder in which commands are run."""
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def shell(folder: Path) -> Headwater:
    """Runs the command in a process of its own."""

    def run(*words: str, given: str | bytes = "", **changes: str) -> Done:
        done = subprocess.run(
            [*COMMAND, *words],
            input=given if isinstance(given, bytes) else given.encode(),
            cwd=folder,
            env=environment(**changes),
            capture_output=True,
            timeout=240,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return Done(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def headwater(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Headwater:
    """Runs the command in this process, which is quicker; `shell` where a process makes the difference."""
    monkeypatch.delenv("HEADWATER_PIPELINE", raising=False)
    monkeypatch.chdir(folder)

    def run(*words: str, given: str | bytes = "", **changes: str) -> Done:
        (tmp_path / "stdin").write_bytes(given if isinstance(given, bytes) else given.encode())
        capfd.readouterr()
        with monkeypatch.context() as patch, open(tmp_path / "stdin") as stdin:
            patch.setattr("sys.stdin", stdin)
            for name, value in changes.items():
                patch.setenv(name, value)
            try:
                code = main(words)
            except SystemExit as exit_by_argparse:
                code = int(exit_by_argparse.code or 0)
        return Done(list(words), code, *capfd.readouterr())

    return run


@pytest.fixture
def shop(folder: Path) -> Path:
    """A pipeline with the shop's topics, the only one below ./.headwater."""
    path = folder / ".headwater" / "shop"
    with hw.Pipeline("shop", path) as pipeline:
        declare(pipeline)
    return path


class Started:
    """A command that keeps running; ends with the test."""

    def __init__(self, *words: str, cwd: Path, **changes: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *words],
            cwd=cwd,
            env=environment(**changes),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        """The next line that it prints; waits for it (the test's own time limit is the deadline)."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def give(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()


@pytest.fixture
def started(folder: Path) -> Iterator[Callable[..., Started]]:
    """Starts a command that keeps running."""
    running: list[Started] = []

    def begin(*words: str, **changes: str) -> Started:
        running.append(Started(*words, cwd=folder, **changes))
        return running[-1]

    yield begin
    for one in running:
        one.process.kill()
        one.process.communicate()
