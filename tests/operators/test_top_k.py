"""The first rows of each key, kept without Spark, against the same told row by row in Python."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from decimal import Decimal
from functools import cmp_to_key
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.keys import hashed_schema, with_hash
from headwater.files import Files
from headwater.operators.ranking import Order, Ranking
from headwater.operators.stateless import Constant
from headwater.operators.top_k import TopK, partial_top_k, top_k_rows
from headwater.plan.operators import Field
from headwater.plan.physical import Given
from headwater.state.arrangement import Arrangement
from headwater.state.files import LocalStateFiles
from headwater.state.run import Run
from headwater.state.run_file import RunFile
from tests.operators.running import WAYS, Running

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "number": (pa.int64(), [None, -(2**63), -1, 0, 1, 2**63 - 1]),
    "float": (pa.float64(), [None, math.nan, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf]),
    "text": (pa.string(), [None, "", "a", "B", "b", "é", "z\U0001f600"]),
    "decimal": (pa.decimal128(20, 2), [None, Decimal("-1.00"), Decimal("0.10"), Decimal("99999999999999999.99")]),
    "day": (pa.date32(), [None, date(1900, 1, 1), date(2026, 11, 16)]),
    "flag": (pa.bool_(), [None, False, True]),
}
KEY = Field("key", pa.int64())
COLUMNS = (KEY, *(Field(name, kind) for name, (kind, _) in VALUES.items()))
Row = tuple[Any, ...]


def made(rows: list[Row], weights: list[int] | None = None) -> pa.Table:
    """Rows as a change by their key."""
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(COLUMNS)]
    table = pa.table(columns, names=[field.name for field in COLUMNS])
    table = table.append_column(WEIGHT, pa.array(weights or [1] * len(rows), pa.int64()))
    return with_hash(table, ["key"])


def some(random: Random, count: int) -> list[Row]:
    return [
        (random.choice([None, 1, 2, 3]), *(random.choice(values) for _, values in VALUES.values()))
        for _ in range(count)
    ]


def operator(limit: int, orders: tuple[Order, ...], *, forgets: bool) -> TopK:
    output = (*COLUMNS, Field("place", pa.int32()))
    first = Ranking(limit, orders, "place")
    source = Constant(COLUMNS)
    return TopK(output, inputs=(source,), keys=(("key",),), selects=True, forgets=forgets, first=first, name="r")


def value_order(one: Any, other: Any) -> int:
    """As Spark orders two values of a type, neither of them null."""
    if isinstance(one, float) and (math.isnan(one) or math.isnan(other)):
        return int(math.isnan(one)) - int(math.isnan(other))
    if isinstance(one, str):
        one, other = one.encode(), other.encode()
    return int(one > other) - int(one < other)


def row_order(orders: tuple[Order, ...]) -> Any:
    places = {field.name: place for place, field in enumerate(COLUMNS)}

    def compare(one: Row, other: Row) -> int:
        for order in orders:
            left, right = one[places[order.column]], other[places[order.column]]
            if left is None or right is None:
                found = (int(left is not None) - int(right is not None)) * (1 if order.nulls_first else -1)
            else:
                found = value_order(left, right) * (1 if order.ascending else -1)
            if found:
                return found
        return 0

    return cmp_to_key(compare)


def bits(row: Row) -> Row:
    return tuple(("nan",) if isinstance(v, float) and math.isnan(v) else repr(v) for v in row)


def check(given: Counter[Row], orders: tuple[Order, ...], limit: int, table: pa.Table) -> None:
    """Every key has as many rows as it can, numbered from 1, and they are the first ones."""
    names = [field.name for field in COLUMNS]
    found: dict[Any, list[tuple[int, Row]]] = {}
    for values, weight in zip(table.select([*names, "place"]).to_pylist(), table[WEIGHT].to_pylist(), strict=True):
        assert weight == 1
        found.setdefault(values["key"], []).append((values["place"], tuple(values[name] for name in names)))
    key = row_order(orders)
    for number in {row[0] for row in given}:
        rows = sorted((row for row in given.elements() if row[0] == number), key=key)
        got = sorted(found.pop(number), key=lambda pair: pair[0])
        assert [place for place, _ in got] == list(range(1, min(limit, len(rows)) + 1))
        for (_, mine), expected in zip(got, rows, strict=False):
            assert key(mine) == key(expected), (mine, expected)
        spare = Counter(map(bits, rows))
        spare.subtract(Counter(bits(row) for _, row in got))
        assert min(spare.values()) >= 0
    assert not found


@pytest.mark.parametrize("seed", range(60))
def test_first_rows_are_kept_under_insertions_and_deletions(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    pool = some(random, 12) if seed % 2 else []
    orders = tuple(
        Order(name, random.random() < 0.5, random.random() < 0.5)
        for name in random.sample(list(VALUES), random.randint(0, 3))
    )
    limit, only_comes = random.choice([1, 1, 2, 5]), random.random() < 0.5
    node = operator(limit, orders, forgets=only_comes)
    files = Files()
    inputs: list[Run] = []
    outputs: list[Run] = []
    given: Counter[Row] = Counter()
    for tick in range(6):
        count = random.choice([0, 1, 5, 40])
        change: Counter[Row] = Counter(random.choices(pool, k=count) if pool else some(random, count))
        if not only_comes:
            for row in random.sample(list(given), min(len(given), random.randint(0, 8))):
                change[row] -= random.randint(1, given[row])
        rows = [row for row, weight in change.items() if weight]
        if not rows:
            continue
        given.update(change)
        given = +given
        table = consolidate(made(rows, [change[row] for row in rows]))
        held = Arrangement(LocalStateFiles(str(tmp_path)), hashed_schema(node.inputs[0].schema), inputs)
        old = Arrangement(LocalStateFiles(str(tmp_path)), node.states[0].schema, outputs)
        made_now = node.operate([Given([table], held, is_settled=True)], [old], _spark, filling=False)
        (result,) = made_now.result
        assert isinstance(result, pa.Table)
        assert result.num_rows == consolidate(result).num_rows, "the same row comes and goes"
        for runs, part in ((inputs, table), (outputs, result)):
            if part.num_rows:
                file = RunFile(LocalStateFiles(str(tmp_path), files), f"{tick}-{len(runs)}-{runs is inputs}.runs")
                runs.append(file.add(part))
                file.finish()
        now = list(Arrangement(LocalStateFiles(str(tmp_path)), node.states[0].schema, outputs).scan())
        check(given, orders, limit, pa.concat_tables(now) if now else node.states[0].schema.empty_table())


@pytest.mark.parametrize("forgets", [False, True], ids=["all", "only come"])
@pytest.mark.parametrize("seed", range(4))
def test_first_rows_are_the_same_in_ranges_and_of_parts(seed: int, forgets: bool, tmp_path: Path) -> None:
    random = Random(seed)
    pool = [(*row[:2], None, *row[3:]) for row in some(random, 12)]  # NaN is not NaN in Python
    orders = (Order("number", ascending=False, nulls_first=False), Order("text", ascending=True, nulls_first=True))
    ways = [Running(operator(2, orders, forgets=forgets), tmp_path / way, way) for way in WAYS]
    given: Counter[Row] = Counter()
    for _ in range(5):
        change: Counter[Row] = Counter(random.choices(pool, k=6))
        if not forgets:
            for row in random.sample(sorted(given, key=repr), min(len(given), 3)):
                change[row] -= random.randint(1, given[row])
        given = +Counter({row: given[row] + change[row] for row in given | change})
        for each in ways:
            each.take(change)
        assert ways[0].emitted == ways[1].emitted
        assert all(weight == 1 for weight in ways[0].emitted.values())


def test_it_tells_what_it_does_and_keeps() -> None:
    node = operator(1, (), forgets=False)
    assert (
        node.work
        == "compares the change with the rows it has given; looks at all rows of its key when one of those leaves"
    )
    assert node.keeps == {"r.0": "key", "r.result": "key"}
    assert operator(1, (), forgets=True).keeps == {"r.result": "key"}
    assert node.states[0].spare == ("place",)
    assert operator(2, (), forgets=False).states[0].spare == ()


def _spark(tables: Any) -> pa.Table:
    raise AssertionError(tables)


@pytest.mark.parametrize("seed", range(10))
def test_ties_do_not_depend_on_how_rows_arrived(seed: int) -> None:
    random = Random(seed)
    rows = list({bits(row): row for row in some(random, 60)}.values())
    first = Ranking(2, (Order("flag", ascending=True, nulls_first=True),), "place")
    schema = operator(2, first.order, forgets=True).states[0].schema
    answers = set()
    for _ in range(4):
        random.shuffle(rows)
        table = top_k_rows(first, ["key"], made(rows), schema).drop_columns([HASH])
        answers.add(tuple(sorted(str(bits(tuple(row.values()))) for row in table.to_pylist())))
    assert len(answers) == 1


def test_keys_with_one_hash_are_kept_apart() -> None:
    rows = made([(1, *[None] * 6), (2, *[None] * 6), (1, 5, *[None] * 5)])
    place = rows.schema.get_field_index(HASH)
    rows = rows.set_column(place, HASH, pa.array(np.zeros(3, np.int64)))
    first = Ranking(1, (Order("number", ascending=False, nulls_first=False),), "place")
    table = top_k_rows(first, ["key"], rows, operator(1, first.order, forgets=True).states[0].schema)
    assert sorted((row["key"], row["number"]) for row in table.to_pylist()) == [(1, 5), (2, None)]


@pytest.mark.parametrize("seed", range(20))
def test_only_what_can_be_among_the_first_rows_goes_on(seed: int) -> None:
    random = Random(seed)
    pool = some(random, 12)
    orders = tuple(Order(name, random.random() < 0.5, nulls_first=False) for name in random.sample(list(VALUES), 2))
    first = Ranking(random.choice([1, 2, 5]), orders, "place")
    given = [Counter(random.choices(pool, k=20)) for _ in range(2)]
    parts = [partial_top_k(first, ["key"], made(list(each), list(each.values()))) for each in given]
    assert all(part.num_rows <= first.limit * 4 for part in parts)
    node = operator(first.limit, orders, forgets=True)
    found = top_k_rows(first, ["key"], pa.concat_tables(parts), node.states[0].schema)
    check(given[0] + given[1], orders, first.limit, found)
