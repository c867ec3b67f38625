"""That a view's changes add up to the view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import pyarrow as pa

from headwater import Pipeline, VersionExpired
from headwater.oracle.naive import bits, plain

_LEADING = ["_tick", "_weight"]


def changes_add_up(pipeline: Pipeline, name: str, *, since: int) -> None:
    """The changes since 0, and an old version with the changes since then, are both what is read now."""
    now = _counted(pipeline.read(name))
    assert _summed(pipeline, name, 0) == now, f"the changes of {name} since 0 do not add up to it"
    if since < 1:
        return
    try:
        old = _counted(pipeline.read(name, as_of=since))
    except VersionExpired:
        return  # declared after that tick
    old.update(_summed(pipeline, name, since))
    assert _without_zeros(old) == now, f"{name} as of tick {since} and its changes since do not add up to it"


def _summed(pipeline: Pipeline, name: str, since: int) -> Counter[Hashable]:
    total: Counter[Hashable] = Counter()
    for table in pipeline.changes(name, since=since):
        assert table.column_names[:2] == _LEADING, table.column_names
        weights = table.column("_weight").to_pylist()
        assert 0 not in weights
        assert all(tick > since for tick in table.column("_tick").to_pylist())
        for row, weight in zip(_rows(table.drop_columns(_LEADING)), weights, strict=True):
            total[row] += weight
    return _without_zeros(total)


def _without_zeros(counts: Counter[Hashable]) -> Counter[Hashable]:
    return Counter({row: count for row, count in counts.items() if count})


def _counted(table: pa.Table) -> Counter[Hashable]:
    return Counter(_rows(table))


def _rows(table: pa.Table) -> list[Hashable]:
    """Rows bit by bit: what is taken away must be exactly what was given."""
    return list(zip(*(plain(column, bits) for column in table.columns), strict=True))
