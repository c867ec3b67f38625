"""Finding out which view of a failed case failed, and making it small."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.equivalence.campaign import Failed, run_case
from tests.equivalence.cases import Case
from tests.equivalence.plain import Analysis, Plain, problem_of
from tests.equivalence.shrink import shrink
from tests.equivalence.written import as_test


@dataclass(frozen=True)
class Verdict:
    """What became of one view that was run alone: an engine's mistake, or a query that is no good as such."""

    name: str
    words: str
    is_mistake: bool
    test: str = ""


class Judge:
    """Judges deep cases: in wide ones, views read one another."""

    def __init__(self) -> None:
        self._plain = Plain()
        self._analysis = Analysis()

    def verdicts(self, case: Case, failure: Failed, *, seconds: float) -> list[Verdict]:
        """Each view that fails alone; the first mistake is shrunk for so long. Empty: only together they fail."""
        found: list[Verdict] = []
        for view in case.views:
            alone = case.only(view.name)
            words = _words(alone) if not failure.names or view.name in failure.names else ""
            if not words:
                continue
            problem = self._problem(alone)
            if problem:
                found.append(Verdict(view.name, f"{problem}\n    {view.query.sql()}", is_mistake=False))
            else:
                first = not any(verdict.is_mistake for verdict in found)
                small = shrink(alone, self._fails, seconds=seconds) if first else alone
                found.append(Verdict(view.name, words, is_mistake=True, test=as_test(small)))
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
        with tempfile.TemporaryDirectory(prefix="headwater-case-") as folder:
            run_case(case, Path(folder))
    except Failed as failure:
        return str(failure)
    return ""
