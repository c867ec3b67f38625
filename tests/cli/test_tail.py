from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Headwater, Started, click

COLUMNS = ["_op", "_partition", "_offset", "_received_at", "session", "customer_id", "url", "at"]


@pytest.fixture(autouse=True)
def ten_clicks(shop: Path, headwater: Headwater) -> None:
    given = "".join(click(f"s{n}") + "\n" for n in range(10))
    assert headwater("produce", "clicks", "--batch", "4", given=given).returncode == 0


def sessions(text: str) -> list[str]:
    return [json.loads(line)["session"] for line in text.splitlines()]


def test_everything_is_shown_below_one_heading(headwater: Headwater) -> None:
    done = headwater("tail", "clicks")
    heading, *lines = done.stdout.splitlines()
    assert heading.split() == COLUMNS
    assert [line.split()[0] for line in lines] == ["append"] * 10
    assert {line.index("s") for line in (heading, *lines) if "  s" in line} != set()


def test_json_lines_have_the_columns_of_the_log(headwater: Headwater) -> None:
    done = headwater("tail", "clicks", "--json")
    assert [list(json.loads(line)) for line in done.stdout.splitlines()] == [COLUMNS] * 10
    assert sessions(done.stdout) == [f"s{n}" for n in range(10)]


@pytest.mark.parametrize(("number", "first"), [(0, 10), (1, 9), (5, 5), (50, 0)])
def test_the_last_rows_only(headwater: Headwater, number: int, first: int) -> None:
    done = headwater("tail", "clicks", "-n", str(number), "--json")
    assert sessions(done.stdout) == [f"s{n}" for n in range(first, 10)]


def test_only_what_came_after_a_position(headwater: Headwater) -> None:
    done = headwater("tail", "clicks", "--since", "clicks@0:7", "--json")
    assert sessions(done.stdout) == ["s7", "s8", "s9"]


@pytest.mark.parametrize("position", ["7", "orders@0:7", "clicks@x"])
def test_a_position_that_is_none_is_wrong_usage(headwater: Headwater, position: str) -> None:
    done = headwater("tail", "clicks", "--since", position)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: --since: {position!r} ")
    assert "@0:42" in done.stderr


@pytest.mark.slow
def test_following_begins_where_it_was_asked_to_and_ends_with_ctrl_c(
    headwater: Headwater, started: Callable[..., Started]
) -> None:
    watching = started("tail", "clicks", "-f", "-n", "1", "--json")
    assert sessions(watching.line()) == ["s9"]
    headwater("produce", "clicks", given=click("later"))
    assert sessions(watching.line()) == ["later"]
    watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait(timeout=30) == 130
    assert watching.process.communicate() == ("", "")


def test_a_negative_number_of_rows_is_wrong_usage(headwater: Headwater) -> None:
    done = headwater("tail", "clicks", "-n", "x")
    assert done.returncode == 2
    assert "'x' is not a whole number of at least 0" in done.stderr
