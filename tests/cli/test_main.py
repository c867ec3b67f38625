from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.cli import main as cli
from headwater.cli.where import WrongUsage
from headwater.errors import HeadwaterError, NotReached, SchemaError

from .conftest import COMMAND, Headwater, Started, click


def test_help_names_every_command(shell: Headwater) -> None:
    done = shell("--help")
    assert done.returncode == 0
    for name, command in cli.COMMANDS.items():
        assert name in done.stdout
        assert command.summary in done.stdout


def test_the_version_is_printed(shell: Headwater) -> None:
    done = shell("--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "headwater")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_need_neither_arrow_nor_spark(option: str) -> None:
    program = (
        "import sys\nfrom headwater.cli.main import main\n"
        f"try: main([{option!r}])\nexcept SystemExit: pass\n"
        "heavy = {'pyarrow', 'pyspark', 'numpy', 'pandas'} & set(sys.modules)\nsys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_that_does_not_exist_is_wrong_usage(shell: Headwater) -> None:
    done = shell("topic")
    assert done.returncode == 2
    assert "'topic'" in done.stderr
    assert "topics" in done.stderr


def test_no_command_at_all_is_wrong_usage(shell: Headwater) -> None:
    assert shell().returncode == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (HeadwaterError("it broke"), 1),
        (WrongUsage("not like that"), 2),
        (NotReached("still waiting"), 3),
        (KeyboardInterrupt(), 130),
        (FileNotFoundError(2, "No such file or directory", "rows.json"), 1),
    ],
)
def test_every_kind_of_end_has_its_exit_code(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(_: list[str], *, ours: bool) -> int:
        raise error

    monkeypatch.setattr(cli, "_run", fail)
    monkeypatch.setattr(cli, "_forget_stdout", lambda: None)
    assert cli.main([]) == code


def test_an_error_has_its_hint_on_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: list[str], *, ours: bool) -> int:
        raise SchemaError("'x' is not a BIGINT", row=3, column="cents", where="orders", hint="write a number")

    monkeypatch.setattr(cli, "_run", fail)
    cli.main([])
    assert capsys.readouterr().err == (
        "error: orders, row 3, column cents: 'x' is not a BIGINT\nhint:  write a number\n"
    )
    cli.main(["--json"])
    assert json.loads(capsys.readouterr().err) == {
        "error": "SchemaError",
        "what": "'x' is not a BIGINT",
        "where": "orders",
        "hint": "write a number",
        "retry": False,
        "row": 3,
        "column": "cents",
    }


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_the_command_quietly(shop: Path, shell: Headwater) -> None:
    rows = "".join(click("s" * 200) + "\n" for _ in range(2000))
    assert shell("produce", "clicks", given=rows).returncode == 0
    command = f"{' '.join(COMMAND)} tail clicks --pipeline {shop} | head -n 1 >&2; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "0\n"
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.usefixtures("shop")
@pytest.mark.slow
def test_ctrl_c_ends_a_command_quietly(started: Callable[..., Started]) -> None:
    watching, producing = started("tail", "clicks", "-f"), started("produce", "clicks")
    producing.give(click("s") + "\n")
    watching.line()  # the row is stored, so both are at work
    for one in (watching, producing):
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(timeout=30) == 130
        assert one.process.stderr is not None
        assert one.process.stderr.read() == ""


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("words", [("topics",), ("tail", "clicks"), ("produce", "clicks", os.devnull), ("--help",)])
def test_a_command_without_spark_imports_nothing_that_is_slow_to_import(
    shell: Headwater, words: tuple[str, ...]
) -> None:
    """What half a second does not suffice for; the seconds themselves are `make bench-log`'s."""
    done = shell(*words, PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "headwater" in imported
    assert not imported & {"pyspark", "py4j", "pandas", "duckdb", "polars", "sqlglot"}


@pytest.mark.usefixtures("shop")
def test_a_terminal_that_lacks_a_character_shows_its_escape(shell: Headwater) -> None:
    shell("produce", "clicks", given=click("é").replace("\\u00e9", "é"))
    done = shell("tail", "clicks", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "\\xe9" in done.stdout


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("point", ["bogus", "append.locked:x"])
def test_a_crash_point_that_does_not_exist_is_wrong_usage(shell: Headwater, point: str) -> None:
    done = shell("topics", HEADWATER_CRASH_AT=point)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: HEADWATER_CRASH_AT={point}: there is no such crash point\n")
