"""A grammar of queries: any composition, a few levels deep, of what views may be made of.

    query   = projection | star | generator | UNION ALL | aggregate | global aggregate | DISTINCT, or one over a CTE
    source  = relation | (query) | source LATERAL VIEW … | inner join of 2 to 4 sources
    join    = JOIN … ON, JOIN … USING, or commas with WHERE; = and <=>, residual predicates; self-joins

`retracts` is carried along because min, max and sums of doubles are for inputs that never take a row back; `rows`
is a rough estimate that keeps joins from exploding.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.equivalence.aggregates import Aggregates
from tests.equivalence.expressions import Column, Expressions
from tests.equivalence.values import ALL, ATOMIC, GROUPABLE, ROUGH

_MOST_ROWS = 1_500


@dataclass(frozen=True)
class Relation:
    """Something that FROM can name. `unique`: columns of which no two rows have the same values."""

    name: str
    columns: tuple[tuple[str, str], ...]
    retracts: bool
    rows: int
    unique: tuple[str, ...] = ()


@dataclass(frozen=True)
class Query:
    """A SELECT and what it returns."""

    sql: str
    columns: tuple[tuple[str, str], ...]
    retracts: bool
    rows: int


@dataclass(frozen=True)
class Source:
    """A FROM clause, predicates that belong to it, and the columns in its scope."""

    text: str
    columns: tuple[Column, ...]
    retracts: bool
    rows: int
    predicates: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()


class Queries:
    """Random queries over some relations."""

    def __init__(self, chance: random.Random, relations: Sequence[Relation]) -> None:
        self.chance = chance
        self.relations = list(relations)
        self._numbers = itertools.count(1)

    def _fresh(self, letter: str) -> str:
        """A name that nothing else in this pipeline has, so that GROUP BY an alias means the alias."""
        return f"{letter}{next(self._numbers)}"

    def view(self) -> Query:
        """A query for a view."""
        if self.chance.random() < 0.2:
            return self._with_cte()
        return self.query(self.chance.choice([1, 2, 2, 3]))

    def _with_cte(self) -> Query:
        common = self.query(1)
        name = self._fresh("w")
        before = self.relations
        relation = Relation(name, common.columns, common.retracts, common.rows)
        self.relations = [relation, relation, self.chance.choice(before)]
        try:
            inner = self.query(2)
        finally:
            self.relations = before
        sql = f"WITH {name} AS ({common.sql}) {inner.sql}"
        return Query(sql, inner.columns, inner.retracts, inner.rows)

    def query(self, depth: int) -> Query:
        """A query whose sources nest up to `depth` levels."""
        shapes: list[tuple[Callable[[int], Query], int]] = [
            (self._projection, 4),
            (self._star, 1),
            (self._generator, 2),
            (self._union, 2),
            (self._grouped, 6),
            (self._global, 1),
            (self._distinct, 2),
        ]
        (shape,) = self.chance.choices([shape for shape, _ in shapes], [weight for _, weight in shapes])
        return shape(depth)

    # -- shapes

    def _projection(self, depth: int, kinds: Sequence[str] | None = None) -> Query:
        source = self.source(depth)
        return self._select(source, self._items(source, kinds))

    def _items(self, source: Source, kinds: Sequence[str] | None = None) -> list[tuple[str, str, str]]:
        """Expressions for a select list with their kinds and names."""
        expressions = Expressions(self.chance, source.columns)
        if kinds is not None:
            return [(expressions.of(kind), kind, self._fresh("c")) for kind in kinds]
        items = [(*expressions.any(2), self._fresh("c")) for _ in range(self.chance.randint(1, 4))]
        rough = expressions.named(ROUGH)
        return items + [(column.reference, ROUGH, self._fresh("c")) for column in rough[:1]]

    def _select(self, source: Source, items: Sequence[tuple[str, str, str]], *, distinct: bool = False) -> Query:
        word = "SELECT DISTINCT" if distinct else "SELECT"
        listed = ", ".join(f"{expression} AS {name}" for expression, _, name in items)
        sql = f"{word} {listed} FROM {source.text}{self.where(source)}"
        return Query(sql, tuple((name, kind) for _, kind, name in items), source.retracts or distinct, source.rows)

    def where(self, source: Source) -> str:
        """The WHERE clause: what the source demands, and sometimes more."""
        predicates = list(source.predicates)
        if self.chance.random() < 0.35:
            expressions = Expressions(self.chance, source.columns)
            either = f"({expressions.of('boolean', 1)} OR {expressions.of('boolean', 1)})"
            predicates.append(either if self.chance.random() < 0.6 else expressions.of("boolean", 2))
        return f" WHERE {' AND '.join(predicates)}" if predicates else ""

    def _star(self, depth: int) -> Query:
        relation = self._relation(stars=True)
        source = self._from(relation)
        return Query(
            f"SELECT * FROM {source.text}{self.where(source)}", relation.columns, source.retracts, source.rows
        )

    def _generator(self, depth: int) -> Query:
        source = self.source(depth - 1)
        call, made = self._made(source)
        names = [self._fresh("c") for _ in made]
        items = self._items(source)
        listed = ", ".join(f"{expression} AS {name}" for expression, _, name in items)
        outer = "_outer" if self.chance.random() < 0.3 and not call.startswith("inline") else ""
        call = call.replace("(", f"{outer}(", 1)
        sql = f"SELECT {listed}, {call} AS ({', '.join(names)}) FROM {source.text}{self.where(source)}"
        columns = [(name, kind) for _, kind, name in items] + list(zip(names, made, strict=True))
        return Query(sql, tuple(columns), source.retracts, source.rows * 2)

    def _made(self, source: Source) -> tuple[str, tuple[str, ...]]:
        """A generator's call and the kinds of the columns it makes."""
        template, kinds = self.chance.choice(
            [
                ("explode({ints})", ("int",)),
                ("explode({words})", ("string",)),
                ("explode({map})", ("string", "int")),
                ("posexplode({words})", ("int", "string")),
                ("inline({pairs})", ("int", "string")),
            ]
        )
        return Expressions(self.chance, source.columns).filled(template, 2), kinds

    def _union(self, depth: int) -> Query:
        kinds = [self.chance.choice(ALL) for _ in range(self.chance.randint(1, 3))]
        parts = [self._projection(depth - 1, kinds) for _ in range(self.chance.choice([2, 2, 3]))]
        sql = " UNION ALL ".join(part.sql for part in parts)
        return Query(sql, parts[0].columns, any(p.retracts for p in parts), sum(p.rows for p in parts))

    def _distinct(self, depth: int) -> Query:
        source = self.source(depth)
        items = [item for item in self._items(source) if item[1] in GROUPABLE]
        return self._select(source, items or self._items(source, ["int"]), distinct=True)

    # -- aggregates

    def _aggregated(self, source: Source) -> list[tuple[str, str, str]]:
        aggregates = Aggregates(self.chance, source.columns, retracts=source.retracts)
        return [(*aggregates.one(), self._fresh("c")) for _ in range(self.chance.randint(1, 3))]

    def _global(self, depth: int) -> Query:
        source = self.source(depth)
        query = self._select(source, self._aggregated(source))
        having = " HAVING count(*) > 3" if self.chance.random() < 0.15 else ""
        return Query(query.sql + having, query.columns, True, 1)

    def _grouped(self, depth: int) -> Query:
        source = self.source(depth)
        expressions = Expressions(self.chance, source.columns)
        kinds = [self._group_kind(source) for _ in range(self.chance.choice([1, 1, 2, 3]))]
        keys = [(expressions.of(kind, 1), kind, self._fresh("c")) for kind in kinds]
        named = [key for key in keys if any(column.reference in key[0] for column in source.columns)]
        keys = named or [("1 + 1", "int", keys[0][2])]  # a bare number would be a place in the select list
        aggregated = self._aggregated(source)
        shown = keys if self.chance.random() < 0.85 else []
        query = self._select(source, [*shown, *aggregated])
        clause = f" GROUP BY {self._group_by(keys, shown)}{self._having(source, keys)}"
        return Query(query.sql + clause, query.columns, True, max(1, source.rows // 2))

    def _group_kind(self, source: Source) -> str:
        kinds = [column.kind for column in source.columns if column.kind in GROUPABLE]
        return self.chance.choice(kinds or ["int"])

    def _group_by(self, keys: Sequence[tuple[str, str, str]], shown: Sequence[tuple[str, str, str]]) -> str:
        style = self.chance.random() if shown else 1.0
        if style < 0.15:
            return "ALL"
        if style < 0.3:
            return ", ".join(str(place + 1) for place in range(len(keys)))
        if style < 0.45:
            return ", ".join(name for _, _, name in keys)
        return ", ".join(expression for expression, _, _ in keys)

    def _having(self, source: Source, keys: Sequence[tuple[str, str, str]]) -> str:
        if self.chance.random() > 0.25:
            return ""
        condition = Aggregates(self.chance, source.columns, retracts=source.retracts).condition()
        if self.chance.random() < 0.3:
            condition += f" OR {keys[0][0]} IS NULL"
        return f" HAVING {condition}"

    # -- sources

    def source(self, depth: int) -> Source:
        """A FROM clause."""
        choice = self.chance.random()
        if depth >= 1 and choice < 0.4:
            source = self._join(depth)
        elif depth >= 2 and choice < 0.6:
            source = self._nested(depth)
        else:
            source = self._from(self._relation())
        return self._lateral(source) if not source.predicates and self.chance.random() < 0.08 else source

    def _relation(self, *, stars: bool = False) -> Relation:
        fit = [relation for relation in self.relations if not stars or not relation.name.endswith("__log")]
        return self.chance.choice(fit or self.relations)

    def _from(self, relation: Relation) -> Source:
        alias = self._fresh("t")
        columns = tuple(Column(name, kind, f"{alias}.{name}") for name, kind in relation.columns)
        text = f"{relation.name} {alias}"
        return Source(text, columns, relation.retracts, relation.rows, unique=relation.unique)

    def _nested(self, depth: int) -> Source:
        query = self.query(depth - 1)
        alias = self._fresh("q")
        columns = tuple(Column(name, kind, f"{alias}.{name}") for name, kind in query.columns)
        return Source(f"({query.sql}) {alias}", columns, query.retracts, query.rows)

    def _lateral(self, source: Source) -> Source:
        call, made = self._made(source)
        alias, names = self._fresh("l"), [self._fresh("c") for _ in made]
        outer = " OUTER" if self.chance.random() < 0.4 else ""
        text = f"{source.text} LATERAL VIEW{outer} {call} {alias} AS {', '.join(names)}"
        columns = tuple(Column(n, kind, f"{alias}.{n}") for n, kind in zip(names, made, strict=True))
        return Source(text, source.columns + columns, source.retracts, source.rows * 2)

    # -- joins

    def _join(self, depth: int) -> Source:
        commas = self.chance.random() < 0.25
        joined = self._side(depth)
        for _ in range(self.chance.choice([1, 1, 1, 2, 3])):
            other = self._other(joined, depth)
            if self._too_large(joined, other):
                break
            joined = self._joined(joined, other, commas=commas)
        return joined

    def _side(self, depth: int) -> Source:
        source = self._nested(depth) if depth >= 2 and self.chance.random() < 0.25 else self._from(self._relation())
        if any(column.kind in ATOMIC for column in source.columns):
            return source
        fit = [relation for relation in self.relations if any(kind in ATOMIC for _, kind in relation.columns)]
        return self._from(self.chance.choice(fit)) if fit else source

    def _other(self, joined: Source, depth: int) -> Source:
        """The next input: now and then the same relation again."""
        if self.chance.random() < 0.25:
            again = [r for r in self.relations if joined.text.startswith(f"{r.name} ")]
            if again:
                return self._from(again[0])
        return self._side(depth)

    def _too_large(self, joined: Source, other: Source) -> bool:
        return joined.rows * other.rows // (1 if not other.unique else other.rows) > _MOST_ROWS

    def _joined(self, joined: Source, other: Source, *, commas: bool) -> Source:
        conditions, unique = self._conditions(joined, other)
        rows = joined.rows if unique else max(1, joined.rows * other.rows // 5)
        columns, retracts = joined.columns + other.columns, joined.retracts or other.retracts
        if not commas and self.chance.random() < 0.3:
            conditions.append(Expressions(self.chance, columns).of("boolean", 1))
        if commas:
            predicates = (*joined.predicates, *conditions)
            return Source(f"{joined.text}, {other.text}", columns, retracts, rows, predicates)
        using = self._using(joined, other)
        on = f"USING ({using})" if using and self.chance.random() < 0.3 else f"ON {' AND '.join(conditions)}"
        word = self.chance.choice(["JOIN", "INNER JOIN"])
        return Source(f"{joined.text} {word} {other.text} {on}", columns, retracts, rows, joined.predicates)

    def _using(self, joined: Source, other: Source) -> str | None:
        """A column that exactly one input on each side has."""
        mine = [column.name for column in joined.columns if column.kind in ATOMIC]
        return next((c.name for c in other.columns if c.kind in ATOMIC and mine.count(c.name) == 1), None)

    def _conditions(self, joined: Source, other: Source) -> tuple[list[str], bool]:
        """Equalities between both sides, and whether they cover the other side's unique columns."""
        mine, others = Expressions(self.chance, joined.columns), Expressions(self.chance, other.columns)
        unique = [column for column in other.columns if column.name in other.unique]
        if unique and self.chance.random() < 0.7 and all(mine.named(column.kind) for column in unique):
            pairs = [(self._key(mine, self._like(mine, column.kind), 0), column.reference) for column in unique]
            return [self._equal(*pair) for pair in pairs], True
        kinds = {c.kind for c in joined.columns} & {c.kind for c in other.columns} & set(ATOMIC)
        kind = self.chance.choice(sorted(kinds) or ["int"])
        depth = 1 if self.chance.random() < 0.15 else 0
        return [self._equal(self._key(mine, kind, depth), self._key(others, self._like(others, kind), 0))], False

    def _like(self, expressions: Expressions, kind: str) -> str:
        """The kind, or one that Spark compares it with by widening one of them."""
        near = {"int": ("wide", "money", "fine"), "money": ("int", "fine"), "wide": ("int",), "fine": ("money",)}
        fit = [other for other in near.get(kind, ()) if expressions.named(other)]
        return self.chance.choice(fit) if fit and self.chance.random() < 0.2 else kind

    def _key(self, expressions: Expressions, kind: str, depth: int) -> str:
        """A key that names at least one column, or the join would have a side without a key."""
        for _ in range(5):
            key = expressions.of(kind, depth)
            if any(column.reference in key for column in expressions.columns):
                return key
        found = expressions.named(kind)
        return found[0].reference if found else expressions.bridge(kind)

    def _equal(self, mine: str, other: str) -> str:
        return f"{mine} {'<=>' if self.chance.random() < 0.2 else '='} {other}"
