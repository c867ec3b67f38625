"""The suite as a whole: its areas, which tests work beside which, the seed of the day, unexpected skips.

A run of `make test` has two workers. Tests marked `spark` share one Spark, so they are one worker's; the other
worker has the rest, file by file. Tests marked `own_spark` start Spark in processes of their own and wait for them,
so they belong to the rest. What shares Spark takes longer than the rest, so some areas of it (`BESIDE`) wait for
whoever is done first.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.seed import SEED

TESTS = Path(__file__).parent
EXPECTED_SKIPS: tuple[str, ...] = ()
"""Beginnings of the reasons for which a test may be skipped where CI runs."""
MOVED = {
    "contracts/test_embedded_log.py": "log",
    "contracts/test_liveness.py": "store",
    "contracts/test_one_file_log.py": "log",
    "contracts/test_sqlite_store.py": "store",
    "contracts/test_state_files.py": "state",
}
"""Files that belong to another area than their folder says."""
BESIDE = ("nexmark", "tick", "tpch")
"""Areas that share a Spark among themselves, for the worker that is free first."""
ALLOWANCES = {
    "catalog": 5,
    "change": 30,
    "cli": 170,
    "crash": 350,
    "docs": 50,
    "equivalence": 700,
    "expressions": 105,
    "log": 25,
    "mutants": 5,
    "nexmark": 130,
    "operators": 35,
    "oracle": 20,
    "pipeline": 90,
    "plan": 15,
    "read": 40,
    "schema": 15,
    "spark": 200,
    "state": 30,
    "store": 5,
    "tests": 35,
    "tick": 330,
    "tpch": 260,
}
"""Seconds of one worker that an area may take, together 22 minutes of two. A change that needs more takes it from
another area, or says why.
"""

QUIET = 30
"""Seconds after which a line says how far the run is, though no area has ended."""


def area_of(path: str) -> str:
    """The area of a file below `tests`; files of no folder are the area `tests`."""
    inside = path.split("::", 1)[0].removeprefix("tests/")
    return MOVED.get(inside) or (inside.split("/", 1)[0] if "/" in inside else "tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--area log` runs one area, `--area log,store` two."""
    parser.addoption("--area", default="", help="run these areas only, separated by commas")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is not of the chosen areas is not even imported."""
    chosen = _chosen(config)
    if not chosen or collection_path.is_dir() or not collection_path.is_relative_to(TESTS):
        return None
    return True if area_of(str(collection_path.relative_to(TESTS))) not in chosen else None


def _chosen(config: pytest.Config) -> set[str]:
    given = str(config.getoption("--area"))
    chosen = {each.strip() for each in given.split(",") if each.strip()}
    if unknown := chosen - set(ALLOWANCES):
        msg = f"there is no area {', '.join(sorted(unknown))}; there are {', '.join(ALLOWANCES)}"
        raise pytest.UsageError(msg)
    return chosen


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark's tests first, as one group; of the rest the slow files first, so that none is left at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    for item in items:
        shared = _spark_of(item)
        item.add_marker(pytest.mark.xdist_group(shared or item.nodeid.split("::", 1)[0]))
    places = {"spark": 200, "": 1, "spark beside": 3}
    items.sort(key=lambda item: places[_spark_of(item)] + (not _spark_of(item) and item.path not in slow))


def _spark_of(item: pytest.Item) -> str:
    """Which Spark a test shares with others, if it does."""
    if item.get_closest_marker("spark") is None:
        return ""
    return "spark beside" if area_of(item.nodeid) in BESIDE else "spark"


def pytest_report_header(config: pytest.Config) -> str:
    """What repeats the random cases of this run."""
    return f"seed of the day: SEED={SEED}"


@dataclass
class _Area:
    """What became of an area: seconds by phase, and outcomes."""

    left: int = 0
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    outcomes: Counter[str] = field(default_factory=Counter)

    def line(self, name: str) -> str:
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        phases = ", ".join(f"{phase} {seconds:.0f}" for phase, seconds in self.seconds.items() if seconds >= 0.5)
        over = f"  over its allowance of {ALLOWANCES[name]} s" if self.total > ALLOWANCES.get(name, 0) else ""
        return f"{name:12} {self.total:6.1f} s  {told}  ({phases}){over}"

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class Progress:
    """Prints a line for each area when the last of its tests has ended, and a table at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._areas: dict[str, _Area] = {}
        self._started = self._told = time.monotonic()
        self._done = self._all = 0
        self._skips: list[tuple[str, str]] = []

    def expect(self, nodeids: Iterable[str]) -> None:
        """These tests will run."""
        if not self._areas:
            for nodeid in nodeids:
                self._areas.setdefault(area_of(nodeid), _Area()).left += 1
                self._all += 1

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        self.expect(ids)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No dots: lines for areas say how far the run is, and what failed is named at once."""
        if report.passed:
            return ("passed" if report.when == "call" else "", "", "PASSED")
        if report.failed:
            return ("failed" if report.when == "call" else "error", "", "FAILED")
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = area_of(report.nodeid)
        area = self._areas.setdefault(name, _Area())
        area.seconds[str(report.when)] += report.duration
        if report.when == "call" or report.outcome != "passed":
            area.outcomes[report.outcome] += 1
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self._skips.append((report.nodeid, reason.removeprefix("Skipped: ")))
        if report.failed:
            self._print(f"FAILED {report.nodeid}")
        if report.when == "teardown":
            area.left -= 1
            self._done += 1
            if area.left == 0:
                self._print(area.line(name))
            elif time.monotonic() - self._told > QUIET:
                self._print(f"{self._done} of {self._all} tests")

    def _print(self, line: str) -> None:
        self._told = time.monotonic()
        line = f"{self._told - self._started:6.0f} s  {line}"
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(line)

    def unexpected(self) -> list[tuple[str, str]]:
        """Skips that are not on the list."""
        return [(where, why) for where, why in self._skips if not why.startswith(EXPECTED_SKIPS or ("\0",))]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if os.environ.get("CI") and self.unexpected() and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("areas, in seconds of one worker")
        for name in sorted(self._areas, key=lambda each: -self._areas[each].total):
            terminalreporter.write_line(self._areas[name].line(name))
        for where, why in self.unexpected():
            terminalreporter.write_line(f"skipped: {where}: {why}")
        if os.environ.get("CI") and self.unexpected():
            terminalreporter.write_line("where CI runs, a skip that is not expected is a failure")


def pytest_configure(config: pytest.Config) -> None:
    """Progress is told where the whole run is seen, not by its workers."""
    _chosen(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config), "headwater-progress")
