"""Groups kept as trees, without Spark, against the same told row by row in Python.

The leaves are small here, so that a few rows have many: rows come and go until there is no group, and back.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from operator import and_, or_, xor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.change import WEIGHT
from headwater.change.keys import hashed_schema, with_hash
from headwater.operators import descent, growth, trie
from headwater.operators.aggregate_call import AggregateCall
from headwater.operators.stateless import Constant
from headwater.operators.tree import Tree
from headwater.plan.operators import Field
from headwater.plan.physical import Given
from headwater.store import LessThanNone
from tests.operators import running as operators_running
from tests.operators.running import WAYS, Row, Running, collided, never

COLUMNS = (
    Field("key", pa.string()),
    Field("number", pa.int64()),
    Field("float", pa.float64()),
    Field("text", pa.string()),
    Field("money", pa.decimal128(12, 2)),
    Field("flag", pa.bool_()),
)
PLACES = {field.name: place for place, field in enumerate(COLUMNS)}
FLOATS = [None, math.inf, -1.5, 0.0, 0.0, 0.1, 0.2, 0.3, 1e16, -1e16, 3.7]
TEXTS = [None, "", "a", "B", "é", "z\U0001f600"]
CALLS = (
    AggregateCall("Max", ("number",), Field("most", pa.int64())),
    AggregateCall("Min", ("text",), Field("least", pa.string())),
    AggregateCall("Max", ("float",), Field("top", pa.float64())),
    AggregateCall("Min", ("money",), Field("cheapest", pa.decimal128(12, 2)), "flag"),
    AggregateCall("Count", (), Field("rows", pa.int64())),
    AggregateCall("Count", ("text",), Field("texts", pa.int64()), "flag"),
    AggregateCall("Sum", ("number",), Field("total", pa.int64())),
    AggregateCall("Average", ("money",), Field("mean", pa.decimal128(16, 6))),
    AggregateCall("MaxBy", ("text", "number"), Field("last", pa.string())),
    AggregateCall("MinBy", ("money", "float"), Field("first", pa.decimal128(12, 2)), "flag"),
    AggregateCall("bit_and", ("number",), Field("all", pa.int64())),
    AggregateCall("bit_or", ("number",), Field("any", pa.int64()), "flag"),
    AggregateCall("bit_xor", ("number",), Field("odd", pa.int64())),
    AggregateCall("Sum", ("float",), Field("sum", pa.float64())),
)
BITS: dict[str, Callable[[int, int], int]] = {"bit_and": and_, "bit_or": or_, "bit_xor": xor}


def tree(*keys: str, calls: Sequence[AggregateCall] = CALLS) -> Tree:
    output = (*(COLUMNS[PLACES[key]] for key in keys), *(call.result for call in calls))
    return Tree(output, child=Constant(COLUMNS), keys=keys, calls=tuple(calls), name="tree1")


def some(random: Random, count: int) -> Counter[Row]:
    def one() -> Row:
        money = random.choice([None, Decimal(random.randrange(-500, 500)) / 100])
        flag = random.choice([None, True, False])
        number = random.choice([None, *range(30)])
        zero = -0.0 if flag else 0.0  # Python takes rows for the same that differ in that alone
        float_ = random.choice(FLOATS)
        return (
            random.choice("abbbbbbbb"),
            number,
            zero if float_ == 0 else float_,
            random.choice(TEXTS),
            money,
            flag,
        )

    return Counter(one() for _ in range(count))


def value(call: AggregateCall, rows: Counter[Row]) -> Any:
    """What a call gives for some rows."""
    if call.condition is not None:
        rows = Counter({row: count for row, count in rows.items() if row[PLACES[call.condition]]})
    if not call.arguments:
        return rows.total()
    if len(call.arguments) > 1:
        return by(call, rows)
    place = PLACES[call.arguments[0]]
    values = [row[place] for row in rows.elements() if row[place] is not None]
    if call.function == "Count":
        return len(values)
    if not values:
        return None
    if call.function in {"Min", "Max"}:
        key = (lambda each: each.encode()) if isinstance(values[0], str) else (lambda each: each)
        return (min if call.function == "Min" else max)(values, key=key)
    if call.function in BITS:
        return reduce(BITS[call.function], values)
    total = math.fsum(values) if isinstance(values[0], float) else sum(values)
    if call.function == "Sum":
        return total
    return (Decimal(total) / len(values)).quantize(Decimal("0.000001"), "ROUND_HALF_UP")


def by(call: AggregateCall, rows: Counter[Row]) -> Any:
    """The value in the row with the extreme; of those that are tied the greatest, null the least."""
    value, order = (PLACES[name] for name in call.arguments)
    found = [(row[order], row[value]) for row in rows if row[order] is not None]
    best = (max if call.function == "MaxBy" else min)((each for each, _ in found), default=None)
    tied = [each for extreme, each in found if extreme == best]
    texts = [each.encode() if isinstance(each, str) else each for each in tied if each is not None]
    most = max(texts, default=None)
    return most.decode() if isinstance(most, bytes) else most


def expected(rows: Counter[Row], keys: Sequence[str], calls: Sequence[AggregateCall]) -> dict[Row, list[Any]]:
    groups: dict[Row, Counter[Row]] = {} if keys else {(): Counter()}
    for row, count in rows.items():
        groups.setdefault(tuple(row[PLACES[key]] for key in keys), Counter())[row] = count
    return {key: [value(call, mine) for call in calls] for key, mine in groups.items()}


def check(running: Running, rows: Counter[Row], keys: Sequence[str]) -> None:
    """Every group is there once, with what its calls give."""
    found = {row[: len(keys)]: list(row[len(keys) :]) for row in running.emitted}
    assert running.emitted.total() == len(found)
    right = expected(rows, keys, CALLS)
    assert found.keys() == right.keys()
    for key, values in found.items():
        exact, total = values[:-1], values[-1]
        assert exact == right[key][:-1], key
        if total is None or right[key][-1] is None:
            assert total is right[key][-1]
        else:
            assert total == pytest.approx(right[key][-1], rel=1e-9, abs=100), key


def kept(running: Running) -> list[Counter[Any]]:
    """Every row of every state, bit by bit."""

    def bits(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(tuple(map(bits, row.values())) for row in value)
        return struct.pack("<d", value) if isinstance(value, float) else value

    found = []
    for state in running.node.states:
        rows: Counter[Any] = Counter()
        for table in running.held(state.name, state.schema).scan():
            for row in table.to_pylist():
                weight = row.pop(WEIGHT)
                rows[tuple(map(bits, row.values()))] += weight
        found.append(+rows)
    return found


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trie, "LEAF_ROWS", 4)


def steps(random: Random, count: int) -> list[Counter[Row]]:
    """Changes after which there are more or fewer rows, and sometimes none."""
    rows: Counter[Row] = Counter()
    made = []
    for _ in range(count):
        change = some(random, random.choice([0, 1, 5, 60, 150]))
        if random.random() < 0.6 and rows:
            part = random.choice([1, 2, len(rows) // 2, len(rows) - 1, len(rows)])
            for row in random.sample(sorted(rows, key=repr), min(part, len(rows))):
                change[row] -= rows[row] if random.random() < 0.8 else 1
        rows = +Counter({row: rows[row] + change[row] for row in rows | change})
        made.append(change)
    return made


@pytest.mark.parametrize("seed", range(6))
def test_groups_are_right_and_kept_as_if_made_at_once(seed: int, tmp_path: Path) -> None:
    keys, way = [("key",), (), ("key", "flag")][seed % 3], WAYS[seed % 2]
    running, rows = Running(tree(*keys), tmp_path / "ticks", way), Counter[Row]()
    for number, change in enumerate(steps(Random(seed), 8)):
        running.take(change)
        rows = +Counter({row: rows[row] + change[row] for row in rows | change})
        check(running, rows, keys)
        at_once = Running(tree(*keys), tmp_path / str(number))
        at_once.take(rows)
        assert kept(running) == kept(at_once)
        assert running.emitted == at_once.emitted


def test_rows_that_are_there_many_times_are_one_row_of_a_leaf(tmp_path: Path) -> None:
    running, rows = Running(tree("key"), tmp_path), Counter[Row]()
    for times in (2, 3, -4):
        change = Counter({("a", number, None, None, None, True): times for number in range(1, 9)})
        running.take(change)
        rows = +Counter({row: rows[row] + change[row] for row in rows | change})
        check(running, rows, ("key",))
    assert running.kept("tree1.rows") == 8


@pytest.mark.parametrize("shared", ["keys", "nodes"])
def test_what_has_the_same_hash_is_told_apart(shared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_hash(hashes: Any, *others: Any) -> Any:
        return np.zeros(len(others[0].groups) if shared == "nodes" else hashes.num_rows, np.int64)

    if shared == "keys":
        monkeypatch.setattr(operators_running, "with_hash", lambda table, key, **_: collided(with_hash(table, key)))
        monkeypatch.setattr(descent, "hashes", one_hash)
    else:
        monkeypatch.setattr(descent, "places", one_hash)
        monkeypatch.setattr(growth, "places", one_hash)
    running, rows = Running(tree("key"), tmp_path), Counter[Row]()
    for change in steps(Random(3), 6):
        running.take(change)
        rows = +Counter({row: rows[row] + change[row] for row in rows | change})
        check(running, rows, ("key",))


def test_a_row_that_goes_and_is_not_there_is_told(tmp_path: Path) -> None:
    running = Running(tree("key"), tmp_path)
    row = ("a", 1, None, None, None, None)
    running.take(Counter({row: 1}))
    with pytest.raises(LessThanNone):
        running.take(Counter({row: -2}))


def test_it_tells_what_it_does_and_keeps() -> None:
    node = tree("key")
    assert node.title.startswith("group by key: ")
    assert node.work == "looks at the leaves of touched rows, some hundred rows each, and at the nodes above"
    assert node.keeps == {"tree1": "key", "tree1.nodes": "key", "tree1.rows": "key"}
    assert tree().is_whole


def test_a_change_without_rows_is_none_of_any_type_of_key(tmp_path: Path) -> None:
    day, number = Field("day", pa.date32()), Field("number", pa.int64())
    call = AggregateCall("Max", ("number",), Field("most", pa.int64()))
    node = Tree((day, call.result), child=Constant((day, number)), keys=("day",), calls=(call,), name="tree1")
    running = Running(node, tmp_path)
    nothing = pa.Table.from_batches([], hashed_schema(node.child.schema))
    given = Given([nothing], running.held("", nothing.schema))
    made = node.operate(
        [given], [running.held(each.name, each.schema) for each in node.states], never, filling=True
    )
    assert made.table().num_rows == 0
