"""Pairs of rows that overlap, kept as both sides come and go, against all pairs of all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from headwater.operators import Constant, RangeJoin
from headwater.operators.places import Placing, Span
from headwater.plan.operators import Field, Names
from headwater.plan.physical import Made
from tests.operators.running import WAYS, Row, Running, changed

LONG, TEXT, DOUBLE = pa.int64(), pa.string(), pa.float64()


class Shape(NamedTuple):
    """What rows begin and end with on both sides: columns 1 and 2, or None where that is open."""

    left: tuple[int | None, int | None]
    right: tuple[int | None, int | None]


SHAPES = {
    "one is smaller": Shape((1, None), (None, 1)),
    "one is greater": Shape((None, 1), (1, None)),
    "a value and a stretch": Shape((1, 1), (1, 2)),
    "a stretch and a value": Shape((1, 2), (2, 2)),
    "two stretches": Shape((1, 2), (1, 2)),
}


def operator(shape: Shape, kind: pa.DataType, *, keyed: bool) -> RangeJoin:
    sides = {
        side: (Field(f"{side}0", TEXT), Field(f"{side}1", kind), Field(f"{side}2", kind), Field(f"{side}3", LONG))
        for side in "ab"
    }

    def span(side: str, ends: tuple[int | None, int | None]) -> tuple[str, str]:
        first, last = ("" if each is None else f"{side}{each}" for each in ends)
        return first, last

    return RangeJoin(
        (*sides["a"], *sides["b"]),
        left=Constant(sides["a"]),
        right=Constant(sides["b"]),
        left_keys=("a0",) if keyed else (),
        right_keys=("b0",) if keyed else (),
        left_span=span("a", shape.left),
        right_span=span("b", shape.right),
        name="join1",
    )


def meet(shape: Shape, one: Row, other: Row, *, keyed: bool) -> bool:
    """The condition of which the operator gives no fewer pairs; null is in none."""
    if keyed and (one[0] is None or one[0] != other[0]):
        return False

    def precedes(first: Row, at: int | None, second: Row, other_at: int | None) -> bool:
        if at is None or other_at is None:
            return True
        low, high = first[at], second[other_at]
        return low is not None and high is not None and low <= high

    return precedes(one, shape.left[0], other, shape.right[1]) and precedes(
        other, shape.right[0], one, shape.left[1]
    )


def whole(random: Random) -> Any:
    return random.choice([None, 0, 1, 5, 6, 7, 100, -3, 1 << 40, -(1 << 62), (1 << 63) - 1, random.randrange(40)])


def real(random: Random) -> Any:
    return random.choice([None, 0.0, 1.5, 2.0, float("inf"), -1e300, random.random()])


def text(random: Random) -> Any:
    return random.choice([None, "", "a", "ab", "abcdefghi", "abcdefghj", "b", random.choice("xyz")])


VALUES: dict[str, tuple[pa.DataType, Callable[[Random], Any]]] = {
    "whole": (LONG, whole),
    "real": (DOUBLE, real),
    "text": (TEXT, text),
}


def row(random: Random, value: Callable[[Random], Any]) -> Row:
    """Its stretch may be of any length, also none or less."""
    return (random.choice(["x", "x", "x", "y", None]), value(random), value(random), random.choice([7, 8]))


def moved(random: Random, given: Counter[Row], value: Callable[[Random], Any], most: int) -> Counter[Row]:
    change = Counter(row(random, value) for _ in range(random.choice([0, 1, most])))
    for gone in random.sample(sorted(given, key=repr), min(len(given), random.choice([0, 2, most]))):
        change[gone] -= random.randint(1, given[gone])
    return change


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("keyed", [False, True], ids=["no key", "a key"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("values", VALUES)
def test_pairs_that_overlap_follow_rows_of_both_sides(
    values: str, shape: Shape, keyed: bool, way: str, tmp_path: Path
) -> None:
    kind, value = VALUES[values]
    random = Random(f"{values} {shape} {keyed}")

    def passes(pair: Row) -> bool:
        return meet(shape, pair[:4], pair[4:], keyed=keyed)

    join = Running(operator(shape, kind, keyed=keyed), tmp_path, way, passes=passes)
    left, right = Counter[Row](), Counter[Row]()
    for most in (30, 3, 12, 30, 1, 8):
        changes = moved(random, left, value, most), moved(random, right, value, most)
        join.take(*changes)
        left, right = (
            +Counter({row: given[row] + change[row] for row in given | change})
            for given, change in zip((left, right), changes, strict=True)
        )
        pairs = {one + other: left[one] * right[other] for one in left for other in right}
        assert join.emitted == Counter({pair: weight for pair, weight in pairs.items() if passes(pair)})


class Seen(Running):
    """A join that remembers the pairs it made, as they are given to the condition."""

    def __init__(self, node: RangeJoin, folder: Path) -> None:
        super().__init__(node, folder, passes=lambda _: False)
        self.pairs: set[tuple[Row, Row]] = set()

    def made_of(self, tables: Sequence[pa.Table], low: int, high: int) -> Made:
        made = super().made_of(tables, low, high)
        for part in made.parts():
            columns = [part.column(name).to_pylist() for name in self.node.schema.names]
            self.pairs.update((row[:4], row[4:]) for row in zip(*columns, strict=True))
        return made


@pytest.mark.parametrize("keyed", [False, True], ids=["no key", "a key"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_rows_that_were_never_together_are_in_no_pair(shape: Shape, keyed: bool, tmp_path: Path) -> None:
    """Not even in one that does not pass: a condition may have no value for the two."""
    random, join = Random(f"{shape} {keyed}"), Seen(operator(shape, LONG, keyed=keyed), tmp_path)
    left, right = Counter[Row](), Counter[Row]()
    for most in (400, 2, 3, 5, 2, 3, 8):
        changes = moved(random, left, whole, most), moved(random, right, whole, most)
        before, join.pairs = (left, right), set()
        join.take(*changes)
        left, right = (
            +Counter({row: given[row] + change[row] for row in given | change})
            for given, change in zip((left, right), changes, strict=True)
        )
        for one, other in join.pairs:
            assert (one in before[0] and other in before[1]) or (one in left and other in right)


def test_a_row_that_leaves_out_of_range_is_in_no_pair_with_one_that_comes(tmp_path: Path) -> None:
    far = Counter(("x", 1000 + each, 1000 + each, 7) for each in range(200))
    gone, coming = ("x", 10, 10, 7), [("x", 0, 8, each) for each in range(3)]
    points = Seen(operator(SHAPES["a value and a stretch"], LONG, keyed=False), tmp_path / "points")
    points.take(far + Counter([gone]), Counter())
    points.take(Counter({gone: -1}), Counter(coming))
    assert not points.pairs
    gone, coming = ("x", 0, 8, 7), [("x", -14, -10, each) for each in range(3)]
    stretches = Seen(operator(SHAPES["two stretches"], LONG, keyed=False), tmp_path / "stretches")
    stretches.take(Counter(), far + Counter([gone]))
    stretches.take(Counter(coming), Counter({gone: -1}))
    assert not stretches.pairs


POINTS, STRETCHES = 20_000, 200


@pytest.mark.parametrize("keyed", [False, True], ids=["no key", "a crowded key"])
def test_a_changed_row_reads_what_is_in_its_range(keyed: bool, tmp_path: Path) -> None:
    join = Running(operator(SHAPES["a value and a stretch"], LONG, keyed=keyed), tmp_path)
    wide = POINTS // STRETCHES
    points = Counter(("x", each, 0, 7) for each in range(POINTS))
    join.take(points, Counter(("x", each * wide, each * wide + wide - 1, 7) for each in range(STRETCHES)))
    assert sum(join.emitted.values()) < 2 * POINTS, "one is looked at together with many that it does not meet"
    join.take(Counter([("x", 777, 0, 8)]), Counter())
    assert join.read <= 8
    join.take(Counter(), Counter([("x", 700, 799, 8)]))
    assert join.read <= 105
    join.take(Counter({("x", 777, 0, 8): -1}), Counter({("x", 700, 799, 8): -1}))
    assert join.read <= 113


@pytest.mark.parametrize("shape", ["one is smaller", "one is greater"])
def test_what_comes_at_the_end_of_an_order_reads_what_is_beyond_it(shape: str, tmp_path: Path) -> None:
    join = Running(operator(SHAPES[shape], LONG, keyed=True), tmp_path)
    rows = Counter(("x", each, 0, 7) for each in range(1000))
    join.take(rows, rows)
    last = Counter([("x", 995, 0, 8)])
    join.take(*((last, Counter()) if shape == "one is smaller" else (Counter(), last)))
    assert join.read == 5


def test_rows_of_many_lengths_are_found_by_search(tmp_path: Path) -> None:
    join, random = Running(operator(SHAPES["two stretches"], LONG, keyed=False), tmp_path), Random(3)
    begins = [random.randrange(10**9) for _ in range(5000)]
    given = Counter(("x", begin, begin + (1 << random.randrange(16)), each) for each, begin in enumerate(begins))
    join.take(given, Counter())
    join.take(Counter(), Counter([("x", 5 * 10**8, 5 * 10**8 + 1000, 0)]))
    assert join.read < 50


def test_rows_with_a_null_where_they_begin_or_end_are_not_even_kept(tmp_path: Path) -> None:
    join = Running(operator(SHAPES["a value and a stretch"], LONG, keyed=True), tmp_path)
    join.take(Counter([("x", None, 1, 7), (None, 1, 1, 7), ("x", 1, None, 7)]), Counter([("x", 1, None, 7)]))
    assert (join.kept("join1.left"), join.kept("join1.right")) == (1, 0)


def test_rows_of_a_key_stay_in_the_range_of_its_hash(tmp_path: Path) -> None:
    fields = (Field("a0", TEXT), Field("a1", LONG), Field("a2", LONG))
    random = Random(1)
    rows = changed(
        fields, Counter((random.choice("abcdef"), whole(random) or 0, whole(random) or 0) for _ in range(99))
    )
    hashed = rows.add_column(
        3, pa.field("_hash", LONG), pa.array([hash(each) for each in rows.column("a0").to_pylist()])
    )
    for span in (Span("a1", ""), Span("a1", "a2"), Span("", "a2")):
        placed = Placing(span, keyed=True).placed(hashed)
        before, after = (each.column("_hash").to_pylist() for each in (hashed, placed))
        assert [each >> 40 for each in before] == [each >> 40 for each in after]


def test_it_tells_what_it_does_and_keeps() -> None:
    found = operator(SHAPES["a value and a stretch"], LONG, keyed=True)
    assert found.title == "join on a0 = b0, a1 <= b2, b1 <= a1"
    assert found.work == "searches the rows of the other side with its key that are in its range"
    assert found.keeps == {"join1.left": "a0, then a1", "join1.right": "b0, then b1"}
    assert not found.keyed
    open_end = operator(SHAPES["one is smaller"], LONG, keyed=False)
    assert open_end.title == "join on a1 <= b1"
    assert open_end.keeps == {"join1.left": "a1", "join1.right": "b1"}
    assert open_end.is_whole
    names = Names({f"{side}{place}": f"{side}{place}x" for side in "ab" for place in range(4)})
    assert open_end.renamed(names).left_span == ("a1x", "")
    assert open_end.renamed(names).right_span == ("", "b1x")
