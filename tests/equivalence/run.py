"""The campaign: random views over random traffic, each held against Spark's own answer.

    python -m tests.equivalence.run --grammar deep --views 1000 --ticks 4 --restarts 0.1 --seed 1 --path both

About ten views share a pipeline; the next pipeline has the next seed. That share of the pipelines `--restarts`:
each tick is in a process of its own, which declares views in another order. A deep view that fails is run alone,
made small and printed as a test. The campaign ends with code 1 at the first difference (with `--keep-going` after
all of them), or if too many views are refused. `--plain` asks only Spark: whether it takes deep queries, and gives
one answer to each.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from headwater.spark.session.start import start
from tests.equivalence.campaign import Failed, Outcome, run_case
from tests.equivalence.cases import PATHS, Case
from tests.equivalence.deep.case import deep_case
from tests.equivalence.deep.features import counted
from tests.equivalence.judge import Judge
from tests.equivalence.plain import Plain, tables_of
from tests.equivalence.wide import wide_case
from tests.seed import SEED

_EVERY = 10.0
MOST_REFUSED = 0.02
"""The share of views that may be refused: so many name something that cannot be maintained."""


def main() -> int:
    """Run what the command line says."""
    options = _options()
    logging.disable(logging.CRITICAL)  # pyspark writes down every refusal
    start("equivalence", master="local[2]")
    tally = _Tally(options.views)
    for case in _cases(options):
        if tally.made >= options.views or tally.seconds > 60 * options.minutes:
            break
        if options.plain:
            _ask_spark(case, tally)
        else:
            _run(case, tally, options.shrink_seconds)
        if tally.failed and not options.keep_going:
            break
    tally.summary()
    return 1 if tally.failed or tally.too_many_refused else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.equivalence.run", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--grammar", choices=["deep", "wide"], default="deep")
    parser.add_argument("--views", type=int, default=200, help="how many views to check")
    parser.add_argument("--ticks", type=int, default=4, help="ticks of each deep pipeline")
    parser.add_argument("--seed", type=int, default=SEED, help="the first pipeline's seed; the next has the next")
    parser.add_argument("--only", help="only this view of each pipeline, and what it reads")
    parser.add_argument("--path", choices=[*PATHS, "both"], default="both")
    parser.add_argument("--restarts", type=float, default=0.0, help="the share of pipelines that restart")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--shrink-seconds", type=float, default=120.0, help="how long to make a failure smaller")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    parser.add_argument("--plain", action="store_true", help="without Headwater: are the queries good as such?")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    return options


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    """The seeds from the first on; with both paths, they take turns."""
    seed = options.seed
    while True:
        path = PATHS[seed % 2] if options.path == "both" else options.path
        restarts = random.Random(f"{seed}:restarts").random() < options.restarts
        case = deep_case(seed, path, ticks=options.ticks) if options.grammar == "deep" else wide_case(seed, path)
        case = replace(case, restarts=restarts).with_lives()
        yield case if options.only is None else case.only(options.only)
        seed += 1


def _run(case: Case, tally: _Tally, seconds: float) -> None:
    try:
        with tempfile.TemporaryDirectory(prefix="headwater-case-") as folder:
            tally.add(case, run_case(case, Path(folder)))
    except Failed as failure:
        print(f"\nFAILED: {failure}\n", flush=True)
        tally.add(case, Outcome())
        verdicts = Judge().verdicts(case, failure, seconds=seconds) if case.grammar == "deep" else []
        if not verdicts:
            tally.failed.append(f"{case.seed} {case.path}")
        for verdict in verdicts:
            place = f"{case.seed} {verdict.name} {case.path}"
            if not verdict.is_mistake:
                tally.bad.append(place)
                print(f"no good as such: {place}: {verdict.words}\n", flush=True)
                continue
            tally.failed.append(place)
            print(f"{verdict.words} --only {verdict.name}\n\n{verdict.test}\n", flush=True)


def _ask_spark(case: Case, tally: _Tally) -> None:
    plain = Plain()
    with tempfile.TemporaryDirectory(prefix="headwater-plain-") as folder:
        *_, tables = tables_of(case, Path(folder))
    plain.hold(tables)
    outcome = Outcome()
    for view in case.views:
        problem = plain.problem(view.query.sql())
        if problem:
            tally.bad.append(f"{case.seed} {view.name}")
            print(f"{case.seed} {view.name}: {problem}\n    {view.query.sql()}", flush=True)
        else:
            outcome.checked.append(view.name)
    tally.add(case, outcome)


class _Tally:
    """What the campaign came to so far."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.outcome = Outcome(processes=0)
        self.checked = self.pipelines = self.restarting = 0
        self.texts: list[str] = []
        self.refused: list[str] = []
        self.failed: list[str] = []
        self.bad: list[str] = []
        self._started = self._spoke = time.monotonic()

    @property
    def made(self) -> int:
        return len(self.texts)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def too_many_refused(self) -> bool:
        """Whether more than the share that may be, and more than one."""
        return len(self.refused) > max(1, MOST_REFUSED * self.made)

    def add(self, case: Case, outcome: Outcome) -> None:
        self.pipelines += 1
        self.restarting += case.restarts
        self.texts += [view.query.sql() for view in case.views]
        self.checked += outcome.views
        self.refused += outcome.refused.values()
        for name in ("empty", "ticks", "comparisons", "processes"):
            setattr(self.outcome, name, getattr(self.outcome, name) + getattr(outcome, name))
        self.outcome.skipped += outcome.skipped
        self.outcome.paths.update(outcome.paths)
        if time.monotonic() - self._spoke > _EVERY:
            self._spoke = time.monotonic()
            print(f"{self.seconds:6.0f} s  seed {case.seed}  {self._words()}", flush=True)

    def _words(self) -> str:
        return (
            f"{self.made} of {self.wanted} views in {self.pipelines} pipelines ({self.restarting} restart): "
            f"{self.checked} the same ({self.outcome.empty} empty), {len(self.refused)} refused, "
            f"{len(self.outcome.skipped)} left out because of them, {len(self.bad)} no good as such, "
            f"{len(self.failed)} failed"
        )

    def summary(self) -> None:
        reasons = Counter(each.split("\n", 1)[0] for each in self.refused)
        for reason, count in reasons.most_common(30):
            print(f"  refused {count} x {reason}")
        features = counted(self.texts)
        print("  made:", ", ".join(f"{count} {name}" for name, count in features.most_common()))
        done = self.outcome
        print(
            f"{self._words()}; {done.ticks} ticks in {done.processes} processes, {done.comparisons} comparisons, "
            f"{self.seconds:.0f} s, by path {dict(done.paths)}"
        )
        if self.too_many_refused:
            print(f"more than {MOST_REFUSED:.0%} are refused")
        print(f"failed: {', '.join(self.failed) or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
