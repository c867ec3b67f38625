"""What tells a Python function from another: what it does, not where it is written, in every process the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.plan.function import Udf
from tests.plan.changed_functions import CHANGED, STEADY

PROGRAM = """
import functools, math, re, sys
sys.path.insert(0, {folder!r})
import helpers
import numpy as np

from headwater.plan.function import Udf
RATES = {{"no": 1, "se": 2, "dk": 3}}
NAMES = {{"a", "b", "c", "d", "e"}}
TABLE = {{}}
class Money:
    rate = 2
    def __init__(self, cents): self.cents = cents
    def twice(self): return self.cents * self.rate
def part(x): return x in {{"x", "y", "z"}} and helpers.twice(x)
TABLE["part"] = part
def outer(by):
    def inner(x, *, less=1):
        return [part(y) for y in (x, by)], RATES, NAMES, TABLE, Money(x).twice(), math.sqrt(x), re.sub("a", "b", x)
    return inner
for each in (outer(3), part, functools.partial(outer(1), less=2), Money(3).twice, math.sqrt, functools.cache(part)):
    print(Udf("f", each, "BIGINT").fingerprint)
"""
RATED = [False, True, False, True, True, True]
MADE = [False, True, False, False, True, True]
"""Which of them stay the same if another rate is in the table, or in the class."""
HELPERS = "{lines}def twice(x):\n    return {value} * x\n"


def print_of(function: Callable[..., Any], **more: Any) -> str:
    return Udf("f", function, "BIGINT", **more).fingerprint


def made_by(factor: int) -> Callable[[int], int]:
    return lambda x: x * factor


def printed(folder: Path, program: str, value: int, lines: int) -> list[str]:
    """The fingerprints of some functions in a process of their own, with its own order of sets."""
    (folder / "helpers.py").write_text(HELPERS.format(lines="# a comment\n" * lines, value=value))
    path = folder / f"program{lines}.py"
    path.write_text("\n" * lines + program.format(folder=str(folder)))
    made = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert not made.returncode, made.stderr
    return made.stdout.split()


def test_it_is_the_same_in_every_process_wherever_it_is_written(tmp_path: Path) -> None:
    first = printed(tmp_path, PROGRAM, 2, 0)
    assert len(set(first)) == 6
    assert printed(tmp_path, PROGRAM, 2, 7) == first


def test_what_it_calls_of_the_users_own_modules_counts(tmp_path: Path) -> None:
    first, second = printed(tmp_path, PROGRAM, 2, 0), printed(tmp_path, PROGRAM, 3, 1)
    same = [one == other for one, other in zip(first, second, strict=True)]
    assert same == [False, False, False, True, True, False]


def test_a_global_value_and_a_method_that_it_uses_count(tmp_path: Path) -> None:
    first = printed(tmp_path, PROGRAM, 2, 0)
    richer = printed(tmp_path, PROGRAM.replace('"se": 2', '"se": 4'), 2, 1)
    assert [one == other for one, other in zip(first, richer, strict=True)] == RATED
    dearer = printed(tmp_path, PROGRAM.replace("rate = 2", "rate = 3"), 2, 2)
    assert [one == other for one, other in zip(first, dearer, strict=True)] == MADE


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The fingerprints of many functions: as they are, in a process that has used them, and changed."""
    found = {}
    for seed, how in enumerate(("same", "used", "changed"), 1):
        run = [sys.executable, "-m", "tests.plan.changed_functions", str(tmp_path_factory.mktemp(how)), how]
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        done = subprocess.run(run, capture_output=True, text=True, check=False, env=environment)
        assert not done.returncode, done.stderr
        found[how] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("what", CHANGED)
def test_what_may_change_counts_wherever_it_is_kept(told: dict[str, dict[str, str]], what: str) -> None:
    assert told["same"][what] != told["changed"][what]


def test_whatever_a_process_did_with_it_before_it_stays_the_same(told: dict[str, dict[str, str]]) -> None:
    assert told["same"] == told["used"]
    assert {each: told["changed"][each] for each in STEADY} == {each: told["same"][each] for each in STEADY}


def test_its_constants_closure_and_defaults_count() -> None:
    assert print_of(lambda x: x + 1) == print_of(lambda x: x + 1)
    assert print_of(lambda x: x + 1) != print_of(lambda x: x + 2)
    assert print_of(lambda x: x + 1) != print_of(lambda x: x - 1)
    assert print_of(lambda x: x + 1) != print_of(lambda x: x + 1.0)
    assert print_of(made_by(2)) == print_of(made_by(2)) != print_of(made_by(3))
    assert print_of(lambda x, y=1: x + y) != print_of(lambda x, y=2: x + y)
    assert print_of(lambda x: [y + 1 for y in x]) != print_of(lambda x: [y + 2 for y in x])


def test_its_kind_and_type_count_and_a_version_stands_for_its_code() -> None:
    assert print_of(len) != print_of(len, kind="pandas")
    assert Udf("f", len, "INT").fingerprint == Udf("f", len, " int ").fingerprint != print_of(len)
    assert print_of(lambda x: x + 1, version="1") == print_of(lambda x: x + 2, version="1")
    assert print_of(lambda x: x + 1, version="1") != print_of(lambda x: x + 1, version="2")


def test_a_module_that_is_no_text_counts_by_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def calling(x: int) -> Any:
        import quick_sums  # type: ignore[import-not-found]  # noqa: PLC0415

        return quick_sums.of(x)

    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / f"quick_sums{EXTENSION_SUFFIXES[0]}"
    found = []
    for content in (b"one", b"one", b"other"):
        path.write_bytes(content)
        found.append(print_of(calling))
    assert found[0] == found[1] != found[2]


def test_what_cannot_be_looked_into_counts_by_its_type(tmp_path: Path) -> None:
    def reading(path: Path) -> Callable[[int], str]:
        path.write_text("x")
        file = path.open()
        return lambda x: file.read(x) or "none"

    assert print_of(reading(tmp_path / "a")) == print_of(reading(tmp_path / "b"))


def test_values_of_libraries_count_by_what_they_are() -> None:
    def holding(value: Any) -> str:
        return print_of(lambda x: value)

    for made, other in (
        (lambda: Decimal("1.5"), Decimal("1.50")),
        (lambda: re.compile("a+"), re.compile("a+", re.IGNORECASE)),
        (lambda: datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)),
        (lambda: np.arange(3000), np.arange(3000) + (np.arange(3000) == 1500)),
        (lambda: deque([1, 2]), deque([2, 1])),
    ):
        assert holding(made()) == holding(made()) != holding(other)
