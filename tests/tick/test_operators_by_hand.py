"""Every kind of operator on both paths, without Spark: planned by hand, against plain Python in each tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.change import HASH
from headwater.evaluation.errors import EvaluationFailed
from headwater.operators import Aggregate, AggregateCall, Constant, Fragment, Order, Ranking, Recompute, TopK, Union
from headwater.plan.operators import Field, Fields, Node
from tests.crash import hand_engine
from tests.crash.hand_engine import LONG, TEXT, drive, source

Sale = tuple[int, str | None, int]
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Leaf:
    columns: Fields


@dataclass(frozen=True)
class Listing:
    """For each color the sizes of all inputs, as Spark might be asked to list them; 13 has no value."""

    leaves: tuple[Leaf, ...]
    outputs: Fields

    def __call__(self, tables: Sequence[pa.Table]) -> pa.Table:
        found: dict[Any, tuple[int, list[int]]] = {}
        for leaf, table in zip(self.leaves, tables, strict=True):
            color, size = (field.name for field in leaf.columns)
            for row in table.select([color, size, HASH]).to_pylist():
                if row[size] == 13:
                    raise EvaluationFailed("it is thirteen")
                found.setdefault(row[color], (row[HASH], []))[1].append(row[size])
        texts = [" ".join(map(str, sorted(sizes))) for _, sizes in found.values()]
        values = (list(found), texts, [hashed for hashed, _ in found.values()])
        schema = pa.schema([*(field.arrow for field in self.outputs), pa.field(HASH, LONG)])
        return pa.table([pa.array(*each) for each in zip(values, schema.types, strict=True)], schema=schema)


def sales(mark: str = "a") -> Node:
    return source("sales", **{f"{mark}1": ("color", TEXT), f"{mark}2": ("size", LONG)})


def clicks() -> Node:
    return source("clicks", a1=("color", TEXT), a2=("size", LONG))


def listed(*inputs: Node, keyed: bool = True) -> Recompute:
    output = (Field("z1", TEXT), Field("z2", TEXT))
    computing = Listing(tuple(Leaf(each.output) for each in inputs), output)
    keys = tuple((each.output[0].name,) if keyed else () for each in inputs)
    return Recompute(output, inputs=inputs, keys=keys, computing=computing, name="recompute1", text="listed")


def largest(child: Node, limit: int, *, forgets: bool = False) -> TopK:
    ranking = Ranking(limit, (Order("a2", ascending=False, nulls_first=False),), "a3")
    computing = Listing((Leaf(child.output),), ())
    plain = Recompute(
        (*child.output, Field("a3", pa.int32())),
        inputs=(child,),
        keys=(("a1",),),
        computing=computing,
        forgets=forgets,
        name="recompute1",
    )
    return TopK.of(plain, ranking)


def chosen(child: Node, *names: str) -> Node:
    output = tuple(field for name in names for field in child.output if field.name == name)
    return Fragment(output, child=child, passed=tuple((name, name) for name in names))


def total(child: Node) -> Aggregate:
    calls = (AggregateCall("Sum", ("a2",), Field("y1", LONG)), AggregateCall("Count", (), Field("y2", LONG)))
    output = (child.output[0], *(call.result for call in calls))
    return Aggregate(output, child=child, keys=("a1",), calls=calls, name="aggregate1")


def together() -> Node:
    """All sales, all clicks, and one row of the query's own, by color."""
    own = Constant((Field("c1", TEXT), Field("c2", LONG)), pa.table({"c1": ["red"], "c2": [1000]}))
    return total(Union((Field("a1", TEXT), Field("a2", LONG)), (sales(), sales("b"), clicks(), own)))


PLANS: dict[str, tuple[Callable[[], Node], str]] = {
    "listed": (lambda: listed(sales(), sales("b")), "color STRING, sizes STRING"),
    "everything": (lambda: listed(sales(), keyed=False), "color STRING, sizes STRING"),
    "largest": (lambda: chosen(largest(sales(), 1), "a1", "a2"), "color STRING, size BIGINT"),
    "two": (lambda: largest(sales(), 2), "color STRING, size BIGINT, place INT"),
    "clicked": (lambda: largest(clicks(), 2, forgets=True), "color STRING, size BIGINT, place INT"),
    "summed": (lambda: total(chosen(largest(sales(), 2), "a1", "a2")), "color STRING, size BIGINT, n BIGINT"),
    "together": (together, "color STRING, size BIGINT, n BIGINT"),
}


