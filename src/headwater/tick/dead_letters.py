"""Dead letters of a view: rows that it cannot evaluate, set aside, and taken back when they leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from headwater.change import WEIGHT
from headwater.evaluation.blame import as_json, dead_letters
from headwater.plan.operators import Field
from headwater.state.arrangement import Arrangement


class DeadLetters:
    """The dead letters of a view in one tick: `put` takes new ones, and those that go, with weights.

    A row that has one is never evaluated when it leaves: what goes is what was kept, though a function may have
    become another since.
    """

    def __init__(self, old: Arrangement, put: Callable[[pa.Table], None]) -> None:
        self.put = put
        self._old = old
        self._known: dict[str, list[tuple[str, str]]] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self._old.rows

    def left(self, rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
        """The rows without those that leave and have a dead letter, which goes with them."""
        weights = rows.column(WEIGHT).to_numpy().copy()
        leaving = np.flatnonzero(weights < 0)
        if self.is_empty or not len(leaving):
            return rows
        known = self._letters()
        gone: list[tuple[tuple[str, str], str]] = []
        for place, raw in zip(leaving, as_json(rows.take(pa.array(leaving)), fields), strict=True):
            while weights[place] < 0 and known.get(raw):
                gone.append((known[raw].pop(), raw))
                weights[place] += 1
        if gone:
            ones = pa.array(np.full(len(gone), -1, np.int64))
            self.put(dead_letters([why for why, _ in gone], [raw for _, raw in gone], ones))
        place = rows.schema.get_field_index(WEIGHT)
        rest = rows.set_column(place, rows.schema.field(place), pa.array(weights))
        return rest.filter(pa.array(weights != 0))

    def _letters(self) -> dict[str, list[tuple[str, str]]]:
        if self._known is None:
            self._known = {}
            for table in self._old.scan():
                for row in table.to_pylist():
                    reasons = [(row["reason"], row["column"])] * row[WEIGHT]
                    self._known.setdefault(row["raw"], []).extend(reasons)
        return self._known
