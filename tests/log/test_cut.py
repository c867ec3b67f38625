"""How much of the log a cut takes."""

from __future__ import annotations

from headwater.log.cut import Cut, choose
from headwater.log.entry import Entry, Mark


def entry(number: int, size: int, *, rows: int = 1) -> Entry:
    return Entry(number, rows, number + 1, 0, None, 0, None, Mark(0, number * 1000), Mark(0, number * 1000 + size))


def taken(sizes: list[int], *, target: int | None = 100, most_bytes: int = 100) -> int:
    entries = {("t", 0): [entry(number, size) for number, size in enumerate(sizes)]}
    cut, _ = choose(
        entries,
        after=Cut(),
        sequence=len(sizes),
        target=target,
        decision=lambda _: True,
        most_bytes=most_bytes,
    )
    assert cut.sequence == cut.rows
    return cut.rows


def test_a_cut_takes_no_more_bytes_than_it_may_but_at_least_one_append() -> None:
    assert taken([40, 40, 40]) == 2
    assert taken([40, 60, 1]) == 2
    assert taken([400, 1]) == 1
    assert taken([1, 400]) == 1
    assert taken([40, 40, 40], target=None) == 3
    assert taken([1, 1, 1], target=2) == 2
