"""Running a case: declare, change, tick, and hold every view against Spark's own answer after every tick."""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from headwater import Pipeline, ViewRefused
from headwater.testing import ManualClock, assert_same_as_batch
from tests.equivalence.applied import apply, declare
from tests.equivalence.changes import changes_add_up
from tests.fuzz.cases import Case
from tests.fuzz.plain import Analysis, Plain, problem_of
from tests.fuzz.shrink import shrink
from tests.fuzz.written import as_test


class Failed(Exception):
    """A case that went wrong. `names` are the views that differ, if that is what happened."""

    def __init__(self, words: str) -> None:
        self.names = frozenset(re.findall(r"\bview (v\d+) at tick \d+ is not", words))
        super().__init__(words)


@dataclass
class Outcome:
    """What a case came to: the reason for each refusal, and how many views had no row at the end."""

    checked: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    ticks: int = 0
    comparisons: int = 0
    empty: int = 0
    paths: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Verdict:
    """What became of one view that was run alone: an engine's mistake, or a query that is no good as such."""

    number: int
    words: str
    is_mistake: bool
    test: str = ""


def run_case(case: Case, folder: Path) -> Outcome:
    """Run a case; `Failed` if a view differs from batch or anything but a refusal is raised."""
    run = _Run(case, folder)
    try:
        run.play()
    except Exception as error:
        msg = f"seed {case.seed}, {case.path} path, while {run.doing}: {type(error).__name__}: {error}"
        raise Failed(msg) from error
    return run.outcome


class _Run:
    """One run of a case."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        self.outcome = Outcome()
        self.doing = "opening the pipeline"
        self.clock = ManualClock()
        random.seed(case.seed)  # a stream takes its first partition from it
        self.pipeline = Pipeline("fuzz", folder, clock=self.clock)

    def play(self) -> None:
        with self.pipeline:
            if self.case.path == "large":
                self.pipeline._driver().small_rows = 0
            for topic in self.case.topics:
                declare(self.pipeline, topic)
            for number, steps in enumerate(self.case.ticks):
                self._declare_views(number)
                for step in steps:
                    self.doing = f"before tick {number}: {step}"
                    apply(self.pipeline, step)
                self._tick()
            self._changes()

    def _declare_views(self, number: int) -> None:
        last = len(self.case.ticks) - 1
        for view in self.case.views:
            if min(view.since, last) != number:
                continue
            self.doing = f"declaring {view.name}: {view.query.sql()}"
            try:
                self.pipeline.view(view.name, view.query.sql())
            except ViewRefused as refusal:
                self.outcome.refused[view.name] = refusal.what
            else:
                self.outcome.checked.append(view.name)

    def _tick(self) -> None:
        self.doing = f"tick {self.outcome.ticks + 1}"
        self.clock.advance(1)
        tick = self.pipeline.tick()
        if tick is not None:
            self.outcome.ticks += 1
            self.outcome.paths.update(tick.paths.values())
        if self.outcome.ticks and self.outcome.checked:
            self.doing = f"comparing at tick {self.outcome.ticks}"
            self.outcome.comparisons += len(self.outcome.checked)
            assert_same_as_batch(self.pipeline, self.outcome.checked)

    def _changes(self) -> None:
        for name in self.outcome.checked if self.outcome.ticks else []:
            self.doing = f"adding up the changes of {name}"
            changes_add_up(self.pipeline, name, since=max(1, self.outcome.ticks - 1))
            self.outcome.empty += not self.pipeline.read(name).num_rows


class Judge:
    """Finds out which view of a failed case failed, and makes it small."""

    def __init__(self) -> None:
        self._plain = Plain()
        self._analysis = Analysis()

    def verdicts(self, case: Case, failure: Failed, *, seconds: float) -> list[Verdict]:
        """Each view that fails alone; the first mistake is shrunk for so long. Empty: only together they fail."""
        found: list[Verdict] = []
        for view in case.views:
            alone = case.only(view.number)
            words = _words(alone) if not failure.names or view.name in failure.names else ""
            if not words:
                continue
            problem = self._problem(alone)
            if problem:
                found.append(Verdict(view.number, f"{problem}\n    {view.query.sql()}", is_mistake=False))
            else:
                first = not any(verdict.is_mistake for verdict in found)
                small = shrink(alone, self._fails, seconds=seconds) if first else alone
                found.append(Verdict(view.number, words, is_mistake=True, test=as_test(small)))
        return found

    def _problem(self, case: Case) -> str:
        with tempfile.TemporaryDirectory(prefix="headwater-plain-") as folder:
            return problem_of(case, self._plain, Path(folder))

    def _fails(self, case: Case) -> bool:
        """Whether the engine is wrong about a case with one view that is good as such."""
        return self._analysis.takes(case) and bool(_words(case)) and not self._problem(case)


def _words(case: Case) -> str:
    """How a case fails, or nothing."""
    try:
        with tempfile.TemporaryDirectory(prefix="headwater-fuzz-") as folder:
            run_case(case, Path(folder))
    except Failed as failure:
        return str(failure)
    return ""
