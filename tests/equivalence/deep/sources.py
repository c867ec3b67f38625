"""FROM clauses: relations, nested queries, constants, every kind of join, and what is lateral."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.equivalence.deep.aggregates import Aggregates
from tests.equivalence.deep.expressions import ATOMIC, JOINING, KINDS, Expressions
from tests.equivalence.deep.made import Made
from tests.equivalence.deep.tree import (
    Expression,
    Item,
    Join,
    Lateral,
    LateralView,
    Nested,
    Pivot,
    Relation,
    Select,
    Source,
    Unpivot,
    Values,
)
from tests.equivalence.expressions import Column
from tests.equivalence.values import literal

if TYPE_CHECKING:
    from tests.equivalence.deep.queries import Queries

_MOST_ROWS = 1_200
_INNER = ("JOIN", "INNER JOIN", "JOIN")
_OUTER = ("LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT OUTER JOIN", "FULL OUTER JOIN")
_HALF = ("LEFT SEMI JOIN", "LEFT ANTI JOIN", "ANTI JOIN", "SEMI JOIN")


@dataclass(frozen=True)
class From:
    """A source, the columns in its scope, and about how many rows it has."""

    node: Source
    columns: tuple[Column, ...]
    rows: int
    name: str = ""


class Sources:
    """Random FROM clauses."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.chance = queries.chance

    def source(self, depth: int) -> From:
        """Any FROM clause, nested up to `depth` levels."""
        choices: list[tuple[Callable[[int], From], float]] = [(self.simple, 4)]
        if depth > 0:
            choices += [(self._join, 5), (self._nested, 2), (self._lateral, 0.6), (self._lateral_view, 0.6)]
            choices += [(self._pivot, 0.35), (self._unpivot, 0.35)]
        (make,) = self.chance.choices([each for each, _ in choices], [weight for _, weight in choices])
        return make(depth)

    def simple(self, depth: int = 0) -> From:
        """A relation, seldom constants."""
        if self.chance.random() < 0.07:
            return self._values()
        return self.relation(self.chance.choice(self.queries.relations))

    def relation(self, made: From) -> From:
        """One of the relations under an alias of its own."""
        alias = self.queries.fresh("t")
        columns = tuple(Column(c.name, c.kind, f"{alias}.{c.name}") for c in made.columns)
        return From(Relation(made.name, alias), columns, made.rows, made.name)

    def _values(self) -> From:
        alias, names = self.queries.fresh("v"), (self.queries.fresh("c"), self.queries.fresh("c"))
        kinds = ("int", self.chance.choice(["string", "boolean", "date"]))
        rows = tuple(
            ", ".join(literal(self.chance, kind) for kind in kinds) for _ in range(self.chance.randint(2, 5))
        )
        columns = tuple(Column(n, kind, f"{alias}.{n}") for n, kind in zip(names, kinds, strict=True))
        return From(Values(rows, alias, names), columns, len(rows))

    def _nested(self, depth: int) -> From:
        return self.named(self.queries.query(depth - 1))

    def named(self, made: Made) -> From:
        alias = self.queries.fresh("q")
        columns = tuple(Column(name, kind, f"{alias}.{name}") for name, kind in made.columns)
        return From(Nested(made.node, alias), columns, made.rows)

    # -- joins

    def _join(self, depth: int) -> From:
        joined = self._side(depth)
        for _ in range(self.chance.choice([1, 1, 1, 2, 2, 3])):
            again = joined.name and self.chance.random() < 0.2
            same = next((r for r in self.queries.relations if r.name == joined.name), None)
            other = self.relation(same) if again and same else self._side(depth)
            if joined.rows * other.rows > 4 * _MOST_ROWS or _ambiguous(joined, other):
                break
            joined = self._joined(joined, other)
        return joined

    def _side(self, depth: int) -> From:
        return self._nested(depth) if depth >= 2 and self.chance.random() < 0.35 else self.simple()

    def _joined(self, left: From, right: From) -> From:
        choice = self.chance.random()
        common = self._common(left, right)
        if choice < 0.14 and common:
            return self._using(left, right, common)
        if choice < 0.2 and not isinstance(left.node, Join) and left.name != right.name:
            return self._natural(left, right)
        if choice < 0.26 and left.rows * right.rows < _MOST_ROWS // 3:
            return self._both("CROSS JOIN", left, right, (), left.rows * right.rows)
        if choice < 0.4:
            return self._both(self.chance.choice(_HALF), left, right, self._on(left, right), left.rows)
        rows = max(left.rows, right.rows, left.rows * right.rows // 6)
        word = self.chance.choice(_OUTER if choice < 0.72 else _INNER)
        return self._both(word, left, right, self._on(left, right), rows)

    def _both(self, word: str, left: From, right: From, on: tuple[Expression, ...], rows: int) -> From:
        half = "SEMI" in word or "ANTI" in word
        columns = left.columns if half else left.columns + right.columns
        return From(Join(word, left.node, right.node, on), columns, rows)

    def _common(self, left: From, right: From) -> list[str]:
        """Columns that exactly one input on each side has."""
        names = [column.name for column in left.columns]
        others = {column.name: column.kind for column in right.columns}
        fit = [c.name for c in left.columns if c.kind in JOINING and others.get(c.name) == c.kind]
        return [name for name in fit if names.count(name) == 1]

    def _using(self, left: From, right: From, common: list[str]) -> From:
        using = tuple(self.chance.sample(common, k=min(len(common), self.chance.choice([1, 1, 2]))))
        word = self.chance.choice(_INNER + _OUTER + _HALF)
        rows = max(left.rows, right.rows, left.rows * right.rows // 6)
        made = self._both(word, left, right, (), rows)
        return replace(made, node=Join(word, left.node, right.node, (), using), columns=_merged(made, using))

    def _natural(self, left: From, right: From) -> From:
        names = {column.name for column in right.columns}
        using = tuple(column.name for column in left.columns if column.name in names)
        word = f"NATURAL {self.chance.choice(['JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN'])}"
        rows = left.rows + right.rows if using else left.rows * right.rows
        made = self._both(word, left, right, (), rows)
        return replace(made, columns=_merged(made, using))

    def _on(self, left: From, right: From) -> tuple[Expression, ...]:
        """Mostly an equality, with or without more."""
        both = left.columns + right.columns
        choice = self.chance.random()
        conditions = [self.between(left, right)] if choice < 0.85 else [self._unequal(left, right)]
        if choice < 0.15:
            conditions.append(self.between(left, right))
        if self.chance.random() < 0.3:
            residual = self._unequal(left, right) if self.chance.random() < 0.5 else None
            conditions.append(residual or Expressions(self.chance, both).of("boolean"))
        return tuple(conditions)

    def between(self, left: From, right: From) -> Expression:
        """An equality of two columns, or of expressions, of both sides; null-safe now and then."""
        kind = self._shared(left, right)
        mine, others = Expressions(self.chance, left.columns), Expressions(self.chance, right.columns)
        word = "<=>" if self.chance.random() < 0.2 else "="
        depth = 1 if self.chance.random() < 0.15 else -1
        return Expression(f"({{}} {word} {{}})", "boolean", (mine.of(kind, depth), others.of(kind, depth)))

    def _unequal(self, left: From, right: From) -> Expression:
        kind = self._shared(left, right)
        mine, others = Expressions(self.chance, left.columns), Expressions(self.chance, right.columns)
        word = self.chance.choice(["<", ">=", "<>", ">"])
        return Expression(f"({{}} {word} {{}})", "boolean", (mine.of(kind, -1), others.of(kind, -1)))

    def _shared(self, left: From, right: From) -> str:
        kinds = {c.kind for c in left.columns} & {c.kind for c in right.columns}
        return self.chance.choice([kind for kind in JOINING if kind in kinds] or ["int"])

    # -- lateral

    def _lateral(self, depth: int) -> From:
        left = self.simple()
        if self.chance.random() < 0.3:
            return self._lateral_call(left)
        made = self.queries.subqueries.lateral(left)
        right = self.named(made)
        word = self.chance.choice([",", "JOIN", "LEFT JOIN", "CROSS JOIN"])
        alias = right.columns[0].reference.split(".", maxsplit=1)[0]
        node = Lateral(left.node, word, made.node, alias)
        return From(node, left.columns + right.columns, left.rows * made.rows)

    def _lateral_call(self, left: From) -> From:
        alias, name = self.queries.fresh("l"), self.queries.fresh("c")
        call = Expressions(self.chance, left.columns).filled("explode({ints})", "int", 1)
        word = self.chance.choice(["JOIN", ",", "LEFT JOIN"])
        made = Column(name, "int", f"{alias}.{name}")
        return From(Lateral(left.node, word, call, alias, (name,)), (*left.columns, made), left.rows * 2)

    def _lateral_view(self, depth: int) -> From:
        left = self.simple() if depth < 2 or self.chance.random() < 0.5 else self._nested(depth)
        template, kinds = self.chance.choice(
            [
                ("explode({ints})", ("int",)),
                ("posexplode({ints})", ("int", "int")),
                ("explode(split({string}, ','))", ("string",)),
                ("explode(sequence(1, CAST(pmod({int}, 3) + 1 AS INT)))", ("int",)),
                ("inline(array({pair}, {pair}))", ("int", "string")),
            ]
        )
        alias, names = self.queries.fresh("l"), tuple(self.queries.fresh("c") for _ in kinds)
        call = Expressions(self.chance, left.columns).filled(template, "int", 1)
        columns = tuple(Column(n, kind, f"{alias}.{n}") for n, kind in zip(names, kinds, strict=True))
        node = LateralView(left.node, call, alias, names, self.chance.random() < 0.4)
        return From(node, left.columns + columns, left.rows * 2)

    # -- pivots

    def _pivot(self, depth: int) -> From:
        left = self.source(0)
        expressions = Expressions(self.chance, left.columns)
        names = [self.queries.fresh("c") for _ in range(3)]
        kinds = [
            self.chance.choice(["int", "string", "boolean"]),
            "int",
            self.chance.choice(["int", "string", "money"]),
        ]
        items = tuple(Item(expressions.of(kind), name) for kind, name in zip(kinds, names, strict=True))
        query = Select(items, left.node, where=self.queries.where(left, 0))
        inner = [Column(name, kind, name) for name, kind in zip(names, kinds, strict=True)]
        aggregate = Aggregates(self.chance, inner[1:2]).one(distinct=False)
        constants = {"int": ["0", "1", "2"], "string": ["'a'", "'b'", "''"], "boolean": ["TRUE", "FALSE"]}[kinds[0]]
        values = tuple(Item(Expression(each, kinds[0]), self.queries.fresh("c")) for each in constants)
        alias = self.queries.fresh("p")
        made = tuple(Column(value.name, aggregate.kind, f"{alias}.{value.name}") for value in values)
        key = Column(names[2], kinds[2], f"{alias}.{names[2]}")
        node = Pivot(query, (Item(aggregate, self.queries.fresh("c")),), names[0], values, alias)
        return From(node, (key, *made), left.rows)

    def _unpivot(self, depth: int) -> From:
        left = self.source(0)
        kind = self.chance.choice(["int", "string", "money"])
        expressions = Expressions(self.chance, left.columns)
        key = expressions.any(1, ATOMIC)
        parts = [key, expressions.of(kind), expressions.of(kind)]
        names = [self.queries.fresh("c") for _ in parts]
        items = tuple(Item(part, name) for part, name in zip(parts, names, strict=True))
        query = Select(items, left.node, where=self.queries.where(left, 0))
        alias, value, name = self.queries.fresh("u"), self.queries.fresh("c"), self.queries.fresh("c")
        kinds = ((names[0], key.kind), (name, "string"), (value, kind))
        columns = tuple(Column(n, each, f"{alias}.{n}") for n, each in kinds)
        node = Unpivot(query, value, name, tuple(names[1:]), self.chance.random() < 0.5, alias)
        return From(node, columns, left.rows * 2)


def _ambiguous(left: From, right: From) -> bool:
    """Whether a column that stands without an alias would have two meanings."""
    names = {column.name for column in right.columns}
    return any(column.name == column.reference and column.name in names for column in left.columns)


def _merged(made: From, using: tuple[str, ...]) -> tuple[Column, ...]:
    """After USING the named columns stand once, without an alias."""
    columns: dict[str, Column] = {}
    for column in made.columns:
        bare = column.name in using
        columns.setdefault(
            column.name if bare else column.reference, replace(column, reference=column.name) if bare else column
        )
    return tuple(column for column in columns.values() if column.kind in KINDS)
