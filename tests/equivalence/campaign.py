"""Running a case: declare, change, tick, and hold every view against Spark's own answer.

A case that restarts has each of its ticks in a process of its own, as a program has that is deployed again: Spark
numbers expressions anew, hashes of texts are others, and what is declared comes in another order.
"""

from __future__ import annotations

import multiprocessing
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from headwater import Pipeline, ViewRefused
from headwater.testing import ManualClock, assert_same_as_batch
from tests.equivalence.applied import apply, declare
from tests.equivalence.cases import Case, View, in_any_order
from tests.equivalence.changes import changes_add_up
from tests.inside import driver_of

_MANY_TICKS = 500
_PATIENCE = 300.0


class Failed(Exception):
    """A case that went wrong. `names` are the views that differ, if that is what happened."""

    def __init__(self, words: str) -> None:
        self.names = frozenset(re.findall(r"\bview (v\d+) at tick \d+ is not", words))
        super().__init__(words)


@dataclass
class Outcome:
    """What a case came to so far: the views that are there, the reason for each refusal, and counts."""

    checked: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    ticks: int = 0
    comparisons: int = 0
    processes: int = 1
    empty: int = 0
    paths: Counter[str] = field(default_factory=Counter)

    @property
    def views(self) -> int:
        """How many views were checked."""
        return len({*self.checked, *self.ended})


def run_case(case: Case, folder: Path) -> Outcome:
    """Run a case; `Failed` if a view differs from batch or anything but a refusal is raised."""
    if not case.restarts:
        return _played(case, folder, Outcome(), range(len(case.ticks)))
    outcome = Outcome(processes=0)
    for number in range(len(case.ticks)):
        outcome = _in_another_process(case, folder, outcome, number)
    return outcome


def _played(case: Case, folder: Path, outcome: Outcome, numbers: range) -> Outcome:
    play = _Play(case, folder, outcome)
    try:
        play.ticks(numbers)
    except Exception as error:
        raise Failed(play.report(error)) from error
    finally:
        play.pipeline.close()
    return outcome


# -- processes


def _in_another_process(case: Case, folder: Path, outcome: Outcome, number: int) -> Outcome:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(case, folder, outcome, number, theirs))
    child.start()
    theirs.close()
    try:
        told = ours.recv() if ours.poll(_PATIENCE) else f"tick {number} took more than {_PATIENCE:.0f} s"
    except EOFError:
        child.join()
        told = f"seed {case.seed}, {case.path} path: the process of tick {number} ended with {child.exitcode}"
    finally:
        child.kill()
        child.join()
    if isinstance(told, str):
        raise Failed(told)
    made: Outcome = told
    made.processes += 1
    return made


def _child(case: Case, folder: Path, outcome: Outcome, number: int, told: Connection) -> None:
    """Play one tick and tell the outcome, or in words how it failed."""
    try:
        told.send(_played(case, folder, outcome, range(number, number + 1)))
    except Failed as failure:
        told.send(str(failure))


# -- playing


