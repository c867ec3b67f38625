"""A new operator takes a file and its rule in the planner: here is one that no file of the product knows.

It tells for each key how many different rows there are. It is planned by hand, below and above others, and computed
on both paths by the driver without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater import operators
from headwater.change import HASH, WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.gather import each_once
from headwater.change.keys import hashed_schema, with_hash
from headwater.change.weights import negated
from headwater.operators import Aggregate, AggregateCall, Join, Stateful
from headwater.plan.fingerprint import Words, fingerprints
from headwater.plan.numbering import numbered
from headwater.plan.operators import Field, Keyed, Names, Node, Plan
from headwater.plan.physical import Evaluate, Exchange, Given, Made, State
from headwater.plan.registry import is_registered, made_of, register
from headwater.plan.sharing import Split
from headwater.state.arrangement import Arrangement
from tests.crash import hand_engine
from tests.crash.hand_engine import LONG, TEXT, drive, source


@operators.register()
@dataclass(frozen=True)
class DifferentRows(Stateful):
    """For each value of the column `by` the number of different rows, as the column `count`."""

    kind: ClassVar[str] = "different"
    child: Node = field(kw_only=True)
    by: str = ""
    count: str = ""
    name: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.child,)

    def over(self, children: Sequence[Node]) -> Self:
        return replace(self, child=children[0])

    def renamed(self, names: Names) -> Self:
        return replace(super().renamed(names), by=names[self.by], count=names[self.count])

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        return (Keyed(self.child, (self.by,)).physical(f"{self.name}.rows"),)

    @property
    def states(self) -> tuple[State, ...]:
        return (State(f"{self.name}.result", hashed_schema(self.schema), emitted=True),)

    @property
    def title(self) -> str:
        return f"different rows by {self.child.shown([self.by])}"

    @property
    def work(self) -> str:
        return "counts the rows of the touched keys anew"

    @property
    def keeps(self) -> Mapping[str, str]:
        return {f"{self.name}.{each}": self.child.shown([self.by]) for each in ("rows", "result")}

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        (given,), (emitted,) = inputs, states
        touched = each_once(given.change.column(HASH).to_numpy())
        before, held = given.old.probe(touched), emitted.probe(touched)
        rows = consolidate(pa.concat_tables([before, given.change]))
        found = rows.group_by(self.by, use_threads=False).aggregate([([], "count_all")])
        ones = pa.array(np.ones(found.num_rows, np.int64))
        columns = {self.by: found.column(self.by), self.count: found.column("count_all"), WEIGHT: ones}
        counted = with_hash(pa.table({name: columns[name] for name in (*self.schema.names, WEIGHT)}), [self.by])
        result = consolidate(pa.concat_tables([negated(held), counted.cast(held.schema)]))
        return Made([given.change, result], [result], before.num_rows + held.num_rows)


def different(child: Node, by: str, count: str) -> DifferentRows:
    output = (*(each for each in child.output if each.name == by), Field(count, LONG))
    return DifferentRows(output, child=child, by=by, count=count, name="different1")


def alone() -> Node:
    return different(source("bag", a1=("color", TEXT), a2=("size", LONG)), "a1", "a3")


def between() -> Node:
    """Below an aggregate, and over a join."""
    bag = source("bag", a1=("color", TEXT), a2=("size", LONG))
    names = source("names", b1=("color", TEXT), b2=("name", TEXT))
    output = (Field("b2", TEXT), Field("a2", LONG))
    named = Join(output, left=bag, right=names, left_keys=("a1",), right_keys=("b1",), name="join1")
    call = AggregateCall("Count", (), Field("c2", LONG))
    counted = different(named, "b2", "c1")
    return Aggregate(
        (Field("c1", LONG), call.result), child=counted, keys=("c1",), calls=(call,), name="aggregate1"
    )


PLANS: dict[str, tuple[Callable[[], Node], str]] = {
    "alone": (alone, "color STRING, different BIGINT"),
    "between": (between, "different BIGINT, names BIGINT"),
}


def expected(bag: Sequence[tuple[str | None, int]], names: Mapping[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    """What both views are, told from all rows."""
    sizes: dict[str | None, set[int]] = {}
    named: dict[str, set[int]] = {}
    for color, size in bag:
        sizes.setdefault(color, set()).add(size)
        if color is not None and color in names:
            named.setdefault(names[color], set()).add(size)
    counts = [len(each) for each in named.values()]
    between = [(count, counts.count(count)) for count in sorted(set(counts))]
    return {"alone": sorted(((key, len(each)) for key, each in sizes.items()), key=repr), "between": between}


@pytest.mark.parametrize("large", [False, True], ids=["here", "in stages"])
@pytest.mark.parametrize("seed", range(2))
def test_an_operator_that_nobody_knows_is_maintained_on_both_paths(
    tmp_path: Path, seed: int, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, plan in PLANS.items():
        monkeypatch.setitem(hand_engine.PLANS, name, plan)
    random, bag, names = Random(seed), list[tuple[str | None, int]](), dict[str, str]()
    with hw.Pipeline("new", tmp_path) as pipeline:
        sizes = pipeline.table("bag", "color STRING, size BIGINT")
        colors = pipeline.table("names", "color STRING NOT NULL, name STRING", key="color")
        drive(pipeline, large=large)
        for name in PLANS:
            pipeline.view(name, "planned by hand")
        for tick in range(6):
            came = [(random.choice(["red", "blue", "green", None]), random.randrange(6)) for _ in range(12)]
            gone = random.sample(bag, min(len(bag), random.choice([0, 5, 20])))
            for row in gone:
                bag.remove(row)
            bag += came
            sizes.append([{"color": color, "size": size} for color, size in came])
            if gone:
                sizes.delete([{"color": color, "size": size} for color, size in gone])
            color = random.choice(["red", "blue", "green"])
            names[color] = random.choice(["dark", "light"])
            colors.upsert([{"color": color, "name": names[color]}])
            made = pipeline.tick()
            assert made is not None
            if tick and large:
                assert set(made.paths.values()) == {"large"}
            right = expected(bag, names)
            for name in PLANS:
                rows = [tuple(row.values()) for row in pipeline.read(name).to_pylist()]
                assert sorted(rows, key=repr) == sorted(right[name], key=repr), (tick, name)
        told = pipeline.explain("alone")
        assert "different: different rows by a1" in told
        assert "each tick: counts the rows of the touched keys anew" in told
        assert "state different1.rows by a1: " in told


def test_it_is_numbered_and_has_a_fingerprint_as_others_have() -> None:
    plan = Plan(alone(), ("color", "different"), appends_only=False)
    root = numbered(plan).root
    assert isinstance(root, DifferentRows)
    assert (root.by, root.count, root.schema.names) == ("c0", "c2", ["c0", "c2"])
    prints = [fingerprints(Split(each), lambda _: Words(""), str)[0] for each in (root, replace(root, by="c1"))]
    assert prints[0] != prints[1]


def test_it_is_kept_under_its_name_with_its_fields() -> None:
    root = alone()
    assert is_registered(DifferentRows)
    assert isinstance(root, DifferentRows)
    assert made_of("DifferentRows", {each.name: getattr(root, each.name) for each in fields(root)}) == root


def test_what_is_kept_under_a_name_is_not_taken_for_something_else() -> None:
    with pytest.raises(ValueError, match="Join is what plans have Join under"):

        @register("Join")
        @dataclass(frozen=True)
        class Other:
            sides: int

    with pytest.raises(TypeError, match="Mutable is no frozen dataclass"):

        @register()
        @dataclass
        class Mutable:
            sides: int
