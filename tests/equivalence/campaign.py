"""Running a case: declare, append, tick, and hold every view against Spark's own answer.

A case of the campaign is one view, checked over the whole traffic of its pipeline; several views share a pipeline
because that makes them cheap.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from headwater import Pipeline, ViewRefused
from headwater.testing import ManualClock, assert_same_as_batch
from tests.equivalence.applied import apply, declare
from tests.equivalence.cases import Case, View
from tests.equivalence.changes import changes_add_up

PATHS = ("small", "large")
_MANY_TICKS = 500


class Failed(Exception):
    """A case that went wrong, with what is needed to see it again."""


@dataclass
class Outcome:
    """What a case came to."""

    checked: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    ticks: int = 0
    comparisons: int = 0
    paths: Counter[str] = field(default_factory=Counter)


def run_case(case: Case, path: str, folder: Path) -> Outcome:
    """Run a case on one path; `Failed` if a view differs from batch or anything but a refusal is raised."""
    run = _Run(case, path, folder)
    try:
        run.play()
    except Exception as error:
        raise Failed(run.report(error)) from error
    return run.outcome


class _Run:
    """One run of a case. What is looked at, and when, is drawn from the seed too."""

    def __init__(self, case: Case, path: str, folder: Path) -> None:
        self.case = case
        self.path = path
        self.folder = folder
        self.outcome = Outcome()
        self.doing = "opening the pipeline"
        self.chance = random.Random(case.seed + 1)
        self.clock = ManualClock()

    def play(self) -> None:
        random.seed(self.case.seed)  # a stream takes its first partition from it
        pipeline = self._opened()
        try:
            for topic in self.case.topics:
                declare(pipeline, topic)
            for number, steps in enumerate(self.case.ticks):
                if number == self.case.reopened:
                    pipeline.close()
                    pipeline = self._opened()
                self._declare_views(pipeline, number)
                for step in steps:
                    self.doing = f"before tick {number}: {step}"
                    self.clock.advance(0.5)
                    apply(pipeline, step)
                self._tick(pipeline)
                if self.outcome.ticks and self.chance.random() < 0.3:
                    self._compare(pipeline)
            self._drain(pipeline)
            self._compare(pipeline)
            self._changes(pipeline)
        finally:
            pipeline.close()

    def _opened(self) -> Pipeline:
        pipeline = Pipeline("case", self.folder, timezone=self.case.timezone, clock=self.clock)
        pipeline.max_rows = self.case.max_rows or pipeline.max_rows
        if self.path == "large":
            pipeline._driver().small_rows = 0
        return pipeline

    def _declare_views(self, pipeline: Pipeline, number: int) -> None:
        for view in self.case.views:
            if view.since == number:
                self.doing = f"declaring {view.name}"
                self._declare_view(pipeline, view)

    def _declare_view(self, pipeline: Pipeline, view: View) -> None:
        if view.reads & {*self.outcome.refused, *self.outcome.skipped}:
            self.outcome.skipped.append(view.name)
            return
        try:
            pipeline.view(view.name, view.sql)
        except ViewRefused as refusal:
            self.outcome.refused[view.name] = f"{refusal}\n    {view.sql}"
        else:
            self.outcome.checked.append(view.name)

    def _tick(self, pipeline: Pipeline) -> bool:
        self.doing = f"tick {self.outcome.ticks + 1}"
        self.clock.advance(1)
        tick = pipeline.tick()
        if tick is None:
            return False
        self.outcome.ticks += 1
        self.outcome.paths.update(tick.paths.values())
        return True

    def _drain(self, pipeline: Pipeline) -> None:
        before = self.outcome.ticks
        while self._tick(pipeline):
            assert self.outcome.ticks - before < _MANY_TICKS, "ticks never come to an end"

    def _compare(self, pipeline: Pipeline) -> None:
        self.doing = f"comparing at tick {self.outcome.ticks}"
        self.outcome.comparisons += 1
        assert_same_as_batch(pipeline, self.outcome.checked)

    def _changes(self, pipeline: Pipeline) -> None:
        for name in self.outcome.checked:
            self.doing = f"adding up the changes of {name}"
            changes_add_up(pipeline, name, since=self.chance.randint(1, max(1, self.outcome.ticks)))

    def report(self, error: Exception) -> str:
        """What went wrong and how to see it again."""
        case = self.case
        topics = [f"  {t.kind} {t.name}({t.schema}) key={t.key} partitions={t.partitions}" for t in case.topics]
        views = [f"  {view.name} (from tick {view.since}): {view.sql}" for view in case.views]
        again = f"python -m tests.equivalence.run --cases 1 --seed {case.seed} --path {self.path}"
        return "\n".join(
            [
                f"seed {case.seed}, {self.path} path, time zone {case.timezone}, max_rows {case.max_rows}, "
                f"opened anew before tick {case.reopened}",
                f"while {self.doing}:",
                f"{type(error).__name__}: {error}",
                "topics:",
                *topics,
                "views:",
                *views,
                f"again: {again}",
                f"with one view only: {again} --view NAME",
            ]
        )
