"""Groups kept as accumulators, without Spark, against the same added up row by row in Python."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.keys import with_hash
from headwater.errors import HeadwaterError
from headwater.evaluation.errors import EvaluationFailed
from headwater.operators.accumulate import (
    Aggregate,
    accumulate,
    accumulate_partials,
    partial_aggregate,
    state_schema,
)
from headwater.operators.aggregate_call import AggregateCall
from headwater.operators.stateless import Constant
from headwater.plan.operators import Field
from headwater.state.arrangement import Arrangement
from headwater.state.files import LocalStateFiles
from headwater.state.run import Run
from headwater.state.run_file import RunFile
from tests.operators.running import WAYS, Running

Row = tuple[Any, ...]
COLUMNS = (
    Field("key", pa.int64()),
    Field("number", pa.int64()),
    Field("money", pa.decimal128(12, 2)),
    Field("text", pa.string()),
    Field("flag", pa.bool_()),
)
NUMBERS = [None, -5, 0, 1, 7, 10**12]
MONEY = [None, Decimal("-0.01"), Decimal("0.00"), Decimal("3.50"), Decimal("999999.99")]
CALLS = (
    AggregateCall("Count", (), Field("rows", pa.int64())),
    AggregateCall("Count", ("text",), Field("texts", pa.int64())),
    AggregateCall("Count", ("number",), Field("flagged", pa.int64()), "flag"),
    AggregateCall("Sum", ("number",), Field("total", pa.int64())),
    AggregateCall("Sum", ("money",), Field("cents", pa.decimal128(22, 2)), "flag"),
    AggregateCall("Average", ("number",), Field("mean", pa.float64())),
    AggregateCall("VariancePop", ("number",), Field("variance", pa.float64())),
    AggregateCall("Any", ("flag",), Field("any", pa.bool_())),
    AggregateCall("Every", ("flag",), Field("every", pa.bool_())),
)


def some(random: Random, count: int) -> list[Row]:
    return [
        (
            random.choice([None, 1, 2, 3]),
            random.choice(NUMBERS),
            random.choice(MONEY),
            random.choice([None, "", "a"]),
            random.choice([None, False, True]),
        )
        for _ in range(count)
    ]


def made(change: Counter[Row], keys: Sequence[str] = ("key",)) -> pa.Table:
    """A change by its key, every row once."""
    rows = [row for row, weight in change.items() if weight]
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(COLUMNS)]
    table = pa.table(columns, names=[field.name for field in COLUMNS])
    table = table.append_column(WEIGHT, pa.array([change[row] for row in rows], pa.int64()))
    return with_hash(table, list(keys))


def operator(keys: tuple[str, ...] = ("key",), calls: tuple[AggregateCall, ...] = CALLS) -> Aggregate:
    shown = tuple(field for field in COLUMNS if field.name in keys)
    output = (*shown, *(call.result for call in calls))
    return Aggregate(output, child=Constant(COLUMNS), keys=keys, calls=calls, name="aggregate1")


def expected(given: Counter[Row], *, keyed: bool) -> dict[Any, Row]:
    """What each group is, told from all of its rows."""
    groups: dict[Any, list[Row]] = {} if keyed else {None: []}
    for row in given.elements():
        groups.setdefault(row[0] if keyed else None, []).append(row)
    return {key: _told(rows) for key, rows in groups.items()}


def _told(rows: list[Row]) -> Row:
    numbers = [row[1] for row in rows if row[1] is not None]
    cents = [row[2] for row in rows if row[2] is not None and row[4]]
    flags = [row[4] for row in rows if row[4] is not None]
    return (
        len(rows),
        sum(row[3] is not None for row in rows),
        sum(row[1] is not None and bool(row[4]) for row in rows),
        sum(numbers) if numbers else None,
        sum(cents, Decimal(0)) if cents else None,
        sum(numbers) / len(numbers) if numbers else None,
        float(statistics.pvariance(numbers)) if numbers else None,
        any(flags) if flags else None,
        all(flags) if flags else None,
    )


class Kept:
    """The state of an operator, and what it has emitted so far."""

    def __init__(self, node: Aggregate, folder: Path) -> None:
        self.node = node
        self._folder = str(folder)
        self._runs: list[Run] = []
        self._emitted: Counter[Row] = Counter()

    @property
    def state(self) -> Arrangement:
        return Arrangement(LocalStateFiles(self._folder), state_schema(self.node), tuple(self._runs))

    def take(self, state: pa.Table, result: pa.Table) -> None:
        """Keep a change of the state, and add the change of the result to what was emitted."""
        if state.num_rows:
            file = RunFile(LocalStateFiles(self._folder), f"{len(self._runs)}.runs")
            self._runs.append(file.add(state))
            file.finish()
        names = [field.name for field in self.node.output]
        rows = zip(*(result.column(name).to_pylist() for name in names), strict=True)
        for row, weight in zip(rows, result.column(WEIGHT).to_pylist(), strict=True):
            self._emitted[row] += weight
        assert min(self._emitted.values(), default=0) >= 0, "something is taken back that was never given"

    @property
    def shown(self) -> dict[Any, Row]:
        found = list((+self._emitted).elements())
        if self.node.keys:
            assert len({row[0] for row in found}) == len(found), "a group is there twice"
            return {row[0]: row[1:] for row in found}
        return {None: row} if (row := next(iter(found), None)) is not None else {}


def added(given: Counter[Row], change: Counter[Row]) -> Counter[Row]:
    """The rows that are there after a change."""
    return +Counter({row: given[row] + change[row] for row in given | change})


def changes(random: Random, ticks: int) -> Iterator[tuple[Counter[Row], Counter[Row]]]:
    """Rows that come, several times too, and go; each change with all rows that are there after it."""
    given: Counter[Row] = Counter()
    for _ in range(ticks):
        change = Counter(some(random, random.choice([0, 1, 4, 30])))
        for row in random.sample(sorted(given, key=repr), min(len(given), random.choice([0, 3, 40]))):
            change[row] -= random.randint(1, given[row])
        given = added(given, change)
        yield change, given


def check(kept: Kept, given: Counter[Row]) -> None:
    right = expected(given, keyed=bool(kept.node.keys))
    assert kept.shown.keys() == right.keys()
    for key, row in kept.shown.items():
        assert row == pytest.approx(right[key], rel=1e-9), key


@pytest.mark.parametrize("keys", [("key",), ()])
@pytest.mark.parametrize("seed", range(6))
def test_groups_follow_rows_that_come_and_go(seed: int, keys: tuple[str, ...], tmp_path: Path) -> None:
    kept = Kept(operator(keys), tmp_path)
    for change, given in changes(Random(seed), 8):
        table = consolidate(made(change, keys))
        if not table.num_rows and (keys or kept.shown):
            continue
        state, result, _ = accumulate(kept.node, table, kept.state)
        kept.take(state, result)
        check(kept, given)


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_a_change_add_up_to_all_of_it(seed: int, tmp_path: Path) -> None:
    kept, random = Kept(operator(), tmp_path), Random(seed)
    for change, given in changes(random, 6):
        parts = [Counter[Row](), Counter[Row]()]
        for row, weight in change.items():
            random.choice(parts)[row] += weight
        tables = [made(part) for part in parts if any(part.values())]
        if not tables:
            continue
        partials = [partial_aggregate(kept.node, table) for table in tables]
        state, result, _ = accumulate_partials(kept.node, partials, kept.state)
        kept.take(state, result)
        check(kept, given)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("keys", [("key",), ()])
@pytest.mark.parametrize("seed", range(2))
def test_groups_are_the_same_on_either_way(seed: int, keys: tuple[str, ...], way: str, tmp_path: Path) -> None:
    running = Running(operator(keys), tmp_path, way)
    for change, given in changes(Random(seed), 4):
        running.take(change)
        groups = {row[0] if keys else None: row[len(keys) :] for row in running.emitted.elements()}
        right = expected(given, keyed=bool(keys))
        if given or keys:
            assert groups.keys() == right.keys()
            assert all(groups[key] == pytest.approx(right[key], rel=1e-9) for key in groups)


def test_it_tells_what_it_does_and_keeps() -> None:
    assert operator().title == "group by key: , , , , , , , , "
    assert operator(calls=()).title == "distinct key"
    assert operator().keeps == {"aggregate1": "key"}
    assert operator(()).keeps == {"aggregate1": "everything"}
    assert (operator().arranged_by, operator().is_whole, operator(()).is_whole) == (("key",), False, True)
    assert operator().retracts
    assert not operator(calls=()).retracts


def test_only_touched_groups_are_read(tmp_path: Path) -> None:
    kept = Kept(operator(), tmp_path)
    many = Counter([(key, 1, None, "a", True) for key in range(1000)])
    kept.take(*accumulate(kept.node, made(many), kept.state)[:2])
    state, result, read = accumulate(kept.node, made(Counter([(7, 2, None, "b", True)])), kept.state)
    assert read == 1
    assert state.num_rows == result.num_rows == 2


def test_a_change_that_cancels_out_changes_nothing(tmp_path: Path) -> None:
    kept = Kept(operator(calls=CALLS[:1]), tmp_path)
    kept.take(*accumulate(kept.node, made(Counter([(1, 1, None, "a", True)])), kept.state)[:2])
    swap = made(Counter({(1, 1, None, "a", True): -1, (1, 5, None, "b", None): 1}))
    state, result, _ = accumulate(kept.node, swap, kept.state)
    assert state.num_rows == result.num_rows == 0


def test_groups_with_one_hash_are_kept_apart(tmp_path: Path) -> None:
    kept = Kept(operator(), tmp_path)

    def alike(change: Counter[Row]) -> pa.Table:
        table = made(change)
        zeros = pa.array(np.zeros(table.num_rows, np.int64))
        return table.set_column(table.schema.get_field_index(HASH), HASH, zeros)

    first = Counter([(1, 4, None, "a", True), (2, 6, None, "a", True)])
    kept.take(*accumulate(kept.node, alike(first), kept.state)[:2])
    second = Counter([(2, 1, None, "a", True), (None, 9, None, None, None)])
    kept.take(*accumulate(kept.node, alike(second), kept.state)[:2])
    check(kept, first + second)


def test_more_rows_taken_than_there_were_is_a_fault_of_ours(tmp_path: Path) -> None:
    kept = Kept(operator(), tmp_path)
    with pytest.raises(HeadwaterError, match="disappeared more often than it came"):
        accumulate(kept.node, made(Counter({(1, 1, None, "a", True): -1})), kept.state)


def test_a_sum_that_does_not_fit_names_its_rows_and_comes_back_when_it_fits(tmp_path: Path) -> None:
    kept = Kept(operator(calls=CALLS[3:4]), tmp_path)
    large = (1, 2**63 - 1, None, None, None)
    with pytest.raises(EvaluationFailed, match="ARITHMETIC_OVERFLOW") as failed:
        accumulate(kept.node, made(Counter({large: 2, (2, 1, None, None, None): 1})), kept.state)
    assert str(2**63 - 1) in str(failed.value.row)
    state, result, _ = accumulate(
        kept.node, made(Counter({large: 2, (1, -(2**63) + 1, None, None, None): 1})), kept.state
    )
    kept.take(state, result)
    assert kept.shown == {1: (2**63 - 1,)}


def test_more_text_than_one_column_of_arrows_can_have_is_accumulated(tmp_path: Path) -> None:
    long, short = pa.array(["x" * 100_000_000]), pa.array(["y"])
    weights = pa.array([0] * 22 + [1])  # so that nobody has to compare the long ones
    columns = [pa.array([1] * 23), pa.chunked_array([*[long] * 22, short]), weights]
    change = with_hash(pa.Table.from_arrays(columns, ["key", "text", WEIGHT]), ("key",))
    assert change.nbytes > 1 << 31
    fields = Field("key", pa.int64()), Field("text", pa.string())
    call = AggregateCall("Max", ("text",), Field("most", pa.string()))
    node = Aggregate((fields[0], call.result), child=Constant(fields), keys=("key",), calls=(call,), name="n0")
    _, result, _ = accumulate(node, change, Arrangement(LocalStateFiles(str(tmp_path)), state_schema(node), ()))
    assert result.select(["key", "most"]).to_pylist() == [{"key": 1, "most": "y"}]
