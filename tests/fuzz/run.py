"""The campaign: random queries of all kinds over random changes, each held against Spark's own answer.

    python -m tests.fuzz.run --queries 1000 --ticks 4 --seed 1 --path both --minutes 60 --keep-going

Ten queries share a pipeline; the next pipeline has the next seed. A query that fails is run alone, made small and
printed as a test; then the campaign ends with code 1 (with `--keep-going` after all of them). `--plain` asks only
Spark: whether it takes the queries, and gives one answer to each.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from headwater.spark.session import start
from tests.equivalence.campaign import PATHS
from tests.fuzz.campaign import Failed, Judge, Outcome, run_case
from tests.fuzz.cases import TOGETHER, Case, make_case
from tests.fuzz.features import counted
from tests.fuzz.plain import Plain, tables_of

_EVERY = 10.0


def main() -> int:
    """Run what the command line says."""
    options = _options()
    logging.disable(logging.CRITICAL)  # pyspark writes down every refusal
    start("fuzz", master="local[2]")
    tally = _Tally(options.queries)
    for case in _cases(options):
        if tally.made >= options.queries or tally.seconds > 60 * options.minutes:
            break
        if options.plain:
            _ask_spark(case, tally)
        else:
            _run(case, tally, options.shrink_seconds)
        if tally.failed and not options.keep_going:
            break
    tally.summary()
    return 1 if tally.failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--queries", type=int, default=200, help="how many queries to make")
    parser.add_argument("--ticks", type=int, default=4, help="ticks of each pipeline")
    parser.add_argument("--seed", type=int, default=None, help="the first pipeline's seed; the next has the next")
    parser.add_argument("--number", type=int, help="only this query of each pipeline")
    parser.add_argument("--path", choices=[*PATHS, "both"], default="both")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--shrink-seconds", type=float, default=120.0, help="how long to make a failure smaller")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    parser.add_argument("--plain", action="store_true", help="without Headwater: are the queries good as such?")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int(time.time())
    print(f"seed {options.seed}", flush=True)
    return options


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    """The seeds from the first on; with both paths, they take turns."""
    seed = options.seed
    while True:
        path = PATHS[seed % 2] if options.path == "both" else options.path
        views = min(TOGETHER, options.queries)
        case = make_case(seed, path, ticks=options.ticks, views=views if options.number is None else TOGETHER)
        yield case if options.number is None else case.only(options.number)
        seed += 1


def _run(case: Case, tally: _Tally, seconds: float) -> None:
    try:
        with tempfile.TemporaryDirectory(prefix="headwater-fuzz-") as folder:
            tally.add(case, run_case(case, Path(folder)))
    except Failed as failure:
        print(f"\nFAILED: {failure}\n", flush=True)
        verdicts = Judge().verdicts(case, failure, seconds=seconds)
        tally.add(case, Outcome())
        if not verdicts:
            tally.failed.append(f"{case.seed} {case.path} (only together)")
        for verdict in verdicts:
            place = f"{case.seed} {verdict.number} {case.path}"
            if not verdict.is_mistake:
                tally.bad.append(place)
                print(f"no good as such: {place}: {verdict.words}\n", flush=True)
                continue
            tally.failed.append(place)
            again = f"python -m tests.fuzz.run --queries 1 --ticks {len(case.ticks)} --seed {case.seed}"
            print(f"{verdict.words}\nagain: {again} --path {case.path} --number {verdict.number}\n")
            print(f"{verdict.test}\n", flush=True)


def _ask_spark(case: Case, tally: _Tally) -> None:
    plain = Plain()
    with tempfile.TemporaryDirectory(prefix="headwater-plain-") as folder:
        *_, tables = tables_of(case, Path(folder))
    plain.hold(tables)
    outcome = Outcome()
    for view in case.views:
        problem = plain.problem(view.query.sql())
        if problem:
            tally.bad.append(f"{case.seed} {view.number}")
            print(f"{case.seed} {view.number}: {problem}\n    {view.query.sql()}", flush=True)
        else:
            outcome.checked.append(view.name)
    tally.add(case, outcome)


class _Tally:
    """What the campaign came to so far."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.checked = self.empty = self.pipelines = self.ticks = self.comparisons = 0
        self.texts: list[str] = []
        self.refused: Counter[str] = Counter()
        self.failed: list[str] = []
        self.bad: list[str] = []
        self.paths: Counter[str] = Counter()
        self._started = self._spoke = time.monotonic()

    @property
    def made(self) -> int:
        return len(self.texts)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def add(self, case: Case, outcome: Outcome) -> None:
        self.pipelines += 1
        self.texts += [view.query.sql() for view in case.views]
        self.checked += len(outcome.checked)
        self.empty += outcome.empty
        self.ticks += outcome.ticks
        self.comparisons += outcome.comparisons
        self.refused.update(outcome.refused.values())
        self.paths.update(outcome.paths)
        if time.monotonic() - self._spoke > _EVERY:
            self._spoke = time.monotonic()
            print(f"{self.seconds:6.0f} s  seed {case.seed}  {self._words()}", flush=True)

    def _words(self) -> str:
        return (
            f"{self.made} of {self.wanted} queries in {self.pipelines} pipelines: {self.checked} the same "
            f"({self.empty} empty), "
            f"{self.refused.total()} refused, {len(self.bad)} no good as such, {len(self.failed)} failed"
        )

    def summary(self) -> None:
        for reason, count in self.refused.most_common(30):
            print(f"  refused {count} x {reason}")
        features = counted(self.texts)
        print("  made:", ", ".join(f"{count} {name}" for name, count in features.most_common()))
        print(
            f"{self._words()}; {self.ticks} ticks, {self.comparisons} comparisons, {self.seconds:.0f} s, ", end=""
        )
        print(f"by path {dict(self.paths)}")
        print(f"failed: {', '.join(self.failed) or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