def by_color(pairs: Sequence[tuple[str | None, int]]) -> dict[str | None, list[int]]:
    found: dict[str | None, list[int]] = {}
    for color, size in pairs:
        found.setdefault(color, []).append(size)
    return {color: sorted(sizes, reverse=True) for color, sizes in found.items()}


def expected(sold: Mapping[int, tuple[str | None, int]], came: Sequence[tuple[str | None, int]]) -> dict[str, Any]:
    """What each view is, told from all rows."""
    sales, clicks = by_color(list(sold.values())), by_color(came)
    every = by_color([*sold.values(), *sold.values(), *came, ("red", 1000)])

    def first(given: dict[str | None, list[int]], count: int) -> list[Row]:
        return [
            (color, size, place + 1) for color, each in given.items() for place, size in enumerate(each[:count])
        ]

    return {
        "listed": [(color, " ".join(map(str, sorted(each * 2)))) for color, each in sales.items()],
        "everything": [(color, " ".join(map(str, sorted(each)))) for color, each in sales.items()],
        "largest": [(color, each[0]) for color, each in sales.items()],
        "two": first(sales, 2),
        "clicked": first(clicks, 2),
        "summed": [(color, sum(each[:2]), len(each[:2])) for color, each in sales.items()],
        "together": [(color, sum(each), len(each)) for color, each in every.items()],
    }


class Shop:
    """A pipeline with the views, and what was done to it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, plan in PLANS.items():
            monkeypatch.setitem(hand_engine.PLANS, name, plan)
        self.pipeline = hw.Pipeline("hand", folder)
        self._sales = self.pipeline.table("sales", "id BIGINT NOT NULL, color STRING, size BIGINT", key="id")
        self._clicks = self.pipeline.stream("clicks", "color STRING, size BIGINT")
        self.driver = drive(self.pipeline)
        for name in PLANS:
            self.pipeline.view(name, "planned by hand")
        self.sold: dict[int, tuple[str | None, int]] = {}
        self.came: list[tuple[str | None, int]] = []

    def sell(self, number: int, color: str | None, size: int) -> None:
        self.sold[number] = color, size
        self._sales.upsert([{"id": number, "color": color, "size": size}])

    def take_back(self, number: int) -> None:
        if self.sold.pop(number, None) is not None:
            self._sales.delete([number])

    def click(self, color: str | None, size: int) -> None:
        self.came.append((color, size))
        self._clicks.append([{"color": color, "size": size}])

    def check(self, *but: str) -> None:
        for name, right in expected(self.sold, self.came).items():
            if name not in but:
                rows = Counter(tuple(row.values()) for row in self.pipeline.read(name).to_pylist())
                assert rows == Counter(right), name


def act(random: Random, shop: Shop) -> None:
    for _ in range(random.choice([1, 10])):
        color = random.choice(["red", "blue", None])
        shop.sell(random.randrange(12), color, random.randrange(6))
        shop.take_back(random.randrange(24))
        shop.click(color, random.randrange(9))


@pytest.mark.parametrize("path", ["small", "large", "both"])
@pytest.mark.parametrize("seed", range(2))
def test_every_operator_follows_its_inputs(
    tmp_path: Path, seed: int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, shop = Random(seed), Shop(tmp_path, monkeypatch)
    with shop.pipeline:
        for tick in range(6):
            act(random, shop)
            shop.driver.small_rows = {"small": 20_000, "large": 0, "both": 20_000 * (tick % 2)}[path]
            made = shop.pipeline.tick()
            assert made is not None
            assert set(made.paths.values()) == {"small" if shop.driver.small_rows else "large"}
            shop.check()


@pytest.mark.parametrize("small_rows", [20_000, 0], ids=["small", "large"])
def test_a_row_without_a_value_is_named_on_either_path(
    tmp_path: Path, small_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, monkeypatch)
    with shop.pipeline:
        shop.driver.small_rows = small_rows
        for number in range(10):
            shop.sell(number, "red", number)
            shop.click("red", 1)
        shop.pipeline.tick()
        shop.sell(7, "blue", 13)
        shop.click("red", 2)
        shop.pipeline.tick()
        for name in ("listed", "everything"):
            with pytest.raises(hw.ViewSuspended, match=r"it is thirteen, for the row .*:13}"):
                shop.pipeline.read(name, as_of=2)
        shop.check("listed", "everything")
        shop.take_back(7)
        shop.pipeline.tick()
        shop.check()
