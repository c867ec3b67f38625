"""Aggregates and window functions whose answers do not depend on the order of the rows."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.equivalence.deep.expressions import ATOMIC, Expressions
from tests.equivalence.deep.tree import Expression
from tests.equivalence.expressions import Column
from tests.equivalence.values import ROUGH

_EXACT = (
    ("count(*)", "int"),
    ("count(*)", "int"),
    ("count({any})", "int"),
    ("count_if({boolean})", "int"),
    ("sum({int})", "int"),
    ("sum({int})", "int"),
    ("sum({money})", "money"),
    ("avg({money})", "money"),
    ("min({int})", "int"),
    ("max({int})", "int"),
    ("max({wide})", "wide"),
    ("min({money})", "money"),
    ("max({double})", "double"),
    ("min({double})", "double"),
    ("min({string})", "string"),
    ("max({string})", "string"),
    ("max({date})", "date"),
    ("min({timestamp})", "timestamp"),
    ("bool_and({boolean})", "boolean"),
    ("bool_or({boolean})", "boolean"),
    ("sum(CASE WHEN {boolean} THEN {int} ELSE 0 END)", "int"),
)
_DISTINCT = (
    ("count(DISTINCT {any})", "int"),
    ("count(DISTINCT {int}, {string})", "int"),
    ("sum(DISTINCT {int})", "int"),
)
_HOLISTIC = (
    ("max_by({string}, {row})", "string"),
    ("min_by({int}, {row})", "int"),
    ("sort_array(collect_set({int}))", "ints"),
    ("sort_array(collect_list({int}))", "ints"),
    ("array_size(collect_set({string}))", "int"),
    ("listagg(DISTINCT {string}, ',') WITHIN GROUP (ORDER BY {string})", "string"),
    ("listagg({string}, ',') WITHIN GROUP (ORDER BY {string})", "string"),
    ("mode({int}, true)", "int"),
    ("mode() WITHIN GROUP (ORDER BY {string} DESC)", "string"),
    ("approx_count_distinct({any})", "int"),
    ("approx_count_distinct({string})", "int"),
    ("bit_or({int})", "int"),
    ("max({pair})", "pair"),
    ("min(struct({date} AS a, {string} AS b)).b", "string"),
)
_ROUGH = (
    ("sum({double})", ROUGH),
    ("avg({double})", ROUGH),
    ("avg({int})", ROUGH),
    ("stddev({int})", ROUGH),
    ("var_pop({int})", ROUGH),
    ("stddev_pop({money})", ROUGH),
    ("percentile({int}, 0.3)", ROUGH),
    ("median({int})", ROUGH),
    ("percentile_cont(0.75) WITHIN GROUP (ORDER BY {int} DESC)", ROUGH),
    ("try_divide(sum({int}), count({int}))", ROUGH),
)
_CONDITIONS = (
    "count(*) > 1",
    "count({any}) BETWEEN 1 AND 4",
    "sum({int}) >= 0",
    "max({string}) IS NOT NULL",
    "count(DISTINCT {int}) <> 2",
    "min({int}) < 3",
    "bool_or({boolean})",
)
_NO_FILTER = (
    "listagg",
    "min(struct",
    "sort_array",
    "array_size",
    "sum(CASE",
    "try_divide",
    "mode() ",
    "percentile_c",
)
_TIES = (("rank()", "int"), ("dense_rank()", "int"), ("percent_rank()", "double"), ("cume_dist()", "double"))
_PLACES = (
    ("row_number()", "int"),
    ("row_number()", "int"),
    ("ntile(3)", "int"),
    ("ntile(2)", "int"),
    ("lag({int})", "int"),
    ("lag({string}, 2, 'none')", "string"),
    ("lead({int}, 1, 0)", "int"),
    ("lead({date})", "date"),
    ("lag({int}) IGNORE NULLS", "int"),
    ("first_value({int})", "int"),
)
_OVER = (
    ("count(*)", "int"),
    ("count({any})", "int"),
    ("sum({int})", "int"),
    ("sum({money})", "money"),
    ("min({int})", "int"),
    ("max({string})", "string"),
    ("max({date})", "date"),
)
_OVER_ROUGH = (("avg({int})", ROUGH), ("sum({double})", ROUGH))
_ROWS = (
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
)
_RANGES = (
    "RANGE BETWEEN 2 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)
_WAYS = ("", "", " DESC", " NULLS LAST", " DESC NULLS FIRST")


class Aggregates:
    """Aggregates and window functions over one scope. `rough`: sums of doubles may be shown."""

    def __init__(self, chance: random.Random, columns: Sequence[Column], *, rough: bool = False) -> None:
        self.chance = chance
        self.expressions = Expressions(chance, columns)
        self.rough = rough

    def one(self, *, distinct: bool = True) -> Expression:
        """An aggregate, sometimes with FILTER. With `distinct` there is no listagg: Spark 4.3 mixes them up."""
        pools = [_EXACT, _HOLISTIC, *([_DISTINCT] if distinct else []), *([_ROUGH] if self.rough else [])]
        (pool,) = self.chance.choices(pools, [6, 2, *([1.5] if distinct else []), *([2.5] if self.rough else [])])
        template, kind = self.chance.choice(
            [each for each in pool if not (distinct and each[0].startswith("listagg"))]
        )
        if self.chance.random() < 0.2 and not template.startswith(_NO_FILTER):
            template += " FILTER (WHERE {boolean})"
        return self._filled(template, kind, self.chance.choice([0, 1, 1]))

    def distinct_counts(self) -> list[Expression]:
        """How many values there are of two or three things, which Spark puts in an order of its own."""
        return [self._filled("count(DISTINCT {any})", "int", 0) for _ in range(self.chance.choice([2, 2, 3]))]

    def exact(self, kinds: Sequence[str]) -> Expression:
        """A plain aggregate of one of these kinds, for scalar subqueries."""
        template, kind = self.chance.choice([each for each in _EXACT if each[1] in kinds])
        return self._filled(template, kind, 0)

    def condition(self) -> Expression:
        """A predicate over aggregates."""
        return self._filled(self.chance.choice(_CONDITIONS), "boolean", 0)

    def row(self) -> str:
        """Everything that a row holds: what orders by it has no ties that show."""
        return ", ".join(column.reference for column in self.expressions.columns)

    def _filled(self, template: str, kind: str, depth: int) -> Expression:
        template = template.replace("{row}", f"struct({self.row()})")
        if template.startswith("listagg"):  # the order is that of the text itself
            return Expression(template.replace("{string}", "{0}"), kind, (self.expressions.column("string"),))
        return self.expressions.filled(template, kind, depth + 1)

    # -- window functions

    def over(self, *, tied: bool) -> Expression:
        """A window function: by place in a total order, by ties, or an aggregate over a frame.

        With `tied` it gives equal rows the same: two that tell equal rows apart could do so in many ways.
        """
        choice = self.chance.random()
        if choice < 0.35 and not tied:
            return self.placed()
        if choice < 0.55:
            template, kind = self.chance.choice(_TIES)
            order = self.expressions.any(0, ATOMIC)
            return self._over(template, kind, "ORDER BY {}" + self.chance.choice(_WAYS), (order,))
        template, kind = self.chance.choice(_OVER + (_OVER_ROUGH if self.rough else ()))
        return self._over(template, kind, *self._frame(tied=tied))

    def placed(self) -> Expression:
        """A window function that needs a total order."""
        template, kind = self.chance.choice(_PLACES)
        return self._over(template, kind, self._total())

    def number(self) -> Expression:
        """The number of a row, or its rank, within its group."""
        template = self.chance.choice(["row_number()", "row_number()", "rank()", "dense_rank()"])
        return self._over(template, "int", self._total())

    def _total(self) -> str:
        columns = list(self.expressions.columns)
        self.chance.shuffle(columns)
        return "ORDER BY " + ", ".join(f"{c.reference}{self.chance.choice(_WAYS)}" for c in columns)

    def _frame(self, *, tied: bool) -> tuple[str, tuple[Expression, ...]]:
        choice = self.chance.random()
        if choice < 0.25:
            return "", ()
        if choice < 0.6 and not tied:
            return f"{self._total()} {self.chance.choice(_ROWS)}", ()
        if choice < 0.7 and self.expressions.named("timestamp"):
            frame = "RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
            return f"ORDER BY {{}} {frame}", (self.expressions.column("timestamp"),)
        return f"ORDER BY {{}} {self.chance.choice(_RANGES)}", (self.expressions.column("int"),)

    def _over(self, template: str, kind: str, order: str, more: tuple[Expression, ...] = ()) -> Expression:
        call = self.expressions.filled(template, kind, 1)
        partition, keys = "", []
        if self.chance.random() < 0.65:
            partition, keys = "PARTITION BY {} ", [self.expressions.any(0, ("int", "string", "boolean", "date"))]
        parts = (*call.parts, *keys, *more)
        text = f"{call.template} OVER ({partition}{order})".replace(" )", ")")
        return Expression(text, kind, parts)
