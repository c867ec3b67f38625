"""The campaign: random views over random traffic, each held against Spark's own answer.

    python -m tests.equivalence.run --cases 1500 --seed 1 --path both --minutes 60

A case is one view, checked over the traffic of its pipeline. Ends with code 1 at the first difference (with
`--keep-going` after all of them), with all that is needed to see it again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from headwater.spark.session import start
from tests.equivalence.campaign import PATHS, Failed, Outcome, run_case
from tests.equivalence.cases import make_case

_EVERY = 5.0


def main() -> int:
    """Run what the command line says."""
    options = _options()
    start("equivalence", master="local[2]")
    tally = _Tally(options.cases)
    for seed, path in _plan(options.seed, options.path):
        if tally.views >= options.cases or tally.seconds > 60 * options.minutes:
            break
        case = make_case(seed) if options.view is None else make_case(seed).only(options.view)
        try:
            with tempfile.TemporaryDirectory(prefix="headwater-case-") as folder:
                tally.add(seed, run_case(case, path, Path(folder)))
        except Failed as failure:
            tally.failed.append(f"{seed} {path}")
            print(f"\nFAILED: {failure}\n", flush=True)
            if not options.keep_going:
                break
    tally.summary(options.refusals)
    return 1 if tally.failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.equivalence.run", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cases", type=int, default=200, help="how many views to check")
    parser.add_argument("--seed", type=int, default=None, help="the first pipeline's seed; the next has the next")
    parser.add_argument("--path", choices=[*PATHS, "both"], default="both")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--view", help="only this view and what it reads")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    parser.add_argument("--refusals", action="store_true", help="print every refusal")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int(time.time())
    print(f"seed {options.seed}", flush=True)
    return options


def _plan(seed: int, path: str) -> Iterator[tuple[int, str]]:
    """The seeds from the first on; with both paths, they take turns."""
    while True:
        yield seed, PATHS[seed % 2] if path == "both" else path
        seed += 1


class _Tally:
    """What the campaign came to so far."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.views = self.pipelines = self.ticks = self.comparisons = self.skipped = 0
        self.refused: list[str] = []
        self.failed: list[str] = []
        self.paths: Counter[str] = Counter()
        self._started = self._spoke = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def add(self, seed: int, outcome: Outcome) -> None:
        self.pipelines += 1
        self.views += len(outcome.checked)
        self.ticks += outcome.ticks
        self.comparisons += outcome.comparisons
        self.skipped += len(outcome.skipped)
        self.refused += outcome.refused.values()
        self.paths.update(outcome.paths)
        if time.monotonic() - self._spoke > _EVERY:
            self._spoke = time.monotonic()
            print(f"{self.seconds:6.0f} s  seed {seed}  {self._words()}", flush=True)

    def _words(self) -> str:
        return f"{self.views} of {self.wanted} cases in {self.pipelines} pipelines, {self.ticks} ticks"

    def summary(self, with_refusals: bool) -> None:
        declared = self.views + len(self.refused)
        share = len(self.refused) / declared if declared else 0.0
        print(f"{self._words()}, {self.comparisons} comparisons, {self.seconds:.0f} s, by path {dict(self.paths)}")
        print(f"{len(self.refused)} views refused ({share:.1%}), {self.skipped} more left out because of them")
        for words, count in Counter(each.split("\n", 1)[0] for each in self.refused).most_common(10):
            print(f"  {count} x {words}")
        if with_refusals:
            print("\n".join(self.refused))
        print(f"failed: {', '.join(self.failed) or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
