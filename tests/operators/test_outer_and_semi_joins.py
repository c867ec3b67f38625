"""Rows with and without a match, kept as both sides come and go, against all pairs of all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from headwater.operators import Constant, JoinWithRows, MatchCounts, OuterJoin, SemiJoin, Stateful
from headwater.operators.match_counts import OUTER
from headwater.operators.semi_join import ANTI, EXISTENCE, SEMI
from headwater.plan.operators import Field
from headwater.store import LessThanNone
from tests.operators.running import WAYS, Row, Running

LONG, TEXT = pa.int64(), pa.string()
LEFT = (Field("a1", LONG, "k"), Field("a2", TEXT, "t"), Field("a3", LONG, "x"))
RIGHT = (Field("b1", LONG, "k"), Field("b2", TEXT, "t"), Field("b3", LONG, "x"))
MARKS = (Field("m1", LONG), Field("m2", LONG))
NULLS = (None, None, None)
OUTERS = {"left outer": (True, False), "right outer": (False, True), "full outer": (True, True)}
KINDS = (*OUTERS, SEMI, ANTI, EXISTENCE)
Fits = Callable[[Row, Row], bool]


def operator(kind: str, keys: int = 1) -> Stateful:
    """A join on equality alone."""
    a, b = (tuple(f"{side}{place}" for place in range(1, keys + 1)) for side in "ab")
    left, right = Constant(LEFT), Constant(RIGHT)
    if kind in OUTERS:
        return OuterJoin((*LEFT, *RIGHT), a, b, "join1", *OUTERS[kind], left=left, right=right)
    output = (*LEFT, Field("e", pa.bool_())) if kind == EXISTENCE else LEFT
    return SemiJoin(output, a, b, kind, "join1", left=left, right=right)


def expected(kind: str, left: Counter[Row], right: Counter[Row], fits: Fits) -> Counter[Row]:
    """What SQL says the join is."""
    found: Counter[Row] = Counter()
    for one, times in left.items():
        others = {other: count for other, count in right.items() if fits(one, other)}
        if kind in OUTERS:
            found.update({one + other: times * count for other, count in others.items()})
            if not others and OUTERS[kind][0]:
                found[one + NULLS] += times
        elif kind == EXISTENCE:
            found[(*one, bool(others))] += times
        elif bool(others) == (kind == SEMI):
            found[one] += times
    if kind in OUTERS and OUTERS[kind][1]:
        for other, count in right.items():
            if not any(fits(one, other) for one in left):
                found[NULLS + other] += count
    return found


def equal(keys: int) -> Fits:
    return lambda one, other: one[:keys] == other[:keys] and None not in one[:keys]


def some(random: Random, count: int) -> Counter[Row]:
    values = ([None, 1, 1, 1, 1, 2, 3, 4], [None, "", "a"], [7, 8])
    return Counter(tuple(random.choice(each) for each in values) for _ in range(count))


def moved(random: Random, given: Counter[Row]) -> Counter[Row]:
    """A change: rows come, and some of those that are there go; now and then all."""
    change = some(random, random.choice([0, 1, 6]))
    going = random.choice([0, 1, 4, len(given)])
    for row in random.sample(sorted(given, key=repr), min(len(given), going)):
        change[row] -= random.choice([1, given[row], given[row]])
    return change


def after(given: Counter[Row], change: Counter[Row]) -> Counter[Row]:
    return +Counter({row: given[row] + change[row] for row in given | change})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("keys", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_matches_come_and_go(seed: int, kind: str, keys: int, way: str, tmp_path: Path) -> None:
    random, join = Random(seed), Running(operator(kind, keys), tmp_path, way)
    left, right = Counter[Row](), Counter[Row]()
    for _ in range(6):
        changes = moved(random, left), moved(random, right)
        join.take(*changes)
        left, right = after(left, changes[0]), after(right, changes[1])
        assert join.emitted == expected(kind, left, right, equal(keys))


class Counting:
    """A join with a further condition: pairs and rows, filtered, and the pairs of each row counted."""

    def __init__(self, kind: str, folder: Path, way: str) -> None:
        self._sides = OUTERS.get(kind, (True, False))
        marks = [mark if is_whole else None for mark, is_whole in zip(MARKS, self._sides, strict=True)]
        given = tuple(mark for mark in marks if mark is not None)
        names = [mark.name if mark else "" for mark in marks]
        output = (*LEFT, *RIGHT, *given)
        pairs = JoinWithRows(output, ("a1",), ("b1",), "join1", *names, left=Constant(LEFT), right=Constant(RIGHT))
        gives = OUTER if kind in OUTERS else kind
        last = (*LEFT, *RIGHT) if kind in OUTERS else operator(kind).output
        rows = [tuple(each.name for each in side) for side in (LEFT, RIGHT)]
        chosen = [place for place in (0, 1) if marks[place]]
        counts = [
            MatchCounts(
                last if place == chosen[-1] else output,
                rows[place],
                names[place],
                names[1 - place],
                gives,
                f"matches{place}",
                "counted",
                child=Constant(output),
            )
            for place in chosen
        ]
        self.pairs = Running(pairs, folder / "pairs", way)
        self.counts = [Running(each, folder / each.name, way) for each in counts]

    @property
    def emitted(self) -> Counter[Row]:
        return self.counts[-1].emitted

    def take(self, left: Counter[Row], right: Counter[Row], fits: Fits) -> None:
        change = self.pairs.take(left, right)
        single = [row for row in change if any(mark is not None for mark in row[6:])]
        change = Counter({row: change[row] for row in change if row in single or fits(row[:3], row[3:6])})
        for each in self.counts:
            change = each.take(change)


def condition(one: Row, other: Row) -> bool:
    return one[0] is not None and one[0] == other[0] and one[1] is not None and one[1] == other[1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_pairs_of_each_row_are_counted_where_there_is_another_condition(
    seed: int, kind: str, way: str, tmp_path: Path
) -> None:
    random, join = Random(seed), Counting(kind, tmp_path, way)
    left, right = Counter[Row](), Counter[Row]()
    for _ in range(6):
        changes = moved(random, left), moved(random, right)
        join.take(*changes, condition)
        left, right = after(left, changes[0]), after(right, changes[1])
        assert join.emitted == expected(kind, left, right, condition)


@pytest.mark.parametrize("kind", KINDS)
def test_a_crowded_key_is_not_read_when_only_its_number_changes(kind: str, tmp_path: Path) -> None:
    join = Running(operator(kind), tmp_path)
    join.take(Counter((1, "x", number) for number in range(1000)), Counter([(1, "y", 0), (2, "y", 0)]))
    join.take(Counter([(1, "z", 0)]), Counter())
    assert join.read <= 3
    join.take(Counter({(1, "z", 0): -1}), Counter())
    assert join.read <= 3
    if kind in {SEMI, ANTI, EXISTENCE}:
        join.take(Counter(), Counter([(1, "another", 0)]))
        assert join.read == 1
        join.take(Counter(), Counter({(1, "y", 0): -1}))
        assert join.read == 1
    join.take(Counter(), Counter({(2, "y", 0): -1}))
    assert join.read <= 3


@pytest.mark.parametrize("kind", [SEMI, ANTI, EXISTENCE])
def test_of_the_other_side_only_keys_are_kept(kind: str, tmp_path: Path) -> None:
    join = Running(operator(kind), tmp_path)
    join.take(Counter([(None, "x", 0), (1, "x", 0)]), Counter([(1, "y", number) for number in range(50)]))
    assert join.kept("join1.right_keys") == 1
    assert join.kept("join1.left") == (1 if kind == SEMI else 2)
    assert {each.state for each in join.node.exchanges} == {"join1.left", ""}


def test_a_counted_row_of_a_crowded_key_is_looked_up_alone(tmp_path: Path) -> None:
    join = Counting(ANTI, tmp_path, "whole")
    join.take(Counter((1, "x", number) for number in range(1000)), Counter([(1, "y", 0)]), condition)
    join.take(Counter([(1, "y", 0)]), Counter(), condition)
    assert (join.pairs.read, join.counts[0].read) == (1, 0)
    join.take(Counter({(1, "y", 0): -1}), Counter(), condition)
    assert (join.pairs.read, join.counts[0].read) == (1, 1)


def test_rows_that_go_by_are_spread_over_all_places(tmp_path: Path) -> None:
    join = Counting("full outer", tmp_path, "whole")
    change = join.pairs.take(Counter((1, "x", n) for n in range(9)), Counter((2, "y", n) for n in range(9)))
    assert len({row[6:] for row in change}) == 18
    padded = join.counts[0].take(change)
    assert len({row[6:] for row in padded}) == 18


def test_rows_are_counted_by_their_bits(tmp_path: Path) -> None:
    """-0.0 and 0.0 are one key, and two rows."""
    floats = (Field("a1", pa.float64()), Field("m1", LONG))
    counts = MatchCounts(floats[:1], ("a1",), "m1", "", ANTI, "matches1", "", child=Constant(floats))
    running = Running(counts, tmp_path)
    running.take(Counter([(0.0, 1)]))
    table = next(iter(running.held("matches1", counts.states[0].schema).scan()))
    assert table.num_rows == 1
    running.take(Counter([(-0.0, 1)]))
    assert running.kept("matches1") == 2
    running.take(Counter([(-0.0, None)]))
    assert sum(running.emitted.values()) == 1


def test_more_pairs_taken_than_there_were_is_a_fault_of_ours(tmp_path: Path) -> None:
    fields = (LEFT[0], MARKS[0])
    counts = MatchCounts(fields[:1], ("a1",), "m1", "", SEMI, "matches1", "", child=Constant(fields))
    with pytest.raises(LessThanNone):
        Running(counts, tmp_path).take(Counter({(1, 1): 1, (1, None): -1}))


def test_they_tell_what_they_do_and_keep() -> None:
    titles = {
        "left outer": "left outer join on k = k",
        "right outer": "right outer join on k = k",
        "full outer": "full outer join on k = k",
        SEMI: "left semi join on k = k",
        ANTI: "left anti join on k = k",
        EXISTENCE: "existence join on k = k",
    }
    for kind, title in titles.items():
        assert (operator(kind).title, operator(kind).kind) == (title, "bilinear")
        assert operator(kind).retracts == (kind != SEMI)
    keys = ("join1.left", "join1.right", "join1.right_keys", "join1.left_keys")
    assert operator("full outer", 2).keeps == dict.fromkeys(keys, "k, t")
    assert operator(SEMI).keeps == {"join1.left": "k", "join1.right_keys": "k"}
    pairs = Counting("full outer", Path(), "whole").pairs.node
    assert pairs.title == "join on k = k, with the rows of the left and the right side"
    counts = Counting(SEMI, Path(), "whole").counts[0].node
    assert (counts.title, counts.keeps) == ("counted", {"matches0": "k, t, x"})
    assert not counts.retracts
    assert Counting(ANTI, Path(), "whole").counts[0].node.retracts
