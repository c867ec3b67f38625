"""A suspended view says so before all else; what its operators do comes after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import headwater as hw
from headwater.catalog.suspension import Suspension
from headwater.store import TickRecord
from tests.inside import store_of

ADVICE = "correct the row or replace the view, and it catches up by itself"


def explained(folder: Path, since: int, **why: Any) -> list[str]:
    """What is said of a view that was suspended in the second tick."""
    with hw.Pipeline("shop", folder) as pipeline:
        store = store_of(pipeline)
        spec = {"sql": "…", "key": [], "schema": "n BIGINT", "inputs": [], "plan": [], "timezone": "UTC"}
        number = store.declare("sums", "view", spec).number
        epoch = store.raise_epoch({"pid": 4711}, seen=store.lease().epoch)
        detail: dict[str, Any] = {"rows_out": {}, "paths": {}}
        store.commit(TickRecord(1, 1, {}, detail={**detail, "suspended": {}}), epoch=epoch)
        assert pipeline.explain("sums").startswith("view sums (n BIGINT)\n")
        suspended = {"sums": Suspension(number, since, **why).as_dict()}
        store.commit(TickRecord(2, 2, {}, detail={**detail, "suspended": suspended}), epoch=epoch)
        return pipeline.explain("sums").splitlines()


def test_the_first_line_says_since_when_why_and_what_to_do(tmp_path: Path) -> None:
    first, second, *rest = explained(tmp_path, 1, what="it overflows", row='{"n": 1}')
    assert first == f'suspended since tick 1: it overflows, for the row {{"n": 1}}; {ADVICE}'
    assert second == "view sums (n BIGINT)"
    assert not any(line.startswith(("suspended", "tick")) for line in rest)


def test_one_that_was_never_filled_says_that(tmp_path: Path) -> None:
    first = explained(tmp_path, 0, what="it overflows", hint="declare the function")[0]
    assert first == (
        "suspended before it was filled: it overflows; declare the function, and it catches up by itself"
    )
