"""Aggregate functions that views can maintain, with the kinds of their results."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.equivalence.expressions import Column, Expressions
from tests.equivalence.values import ROUGH

_ALWAYS = (
    ("count(*)", "int"),
    ("count(*)", "int"),
    ("count({any})", "int"),
    ("count({any}, {any})", "int"),
    ("count_if({boolean})", "int"),
    ("sum({int})", "int"),
    ("sum({int})", "int"),
    ("sum({money})", "money"),
    ("sum({fine})", "fine"),
    ("sum({fine})", "fine"),
    ("sum(CASE WHEN {boolean} THEN {int} ELSE 0 END)", "int"),
    ("avg({int})", ROUGH),
    ("avg({money})", "money"),
    ("avg({fine})", "fine"),
    ("mean({int})", ROUGH),
    ("var_pop({int})", ROUGH),
    ("var_samp({int})", ROUGH),
    ("variance({int})", ROUGH),
    ("stddev({int})", ROUGH),
    ("stddev_pop({int})", ROUGH),
    ("stddev_samp({int})", ROUGH),
)
_WITHOUT_RETRACTION = (
    ("min({int})", "int"),
    ("max({int})", "int"),
    ("min({wide})", "wide"),
    ("max({money})", "money"),
    ("min({fine})", "fine"),
    ("max({double})", "double"),
    ("min({double})", "double"),
    ("min({string})", "string"),
    ("max({string})", "string"),
    ("max({boolean})", "boolean"),
    ("bool_and({boolean})", "boolean"),
    ("min({date})", "date"),
    ("max({timestamp})", "timestamp"),
    ("min({ntz})", "ntz"),
    ("sum({double})", ROUGH),
    ("avg({double})", ROUGH),
)
_OVER_AGGREGATES = (
    ("sum({int}) + count(*)", "int"),
    ("coalesce(sum({money}), 0)", "money"),
    ("try_divide(sum({int}), count({int}))", ROUGH),
    ("CASE WHEN count(*) > 2 THEN 'many' ELSE 'few' END", "string"),
    ("CAST(sum({fine}) AS STRING)", "string"),
    ("count(*) - count({any})", "int"),
    ("named_struct('a', count(*), 'b', CAST(sum({int}) AS STRING))", "pair"),
)
_CONDITIONS = (
    "count(*) > 1",
    "count({any}) BETWEEN 1 AND 4",
    "sum({int}) >= 0",
    "sum({money}) IS NOT NULL",
    "avg({int}) < 3",
    "count_if({boolean}) = 0",
)


class Aggregates:
    """Aggregates over one scope. Over input that retracts, only those that can take a row back."""

    def __init__(self, chance: random.Random, columns: Sequence[Column], *, retracts: bool) -> None:
        self.chance = chance
        self.expressions = Expressions(chance, columns)
        self.retracts = retracts

    def one(self) -> tuple[str, str]:
        """An aggregate, sometimes with FILTER or inside an expression, and its kind."""
        choice = self.chance.random()
        if choice < 0.12:
            template, kind = self.chance.choice(_OVER_AGGREGATES)
            return self._filled(template), kind
        special = choice < 0.5 and not self.retracts
        template, kind = self.chance.choice(_WITHOUT_RETRACTION if special else _ALWAYS)
        filtered = f" FILTER (WHERE {self.expressions.of('boolean', 1)})" if self.chance.random() < 0.2 else ""
        return self._filled(template) + filtered, kind

    def condition(self) -> str:
        """A predicate over aggregates, for HAVING."""
        return self._filled(self.chance.choice(_CONDITIONS))

    def _filled(self, template: str) -> str:
        return self.expressions.filled(template, self.chance.choice([1, 1, 2]))
