"""Pairs of rows, kept as both sides come and go, against all pairs of all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from headwater.operators.join import PAIRS, Join
from headwater.operators.stateless import Constant
from headwater.plan.operators import Field
from headwater.plan.physical import Made
from tests.operators.running import WAYS, Row, Running

LONG, TEXT = pa.int64(), pa.string()
LEFT = (Field("a1", LONG), Field("a2", TEXT), Field("a3", LONG))
RIGHT = (Field("b1", LONG), Field("b2", TEXT), Field("b3", LONG))
KEYS = {"one key": 1, "two keys": 2, "all pairs": 0}


def operator(keys: int) -> Join:
    left, right = (tuple(f"{side}{place}" for place in range(1, keys + 1)) for side in "ab")
    return Join(
        (*LEFT, *RIGHT), left=Constant(LEFT), right=Constant(RIGHT), left_keys=left, right_keys=right, name="join1"
    )


def some(random: Random, count: int) -> Counter[Row]:
    values = ([None, 1, 2, 3, 4], [None, "", "a"], [7, 8])
    return Counter(tuple(random.choice(each) for each in values) for _ in range(count))


def expected(left: Counter[Row], right: Counter[Row], keys: int) -> Counter[Row]:
    pairs: Counter[Row] = Counter()
    for one, times in left.items():
        for other, others in right.items():
            if one[:keys] == other[:keys] and None not in one[:keys]:
                pairs[one + other] += times * others
    return pairs


def moved(random: Random, given: Counter[Row], most: int) -> Counter[Row]:
    """A change: rows come, and some of those that are there go."""
    change = some(random, random.choice([0, 1, most]))
    for row in random.sample(sorted(given, key=repr), min(len(given), random.choice([0, 2, most]))):
        change[row] -= random.randint(1, given[row])
    return change


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("seed", range(3))
def test_pairs_follow_rows_of_both_sides(seed: int, keys: int, way: str, tmp_path: Path) -> None:
    random, join = Random(seed), Running(operator(keys), tmp_path, way)
    left, right = Counter[Row](), Counter[Row]()
    for _ in range(6):
        changes = moved(random, left, 12), moved(random, right, 12)
        join.take(*changes)
        left, right = (
            +Counter({row: given[row] + change[row] for row in given | change})
            for given, change in zip((left, right), changes, strict=True)
        )
        assert join.emitted == expected(left, right, keys)


def test_rows_that_come_and_go_on_both_sides_at_once_meet_once(tmp_path: Path) -> None:
    join = Running(operator(1), tmp_path)
    one, other, third = (1, "x", 7), (1, "y", 8), (1, "z", 9)
    assert join.take(Counter([one]), Counter([other])) == Counter([one + other])
    swapped = join.take(Counter({one: -1, third: 1}), Counter({other: -1, one: 1}))
    assert swapped == Counter({one + other: -1, third + one: 1})


class Seen(Running):
    """A join that remembers the pairs it made, as they are given to a further condition."""

    def __init__(self, node: Join, folder: Path) -> None:
        super().__init__(node, folder)
        self.pairs: set[Row] = set()

    def made_of(self, tables: Sequence[pa.Table], low: int, high: int) -> Made:
        made = super().made_of(tables, low, high)
        for part in made.parts():
            columns = [part.column(name).to_pylist() for name in self.node.schema.names]
            self.pairs.update(zip(*columns, strict=True))
        return made


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_were_never_together_are_in_no_pair(seed: int, tmp_path: Path) -> None:
    random, join = Random(seed), Seen(operator(1), tmp_path)
    left, right = Counter[Row](), Counter[Row]()
    for _ in range(8):
        changes = moved(random, left, 12), moved(random, right, 12)
        before, join.pairs = set(expected(left, right, 1)), set()
        join.take(*changes)
        left, right = (
            +Counter({row: given[row] + change[row] for row in given | change})
            for given, change in zip((left, right), changes, strict=True)
        )
        assert join.pairs <= before | set(expected(left, right, 1))


def test_only_rows_of_touched_keys_are_read(tmp_path: Path) -> None:
    join = Running(operator(1), tmp_path)
    many = Counter((key, "x", 7) for key in range(1000))
    join.take(many, many)
    join.take(Counter([(17, "y", 7)]), Counter())
    assert join.read == 1


def test_rows_with_a_null_in_their_key_are_not_even_kept(tmp_path: Path) -> None:
    join = Running(operator(2), tmp_path)
    join.take(Counter([(None, "x", 7), (1, None, 7), (1, "x", 7)]), Counter([(None, "x", 7)]))
    assert (join.kept("join1.left"), join.kept("join1.right")) == (1, 0)
    assert not join.emitted


def test_it_tells_what_it_does_and_keeps() -> None:
    assert operator(2).title == "join on a1, a2 = b1, b2"
    assert operator(2).keeps == {"join1.left": "a1, a2", "join1.right": "b1, b2"}
    assert operator(0).title == "join of all pairs"
    assert operator(0).work == PAIRS
    assert operator(0).keeps == {"join1.left": "everything", "join1.right": "everything"}
    assert operator(1).grows
    assert not operator(1).retracts
