"""Scalar expressions as trees, from the templates of the other campaign that no row can make fail.

A double never becomes a text: 0.0 and -0.0 are one value to an order or a group, and would then be two.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from tests.equivalence.deep.tree import Expression
from tests.equivalence.expressions import TEMPLATES, Column
from tests.equivalence.values import ROUGH, literal

KINDS = ("int", "wide", "money", "double", "string", "boolean", "date", "timestamp", "ints", "pair")
ATOMIC = KINDS[:8]
JOINING = ("int", "int", "int", "string", "string", "money", "boolean", "date", "timestamp", "double", "wide")
_HOLE = re.compile(r"\{(\w+)\}")
_SPECIAL = {"compared", "any", "same", "scalar"}
_LEFT_OUT = {"CAST({double} AS STRING)"}
_COMPARED = ("=", "=", "<", ">=", "<>", "<=>")
_MORE: dict[str, tuple[str, ...]] = {
    "double": ("try_divide({double}, nullif({double}, 0.0D))",),
    "int": ("({int} div nullif({int}, 0))", "reduce({ints}, 0L, (s, x) -> s + coalesce(x, 1))"),
    "ints": ("zip_with({ints}, {ints}, (x, y) -> coalesce(x, 0) + coalesce(y, 1))", "array_sort({ints})"),
}
_ANY_KIND = (
    "CASE WHEN {boolean} THEN {same} ELSE {same} END",
    "CASE WHEN {boolean} THEN {same} END",
    "CASE {scalar} WHEN 1 THEN {same} WHEN 2 THEN {same} END",
    "coalesce({same}, {same})",
    "if({boolean}, {same}, {same})",
    "nvl({same}, {same})",
)
_BRIDGES = {
    "boolean": "({any} IS NOT NULL)",
    "int": "pmod(hash({scalar}), 5)",
    "wide": "CAST(pmod(hash({scalar}), 3) AS BIGINT)",
    "money": "CAST(pmod(hash({scalar}), 9) AS DECIMAL(12,2))",
    "double": "CAST(pmod(hash({scalar}), 4) AS DOUBLE)",
    "string": "CAST({scalar} AS STRING)",
    "date": "date_add(DATE'2024-03-28', pmod(hash({scalar}), 6))",
    "timestamp": "timestamp_seconds(pmod(hash({scalar}), 6))",
    "ints": "array(pmod(hash({scalar}), 5), 1)",
    "pair": "named_struct('a', pmod(hash({scalar}), 5), 'b', 'b')",
}
_NULL_CHECKS = ("({any} IS NULL)", "({any} IS NOT NULL)")


def _fit(template: str) -> bool:
    return set(_HOLE.findall(template)) <= {*KINDS, *_SPECIAL} and template not in _LEFT_OUT


_TEMPLATES = {kind: tuple(filter(_fit, TEMPLATES[kind])) + _MORE.get(kind, ()) for kind in KINDS}


class Expressions:
    """Expressions over the columns of one scope."""

    def __init__(self, chance: random.Random, columns: Sequence[Column]) -> None:
        self.chance = chance
        self.columns = [column for column in columns if column.kind != ROUGH]

    def of(self, kind: str, depth: int = 1) -> Expression:
        """An expression of that kind, mostly a column or close to one."""
        found = self.named(kind)
        if depth > 0 and self.chance.random() < (0.4 if found else 0.7):
            return self._made(kind, depth)
        if found and self.chance.random() < 0.95:
            return self.chance.choice(found)
        if not found and depth >= 0 and self.chance.random() < 0.8:
            return self.filled(_BRIDGES[kind], kind, 0)
        return self.constant(kind)

    def column(self, kind: str) -> Expression:
        """A column of that kind, or the next best thing."""
        found = self.named(kind)
        return self.chance.choice(found) if found else self.of(kind, 0)

    def named(self, kind: str) -> list[Expression]:
        """The columns of a kind."""
        return [Expression(column.reference, kind) for column in self.columns if column.kind == kind]

    def any(self, depth: int = 1, kinds: Sequence[str] = KINDS) -> Expression:
        """An expression of a kind that some column has."""
        present = [column.kind for column in self.columns if column.kind in kinds]
        fresh = not present or self.chance.random() < 0.08
        return self.of(self.chance.choice(kinds if fresh else present), depth)

    def constant(self, kind: str) -> Expression:
        return Expression(literal(self.chance, kind), kind)

    def filled(self, template: str, kind: str, depth: int) -> Expression:
        """The template with every hole filled by a smaller expression of the kind that it names."""
        parts: list[Expression] = []

        def hole(found: re.Match[str]) -> str:
            if found[1] == "compared":
                return self.chance.choice(_COMPARED)
            parts.append(self._part(found[1], kind, depth - 1))
            return "{}"

        text = _HOLE.sub(hole, template)
        return Expression(text, kind, tuple(parts))

    def _part(self, hole: str, kind: str, depth: int) -> Expression:
        if hole == "any":
            return self.any(depth)
        if hole == "scalar":
            return self._scalar()
        return self.of(kind if hole == "same" else hole, depth)

    def _scalar(self) -> Expression:
        """Something that can be compared with small numbers, and hashed and written without surprises."""
        found = self.named("int")
        return self.chance.choice(found) if found else self.constant("int")

    def _made(self, kind: str, depth: int) -> Expression:
        if kind == "boolean" and self.chance.random() < 0.15:
            return self.filled(self.chance.choice(_NULL_CHECKS), kind, depth)
        if self.chance.random() < 0.25:
            return self.filled(self.chance.choice(_ANY_KIND), kind, depth)
        present = {column.kind for column in self.columns}
        some = self.chance.choices(_TEMPLATES[kind], k=3)
        return self.filled(max(some, key=lambda template: _share(template, present)), kind, depth)


def _share(template: str, kinds: set[str]) -> float:
    holes = [hole for hole in _HOLE.findall(template) if hole in KINDS]
    return sum(hole in kinds for hole in holes) / len(holes) if holes else 0.0
