"""The grammar and the shrinker, without Spark."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache

import pytest

from tests.equivalence.cases import Case
from tests.equivalence.deep.case import deep_case
from tests.equivalence.deep.features import FEATURES, counted
from tests.equivalence.deep.queries import make_query
from tests.equivalence.shrink import as_test, shrink
from tests.equivalence.traffic import Transaction


@cache
def many() -> list[str]:
    return [make_query(seed, number).sql() for seed in range(100) for number in range(10)]


@cache
def features() -> Counter[str]:
    return counted(many())


def test_the_same_seed_makes_the_same_case() -> None:
    assert repr(deep_case(5, "small")) == repr(deep_case(5, "small"))
    assert repr(deep_case(5, "small")) != repr(deep_case(6, "small"))
    assert deep_case(5, "small", ticks=2).ticks == deep_case(5, "small").ticks[:2]
    assert make_query(5, 3).sql() == deep_case(5, "large").views[3].query.sql()


def test_a_query_is_seldom_made_twice() -> None:
    assert len(set(many())) > 0.99 * len(many())


@pytest.mark.parametrize("feature", FEATURES)
def test_the_grammar_makes(feature: str) -> None:
    assert features()[feature] >= 4


def test_tables_see_every_kind_of_change() -> None:
    cases = [deep_case(seed, "small", views=0) for seed in range(30)]
    steps = [step for case in cases for steps in case.ticks for step in steps]
    parts = [part for step in steps for part in (step.operations if isinstance(step, Transaction) else (step,))]
    assert {(part.topic, part.verb) for part in parts} >= {
        ("items", "upsert"),
        ("items", "delete"),
        ("parts", "upsert"),
        ("parts", "delete"),
        ("loose", "append"),
        ("loose", "delete"),
        ("events", "append"),
    }
    assert any(not steps for case in cases for steps in case.ticks)
    assert any(isinstance(step, Transaction) for step in steps)


def _suspicious(case: Case) -> bool:
    """A made-up mistake: a FULL JOIN that sees a delete."""
    deletes = "verb='delete'" in repr(case.ticks)
    return " FULL JOIN " in case.query.sql() and deletes


def test_a_failure_shrinks_to_what_makes_it_fail() -> None:
    cases = (deep_case(seed, "small").only(f"v{number}") for seed in range(50) for number in range(10))
    large = [case for case in cases if _suspicious(case) and len(case.query.sql()) > 500][:3]
    for case in large:
        small = shrink(case, _suspicious, seconds=20)
        assert _suspicious(small)
        assert len(small.query.sql()) < 150
        assert sum(len(steps) for steps in small.ticks) == 1


def test_a_case_is_written_as_a_test() -> None:
    for seed in range(5):
        case = deep_case(seed, "large").only("v4")
        text = as_test(case)
        ast.parse(text)
        assert f"def test_seed_{seed}_v4(shop: Shop)" in text
        assert text.count("shop.view(") == 1
        assert text.count("shop.tick()") + text.count("shop.moved()") == 4
