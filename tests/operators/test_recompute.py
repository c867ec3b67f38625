"""Keys evaluated anew, here by Python in the place of Spark, against the same told from all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from headwater.change import HASH
from headwater.evaluation import PLACE
from headwater.evaluation.errors import EvaluationFailed, OwnFault
from headwater.operators.recompute import Recompute
from headwater.operators.stateless import Constant
from headwater.plan.operators import Field
from headwater.plan.physical import Given
from tests.operators.running import WAYS, Row, Running, changed

LONG = pa.int64()
COLUMNS = (Field("key", LONG), Field("number", LONG))
OUTPUT = (Field("key", LONG), Field("all", pa.string()))


def operator(inputs: int = 1, *, keyed: bool = True, matches: bool = False) -> Recompute:
    keys = (("key",) if keyed else (),) * inputs
    nodes = tuple(Constant(COLUMNS) for _ in range(inputs))
    return Recompute(OUTPUT, inputs=nodes, keys=keys, matches=matches, name="r1", text="all in order", reason="so")


def listed(tables: Sequence[pa.Table]) -> pa.Table:
    """For each key the numbers of all inputs: what Spark might be asked to evaluate."""
    found: dict[Any, tuple[int, list[str]]] = {}
    for table in tables:
        assert table.column(PLACE).to_pylist() == list(range(table.num_rows))
        for row in table.to_pylist():
            found.setdefault(row["key"], (row[HASH], []))[1].append(str(row["number"]))
            if row["number"] == 13:
                raise EvaluationFailed("it is thirteen")
    columns = [
        list(found),
        [", ".join(sorted(each)) for _, each in found.values()],
        [hashed for hashed, _ in found.values()],
    ]
    schema = pa.schema([*(field.arrow for field in OUTPUT), pa.field(HASH, pa.int64())])
    return pa.table(
        [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)], schema=schema
    )


def expected(inputs: Sequence[Counter[Row]]) -> Counter[Row]:
    found: dict[Any, list[str]] = {}
    for given in inputs:
        for key, number in given.elements():
            found.setdefault(key, []).append(str(number))
    return Counter((key, ", ".join(sorted(numbers))) for key, numbers in found.items())


def moved(random: Random, given: Counter[Row]) -> Counter[Row]:
    change = Counter(
        (random.choice([None, 1, 2, 3]), random.choice([None, 4, 5, 6])) for _ in range(random.choice([0, 1, 8]))
    )
    for row in random.sample(sorted(given, key=repr), min(len(given), random.choice([0, 3]))):
        change[row] -= random.randint(1, given[row])
    return change


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_touched_keys_are_what_all_their_rows_say(seed: int, inputs: int, way: str, tmp_path: Path) -> None:
    random, node = Random(seed), Running(operator(inputs), tmp_path, way, listed)
    given = [Counter[Row]() for _ in range(inputs)]
    for _ in range(6):
        changes = [moved(random, each) for each in given]
        node.take(*changes)
        given = [
            +Counter({row: held[row] + change[row] for row in held | change})
            for held, change in zip(given, changes, strict=True)
        ]
        assert node.emitted == expected(given)


def test_two_steps_give_what_one_does(tmp_path: Path) -> None:
    node = operator()
    running = Running(node, tmp_path, evaluate=listed)
    running.take(Counter({(1, 4): 2, (2, 5): 1}))
    change = running._hashed(node.exchanges[0], changed(COLUMNS, Counter({(1, 4): -1, (3, 6): 1})))
    held = [running.held(each.state, each.schema) for each in node.exchanges]
    inputs, states = [Given([change], held[0])], [running.held(each.name, each.schema) for each in node.states]
    asked = node.asked(0, inputs, states, filling=False)
    assert asked.select(["key", "number"]).to_pylist() == [{"key": 1, "number": 4}, {"key": 3, "number": 6}]
    one, other = (
        node.operate(inputs, states, listed, filling=False),
        node.answered(inputs, states, listed([asked]), filling=False),
    )
    assert one.table().sort_by("all").equals(other.table().sort_by("all"))
    assert [rows and rows.num_rows for rows in one.kept] == [rows and rows.num_rows for rows in other.kept]


def test_only_touched_keys_are_evaluated(tmp_path: Path) -> None:
    seen: list[int] = []

    def evaluate(tables: Sequence[pa.Table]) -> pa.Table:
        seen.append(tables[0].num_rows)
        return listed(tables)

    node = Running(operator(), tmp_path, evaluate=evaluate)
    node.take(Counter((key, 4) for key in range(100)))
    node.take(Counter([(7, 5), (8, 6)]))
    node.take(Counter())
    assert seen == [100, 4]


def test_without_keys_everything_is_evaluated_at_once(tmp_path: Path) -> None:
    node = Running(operator(keyed=False), tmp_path, "in ranges", listed)
    node.take(Counter([(1, 4), (2, 5)]))
    node.take(Counter([(1, 5)]))
    assert node.emitted == Counter([(1, "4, 5"), (2, "5")])


def test_rows_with_a_null_in_a_key_that_matches_are_each_for_themselves(tmp_path: Path) -> None:
    node = operator(matches=True)
    change = changed(COLUMNS, Counter([(None, 4), (None, 5), (None, 6)]))
    hashed = Running(node, tmp_path)._hashed(node.exchanges[0], change)
    assert len(set(hashed.column(HASH).to_pylist())) == 3


def test_a_row_that_cannot_be_evaluated_is_named(tmp_path: Path) -> None:
    node = Running(operator(2), tmp_path, evaluate=listed)
    node.take(Counter([(1, 4)]), Counter([(1, 5)]))
    with pytest.raises(EvaluationFailed, match="it is thirteen") as failed:
        node.take(Counter((key, 4) for key in range(50)), Counter({(1, 13): 1, (2, 5): 1}))
    assert failed.value.row == '{"key":1,"number":13}'


def test_a_bug_is_not_tried_again_on_fewer_rows(tmp_path: Path) -> None:
    tries: list[int] = []

    def evaluate(tables: Sequence[pa.Table]) -> pa.Table:
        tries.append(tables[0].num_rows)
        raise OwnFault("KeyError")

    with pytest.raises(OwnFault):
        Running(operator(), tmp_path, evaluate=evaluate).take(Counter((key, 4) for key in range(50)))
    assert tries == [50]


def test_it_tells_what_it_does_and_keeps() -> None:
    assert operator().work == "evaluates all rows of the touched keys anew: so"
    assert operator(keyed=False).work == "evaluates everything anew, whatever changed: so"
    assert operator(2).keeps == {"r1.0": "key", "r1.1": "key", "r1.result": "key"}
    assert operator().arranged_by == ()
    assert operator(keyed=False).is_whole