class _Play:
    """Some ticks of a case. What is looked at, and when, is drawn from the seed too."""

    def __init__(self, case: Case, folder: Path, outcome: Outcome) -> None:
        self.case = case
        self.folder = folder
        self.outcome = outcome
        self.doing = "opening the pipeline"
        self.clock = ManualClock()
        self.clock.advance(1000 * outcome.processes)
        self._last = len(case.ticks) - 1
        self.pipeline = self._opened()

    def _opened(self) -> Pipeline:
        pipeline = Pipeline("case", self.folder, timezone=self.case.timezone, clock=self.clock)
        pipeline.max_rows = self.case.max_rows or pipeline.max_rows
        if self.case.path == "large":
            driver_of(pipeline).small_rows = 0
        return pipeline

    def ticks(self, numbers: range) -> None:
        self.chance = random.Random(f"{self.case.seed}:{numbers.start}")
        random.seed(self.case.seed + numbers.start)  # a stream takes its first partition from it
        topics = list(self.case.topics)
        for topic in self.chance.sample(topics, k=len(topics)) if self.case.restarts else topics:
            declare(self.pipeline, topic)
        for number in numbers:
            if number == self.case.reopened and not self.case.restarts:
                self.pipeline.close()
                self.pipeline = self._opened()
            self._drop_views(number)
            self._declare_views(number)
            self._changed(number)
        if numbers.stop > self._last:
            self._end()

    def _drop_views(self, number: int) -> None:
        for view in self.case.views:
            if view.name in self.outcome.checked and not self._is_there(view, number):
                self.doing = f"dropping {view.name}"
                self.pipeline.drop(view.name)
                self.outcome.checked.remove(view.name)
                self.outcome.ended.append(view.name)

    def _declare_views(self, number: int) -> None:
        there = [view for view in self.case.views if self._is_there(view, number)]
        if self.case.restarts:
            there = in_any_order(self.chance, there)
        else:
            there = [view for view in there if view.name not in self.outcome.checked]
        for view in there:
            self._declare_view(view)

    def _is_there(self, view: View, number: int) -> bool:
        return view.is_there(number) or (number == self._last and view.since > number)

    def _declare_view(self, view: View) -> None:
        if view.reads & {*self.outcome.refused, *self.outcome.skipped}:
            if view.name not in self.outcome.skipped:
                self.outcome.skipped.append(view.name)
            return
        self.doing = f"declaring {view.name}: {view.query.sql()}"
        try:
            self.pipeline.view(view.name, view.query.sql())
        except ViewRefused as refusal:
            self.outcome.refused[view.name] = f"{refusal.what}\n    {view.query.sql()}"
        else:
            if view.name not in self.outcome.checked:
                self.outcome.checked.append(view.name)

    def _changed(self, number: int) -> None:
        for step in self.case.ticks[number]:
            self.doing = f"before tick {number}: {step}"
            self.clock.advance(0.5)
            apply(self.pipeline, step)
        self._tick()
        if self.outcome.ticks and (self.case.grammar == "deep" or self.chance.random() < 0.3 or self.case.restarts):
            self._compare()

    def _tick(self) -> bool:
        self.doing = f"tick {self.outcome.ticks + 1}"
        self.clock.advance(1)
        tick = self.pipeline.tick()
        if tick is None:
            return False
        self.outcome.ticks += 1
        self.outcome.paths.update(tick.paths.values())
        return True

    def _compare(self) -> None:
        self.doing = f"comparing at tick {self.outcome.ticks}"
        self.outcome.comparisons += len(self.outcome.checked)
        if self.outcome.checked:
            assert_same_as_batch(self.pipeline, self.outcome.checked)

    def _end(self) -> None:
        before = self.outcome.ticks
        while self._tick():
            assert self.outcome.ticks - before < _MANY_TICKS, "ticks never come to an end"
        if self.outcome.ticks > before or self.case.grammar == "wide":
            self._compare()
        for name in self.outcome.checked if self.outcome.ticks else []:
            self.doing = f"adding up the changes of {name}"
            changes_add_up(self.pipeline, name, since=self.chance.randint(1, max(1, self.outcome.ticks)))
            self.outcome.empty += not self.pipeline.read(name).num_rows

    def report(self, error: Exception) -> str:
        """What went wrong and how to see it again."""
        case = self.case
        topics = [f"  {t.kind} {t.name}({t.schema}) key={t.key} partitions={t.partitions}" for t in case.topics]
        blamed = [view for view in case.views if f"view {view.name} " in str(error)] or case.views
        views = [f"  {_life(view)}: {view.query.sql()}" for view in blamed]
        again = f"python -m tests.equivalence.run --grammar {case.grammar} --views 1 --ticks {len(case.ticks)}"
        more = " --restarts 1" if case.restarts else ""
        return "\n".join(
            [
                f"{case.grammar}, seed {case.seed}, {case.path} path, time zone {case.timezone}, "
                f"max_rows {case.max_rows}, opened anew before tick {case.reopened}, restarts {case.restarts}",
                f"while {self.doing}:",
                f"{type(error).__name__}: {error}",
                *(["topics:", *topics] if case.grammar == "wide" else []),
                "views:",
                *views,
                f"again: {again} --seed {case.seed} --path {case.path}{more}",
            ]
        )


def _life(view: View) -> str:
    words = f"{view.name} (from tick {view.since}"
    if view.dropped is not None:
        words += f", dropped before {view.dropped}"
    if view.again is not None:
        words += f", again from {view.again}"
    return f"{words})"
