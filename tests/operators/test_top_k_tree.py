"""The first rows of keys kept as trees, without Spark, against the same told row by row in Python."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from headwater.operators import trie
from headwater.operators.ranking import Order, Ranking
from headwater.operators.stateless import Constant
from headwater.operators.top_k_tree import TopKTree
from headwater.plan.operators import Field
from tests.operators.running import WAYS, Row, Running
from tests.operators.test_top_k import COLUMNS, VALUES, row_order, some
from tests.operators.test_tree import kept


def tree(keys: tuple[str, ...], ranking: Ranking, offset: int) -> TopKTree:
    output = (*COLUMNS, Field("place", pa.int32()))
    return TopKTree(output, child=Constant(COLUMNS), keys=keys, ranking=ranking, offset=offset, name="t")


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trie, "LEAF_ROWS", 4)


def right(emitted: Counter[Row], rows: Counter[Row], node: TopKTree) -> None:
    """Every key has as many rows as it can, numbered behind the offset, and they are those in the order."""
    order, ranking = row_order(node.ranking.order), node.ranking
    found: dict[Row, list[Row]] = {}
    for row, count in emitted.items():
        assert count == 1
        found.setdefault(row[: len(node.keys)], []).append(row)
    for key in {row[: len(node.keys)] for row in rows}:
        mine = sorted((row for row in rows.elements() if row[: len(node.keys)] == key), key=order)
        got = sorted(found.pop(key, []), key=lambda row: row[-1])
        expected = mine[node.offset : ranking.limit]
        assert [row[-1] for row in got] == list(range(node.offset + 1, node.offset + 1 + len(expected)))
        for one, other in zip(got, expected, strict=True):
            assert order(one) == order(other)
        spare = Counter(mine)
        spare.subtract(row[:-1] for row in got)
        assert min(spare.values()) >= 0
    assert not found


@pytest.mark.parametrize("seed", range(8))
def test_first_rows_are_right_and_kept_as_if_made_at_once(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    names = random.sample(list(VALUES), random.randint(0, 3))
    orders = tuple(Order(name, random.random() < 0.5, random.random() < 0.5) for name in names)
    keys, offset = random.choice([("key",), ()]), random.choice([0, 0, 2, 7])
    node = tree(keys, Ranking(offset + random.choice([1, 3, 10]), orders, "place"), offset)
    running, rows = Running(node, tmp_path / "ticks", WAYS[seed % 2]), Counter[Row]()
    pool = [(*row[:2], 1.5 if row[2] != row[2] else row[2], *row[3:]) for row in some(random, 150)]
    pool = [(*row[:2], None if row[2] == 0 else row[2], *row[3:]) for row in pool]  # NaN, and -0.0, in Python
    for number in range(8):
        change: Counter[Row] = Counter(random.choices(pool, k=random.choice([0, 1, 5, 100])))
        shown = list(dict.fromkeys(row[:-1] for row in running.emitted))
        gone = random.sample(shown, len(shown) // 2) if random.random() < 0.7 else list(rows)
        for row in gone:
            change[row] -= rows[row]
        rows = +Counter({row: rows[row] + change[row] for row in rows | change})
        running.take(change)
        right(running.emitted, rows, node)
        at_once = Running(node, tmp_path / str(number))
        at_once.take(rows)
        assert kept(running) == kept(at_once)
        assert running.emitted == at_once.emitted
