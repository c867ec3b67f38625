"""Subqueries in expressions: scalar, IN, EXISTS and what is lateral, correlated or not, one or two levels deep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.equivalence.deep.aggregates import Aggregates
from tests.equivalence.deep.expressions import ATOMIC, JOINING, Expressions
from tests.equivalence.deep.made import Made
from tests.equivalence.deep.sources import From
from tests.equivalence.deep.tree import Expression, Item, Query, Select, Top

if TYPE_CHECKING:
    from tests.equivalence.deep.queries import Queries

_COMPARED = ("=", "<", ">=", "<>", "<=>")
_SCALARS = ("int", "money", "string", "date", "boolean")


class Subqueries:
    """Random subqueries for a scope."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.chance = queries.chance

    def predicate(self, outer: From, levels: int = 2) -> Expression:
        """IN, EXISTS or a comparison with a scalar subquery."""
        choice = self.chance.random()
        if choice < 0.35:
            return self._in(outer, levels)
        if choice < 0.7:
            return self._exists(outer, levels)
        scalar = self.scalar(outer, levels, ("int", "money", "string"))
        mine = Expressions(self.chance, outer.columns).of(scalar.kind, 0)
        return Expression(f"({{}} {self.chance.choice(_COMPARED)} {{}})", "boolean", (mine, scalar))

    def scalar(self, outer: From, levels: int = 2, kinds: tuple[str, ...] = _SCALARS) -> Expression:
        """A subquery that gives one value: an aggregate, or the first row of an order."""
        inner = self._inner()
        if self.chance.random() < 0.35:
            return self._first(outer, inner, kinds)
        aggregate = Aggregates(self.chance, inner.columns).exact(kinds)
        where = self._where(outer, inner, levels, correlated=0.65)
        query = Select((Item(aggregate, self.queries.fresh("c")),), inner.node, where=where)
        return Expression("({})", aggregate.kind, (query,))

    def _first(self, outer: From, inner: From, kinds: tuple[str, ...]) -> Expression:
        kind = self.chance.choice(kinds)
        item = Item(Expressions(self.chance, inner.columns).of(kind, 0), self.queries.fresh("c"))
        where = self._where(outer, inner, 1, correlated=0.7)
        top = self._top(inner, 1)
        return Expression("({})", kind, (Select((item,), inner.node, where=where, top=top),))

    def _top(self, inner: From, most: int) -> Top:
        """The first rows of a total order, mostly by something that is not shown."""
        by: tuple[Expression, ...] = ()
        if self.chance.random() < 0.7:
            kinds = sorted({column.kind for column in inner.columns} & set(ATOMIC))
            expressions = Expressions(self.chance, inner.columns)
            by = tuple(expressions.column(kind) for kind in self.chance.sample(kinds, min(len(kinds), 2)))
        ways = tuple(self.chance.choice(["", " DESC", " NULLS LAST"]) for _ in range(2))
        offset = self.chance.choice([None, None, None, 1])
        return Top(ways, self.chance.randint(1, most), offset, by)

    def _inner(self) -> From:
        return self.queries.sources.source(1 if self.chance.random() < 0.15 else 0)

    def _in(self, outer: From, levels: int) -> Expression:
        inner = self._inner()
        word = self.chance.choice(["IN", "NOT IN"])
        mine, others = Expressions(self.chance, outer.columns), Expressions(self.chance, inner.columns)
        kinds = self._kinds(outer, inner, 2 if self.chance.random() < 0.15 else 1)
        items = tuple(Item(others.of(kind, 0), self.queries.fresh("c")) for kind in kinds)
        where = self._where(outer, inner, levels, correlated=0.3)
        query: Query = Select(items, inner.node, where=where)
        if len(kinds) == 1 and self.chance.random() < 0.2:
            query = Select(items, inner.node, where=where, top=self._top(inner, 4))
        holes = ", ".join("{}" for _ in kinds)
        left = f"({holes})" if len(kinds) > 1 else holes
        return Expression(f"({left} {word} ({{}}))", "boolean", (*(mine.of(kind, 0) for kind in kinds), query))

    def _kinds(self, outer: From, inner: From, count: int) -> list[str]:
        shared = {c.kind for c in outer.columns} & {c.kind for c in inner.columns}
        return self.chance.choices([kind for kind in JOINING if kind in shared] or ["int"], k=count)

    def _exists(self, outer: From, levels: int) -> Expression:
        inner = self._inner()
        word = self.chance.choice(["EXISTS", "NOT EXISTS"])
        where = self._where(outer, inner, levels, correlated=0.9)
        item = Item(Expressions(self.chance, inner.columns).any(0, ATOMIC), self.queries.fresh("c"))
        return Expression(f"({word} ({{}}))", "boolean", (Select((item,), inner.node, where=where),))

    def _where(self, outer: From, inner: From, levels: int, *, correlated: float) -> tuple[Expression, ...]:
        """Predicates of a subquery: correlated, its own, and with a subquery of its own."""
        predicates = list(self.queries.where(inner, 0))
        if self.chance.random() < correlated:
            predicates.append(self.queries.sources.between(inner, outer))
            if self.chance.random() < 0.2:
                both = (*inner.columns, *outer.columns)
                predicates.append(Expressions(self.chance, both).of("boolean"))
        if levels > 1 and self.chance.random() < 0.2:
            predicates.append(self.predicate(inner, 1))
        return tuple(predicates)

    def lateral(self, outer: From) -> Made:
        """A subquery for LATERAL: rows, the first few of them, or an aggregate."""
        inner = self.queries.sources.simple()
        where = (*self.queries.where(inner, 0), self.queries.sources.between(inner, outer))
        choice = self.chance.random()
        if choice < 0.4:
            aggregates = Aggregates(self.chance, inner.columns)
            items = tuple(Item(aggregates.one(distinct=False), self.queries.fresh("c")) for _ in range(2))
            return Made(Select(items, inner.node, where=where), _shown(items), 1)
        expressions = Expressions(self.chance, inner.columns)
        items = tuple(Item(expressions.any(), self.queries.fresh("c")) for _ in range(2))
        top = self._top(inner, 3) if choice < 0.8 else None
        return Made(Select(items, inner.node, where=where, top=top), _shown(items), 3)


def _shown(items: tuple[Item, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((item.name, item.expression.kind) for item in items)
