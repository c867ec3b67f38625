"""A grammar of deterministic Spark SQL. A query is a tree, wholly determined by its seed.

    query   = projection | grouped | global | windowed | top | set operation | time window | WITH …
    source  = relation | VALUES | (query) | any join | LATERAL … | PIVOT | UNPIVOT
    subquery in SELECT, WHERE and HAVING

Doubles that depend on the order of their inputs (kind `rough`) are only shown at the top, never used further.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

from tests.equivalence.deep.aggregates import Aggregates
from tests.equivalence.deep.expressions import ATOMIC, KINDS, Expressions
from tests.equivalence.deep.made import Made
from tests.equivalence.deep.schema import ROWS, TOPICS
from tests.equivalence.deep.sources import From, Sources
from tests.equivalence.deep.subqueries import Subqueries
from tests.equivalence.deep.tree import (
    Common,
    Expression,
    Grouping,
    Item,
    Query,
    Relation,
    Select,
    SetOperation,
    Top,
    With,
)
from tests.equivalence.expressions import Column

_SETS = (
    "UNION",
    "UNION",
    "UNION ALL",
    "UNION ALL",
    "INTERSECT",
    "INTERSECT",
    "INTERSECT ALL",
    "EXCEPT",
    "EXCEPT ALL",
    "MINUS",
)
_WAYS = ("", " DESC", " NULLS LAST", " DESC NULLS FIRST")
_GROUPS = ("int", "int", "string", "boolean", "date", "money", "double", "timestamp", "wide", "ints", "pair")


def make_query(seed: int, number: int) -> Query:
    """Query `number` of a seed."""
    queries = Queries(random.Random(f"{seed}:{number}"))
    return queries.query(queries.chance.choice([1, 1, 2, 2, 2, 3]), rough=True).node


class Queries:
    """Random queries over the four tables and, for a while, common ones."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.sources = Sources(self)
        self.subqueries = Subqueries(self)
        self.relations = [
            From(
                Relation(topic.name, ""),
                tuple(Column(name, kind, name) for name, kind in topic.columns),
                ROWS[topic.name],
                topic.name,
            )
            for topic in TOPICS
        ]
        self._numbers = itertools.count(1)

    def fresh(self, letter: str) -> str:
        """A name that nothing else in this query has."""
        return f"{letter}{next(self._numbers)}"

    def query(self, depth: int, *, rough: bool = False) -> Made:
        """A query whose sources nest up to `depth` levels."""
        shapes: list[tuple[Callable[[int, bool], Made], float]] = [
            (self._projection, 4),
            (self._grouped, 5),
            (self._global, 1),
            (self._windowed, 2.5),
            (self._top, 1.5),
            (self._time_window, 0.9),
        ]
        if depth > 0:
            shapes += [(self._set_operation, 1.8), (self._with, 1.5), (self._best, 0.8)]
        (shape,) = self.chance.choices([each for each, _ in shapes], [weight for _, weight in shapes])
        return shape(depth, rough)

    # -- rows

    def _projection(self, depth: int, rough: bool, kinds: Sequence[str] | None = None) -> Made:
        source = self.sources.source(depth)
        items = self._items(source, kinds)
        if depth > 0 and kinds is None and self.chance.random() < 0.25:
            items += (self._subquery_item(source),)
        distinct = self.chance.random() < 0.2
        return self._made(Select(items, source.node, distinct, self.where(source, depth)), source.rows)

    def _items(self, source: From, kinds: Sequence[str] | None = None) -> tuple[Item, ...]:
        expressions = Expressions(self.chance, source.columns)
        if kinds is None:
            found = [expressions.any(2) for _ in range(self.chance.randint(1, 4))]
        else:
            found = [expressions.of(kind) for kind in kinds]
        return tuple(Item(each, self.fresh("c")) for each in found)

    def _subquery_item(self, source: From) -> Item:
        scalar = self.chance.random() < 0.6
        found = self.subqueries.scalar(source) if scalar else self.subqueries.predicate(source)
        return Item(found, self.fresh("c"))

    def _made(self, node: Select, rows: int) -> Made:
        return Made(node, tuple((item.name, item.expression.kind) for item in node.items), rows)

    def where(self, source: From, depth: int) -> tuple[Expression, ...]:
        """Predicates for WHERE; with depth, also with subqueries."""
        expressions = Expressions(self.chance, source.columns)
        predicates: list[Expression] = []
        if self.chance.random() < 0.35:
            predicates.append(expressions.of("boolean", 2))
        if depth > 0 and self.chance.random() < 0.28:
            found = self.subqueries.predicate(source)
            if self.chance.random() < 0.25:
                found = Expression("({} OR {})", "boolean", (found, expressions.of("boolean")))
            predicates.append(found)
        return tuple(predicates)

    def _top(self, depth: int, rough: bool) -> Made:
        made = self._projection(depth, rough=False)
        assert isinstance(made.node, Select)
        limit = self.chance.choice([1, 2, 3, 5, 8, 20, None])
        offset = self.chance.choice([None, None, 1, 3])
        top = Top(tuple(self.chance.choices(_WAYS, k=2)), limit, offset if limit or depth else offset or 1)
        node = made.node
        return Made(
            Select(node.items, node.source, node.distinct, node.where, top=top), made.columns, limit or made.rows
        )

    # -- groups

    def _aggregated(self, source: From, rough: bool) -> tuple[Item, ...]:
        aggregates = Aggregates(self.chance, source.columns, rough=rough)
        distinct = self.chance.random() < 0.5
        made = [aggregates.one(distinct=distinct) for _ in range(self.chance.randint(1, 3))]
        if distinct and self.chance.random() < 0.4:
            made += aggregates.distinct_counts()
        return tuple(Item(each, self.fresh("c")) for each in made)

    def _global(self, depth: int, rough: bool) -> Made:
        source = self.sources.source(depth)
        items = self._aggregated(source, rough)
        having = (Aggregates(self.chance, source.columns).condition(),) if self.chance.random() < 0.2 else ()
        return self._made(Select(items, source.node, where=self.where(source, depth), having=having), 1)

    def _grouped(self, depth: int, rough: bool) -> Made:
        source = self.sources.source(depth)
        keys = self._keys(source)
        items = [Item(key, self.fresh("c")) for key in keys]
        grouping = Grouping(keys)
        if self.chance.random() < 0.3:
            grouping = self._sets(keys)
            items.append(Item(self._grouping_id(keys), self.fresh("c")))
        items += self._aggregated(source, rough)
        if depth > 0 and not grouping.word and self.chance.random() < 0.12:
            items.append(Item(self._over_groups(keys), self.fresh("c")))
        node = Select(
            tuple(items),
            source.node,
            where=self.where(source, depth),
            grouping=grouping,
            having=self._having(source, () if grouping.word else keys, depth),
        )
        return self._made(node, max(2, source.rows // 2))

    def _keys(self, source: From) -> tuple[Expression, ...]:
        """Different keys that are no bare constants."""
        present = {column.kind for column in source.columns}
        kinds = [kind for kind in _GROUPS if kind in present] or ["int"]
        expressions = Expressions(self.chance, source.columns)
        found: dict[str, Expression] = {}
        for kind in self.chance.choices(kinds, k=self.chance.choice([1, 1, 2, 2, 3])):
            key = expressions.of(kind) if self.chance.random() < 0.25 else expressions.column(kind)
            if any(column.reference in key.sql() for column in source.columns):
                found.setdefault(key.sql(), key)
        return tuple(found.values()) or (Expression("1 + 1", "int"),)

    def _sets(self, keys: tuple[Expression, ...]) -> Grouping:
        word = self.chance.choice(["ROLLUP", "CUBE", "GROUPING SETS"])
        if word != "GROUPING SETS":
            return Grouping(keys, word)
        some = [tuple(key for key in keys if self.chance.random() < 0.6) for _ in range(2)]
        return Grouping(keys, word, (keys, *some))

    def _grouping_id(self, keys: tuple[Expression, ...]) -> Expression:
        if self.chance.random() < 0.6:
            return Expression("grouping_id()", "int")
        return Expression("grouping({})", "int", keys[:1])

    def _over_groups(self, keys: tuple[Expression, ...]) -> Expression:
        template = self.chance.choice(
            [
                "rank() OVER (ORDER BY count(*) DESC)",
                "sum(count(*)) OVER (ORDER BY {} ROWS UNBOUNDED PRECEDING)",
                "row_number() OVER (ORDER BY {})",
            ]
        )
        if "{}" not in template:
            return Expression(template, "int")
        return Expression(template.replace("{}", ", ".join("{}" for _ in keys)), "int", keys)

    def _having(self, source: From, keys: tuple[Expression, ...], depth: int) -> tuple[Expression, ...]:
        """Conditions over aggregates and keys; there are no keys where Spark cannot tell which are meant."""
        if self.chance.random() > 0.3:
            return ()
        aggregates = Aggregates(self.chance, source.columns)
        condition = aggregates.condition()
        if depth > 0 and self.chance.random() < 0.45:
            scope = From(source.node, tuple(Column(k.sql(), k.kind, k.sql()) for k in keys if not k.parts), 1)
            if scope.columns:
                return (self.subqueries.predicate(scope, 1),)
            scalar = self.subqueries.scalar(scope, 1, ("int",))
            condition = Expression("(count(*) >= {})", "boolean", (scalar,))
        elif keys and not keys[0].parts and self.chance.random() < 0.3:
            condition = Expression("({} OR {} IS NULL)", "boolean", (condition, keys[0]))
        return (condition,)

    def _time_window(self, depth: int, rough: bool) -> Made:
        """Groups by window() or session_window() over a relation with a time."""
        timed = [each for each in self.relations if any(column.kind == "timestamp" for column in each.columns)]
        if not timed:
            return self._grouped(depth, rough)
        source = self.sources.relation(self.chance.choice(timed))
        expressions = Expressions(self.chance, source.columns)
        at = self.chance.choice(expressions.named("timestamp"))
        call = self.chance.choice(
            [
                "window({}, '1 hour')",
                "window({}, '2 hours', '1 hour')",
                "window({}, '45 minutes', '45 minutes', '10 minutes')",
                "session_window({}, '40 minutes')",
                "session_window({}, '2 hours')",
            ]
        )
        window = Expression(call, "window", (at,))
        keys = (window, *self._keys(source)) if self.chance.random() < 0.5 else (window,)
        word = call.split("(", 1)[0]
        shown = [Item(Expression(f"{word}.start", "timestamp"), self.fresh("c"))]
        if self.chance.random() < 0.5:
            shown.append(Item(Expression(f"{word}.end", "timestamp"), self.fresh("c")))
        shown += [Item(key, self.fresh("c")) for key in keys[1:]]
        items = (*shown, *self._aggregated(source, rough))
        return self._made(
            Select(items, source.node, where=self.where(source, 0), grouping=Grouping(keys)), source.rows
        )

    # -- windows

    def _windowed(self, depth: int, rough: bool) -> Made:
        source = self.sources.source(depth)
        aggregates = Aggregates(self.chance, source.columns, rough=rough)
        qualify: tuple[Expression, ...] = ()
        if self.chance.random() < 0.25:
            qualify = (self._among_first(aggregates.number()),)
        over = [Item(aggregates.over(tied=bool(qualify)), self.fresh("c"))]
        if self.chance.random() < 0.35:
            over.append(Item(aggregates.over(tied=True), self.fresh("c")))
        items = (*self._items(source), *over)
        return self._made(Select(items, source.node, where=self.where(source, 0), qualify=qualify), source.rows)

    def _among_first(self, number: Expression) -> Expression:
        return Expression(f"({{}} <= {self.chance.randint(1, 3)})", "boolean", (number,))

    def _best(self, depth: int, rough: bool) -> Made:
        """The first few of each group."""
        source = self.sources.source(depth - 1)
        aggregates = Aggregates(self.chance, source.columns)
        place = Item(aggregates.number(), self.fresh("c"))
        inner = self._made(
            Select((*self._items(source), place), source.node, where=self.where(source, 0)), source.rows
        )
        outer = self.sources.named(inner)
        number = Expression(outer.columns[-1].reference, "int")
        items = tuple(Item(Expression(c.reference, c.kind), self.fresh("c")) for c in outer.columns)
        return self._made(Select(items, outer.node, where=(self._among_first(number),)), source.rows)

    # -- several queries

    def _set_operation(self, depth: int, rough: bool) -> Made:
        kinds = [
            self.chance.choice(KINDS if self.chance.random() < 0.3 else ATOMIC)
            for _ in range(self.chance.randint(1, 2))
        ]
        left = self._branch(depth - 1, kinds)
        rows, node = left.rows, left.node
        for _ in range(self.chance.choice([1, 1, 1, 2])):
            right = self._branch(depth - 1, kinds)
            rows, node = rows + right.rows, SetOperation(self.chance.choice(_SETS), node, right.node)
        return Made(node, left.columns, rows)

    def _branch(self, depth: int, kinds: Sequence[str]) -> Made:
        """A projection to these kinds, of columns as far as possible so that branches overlap."""
        source = self.sources.source(depth)
        expressions = Expressions(self.chance, source.columns)
        plain = self.chance.random() < 0.75
        found = [expressions.column(kind) if plain else expressions.of(kind) for kind in kinds]
        items = tuple(Item(each, self.fresh("c")) for each in found)
        return self._made(Select(items, source.node, where=self.where(source, depth)), source.rows)

    def _with(self, depth: int, rough: bool) -> Made:
        """Common queries, the second perhaps over the first, and a query that likes to use them."""
        before = self.relations
        commons: list[Common] = []
        try:
            for _ in range(self.chance.choice([1, 1, 2])):
                made = self.query(depth - 1)
                name = self.fresh("w")
                columns = tuple(Column(n, kind, n) for n, kind in made.columns)
                common = From(Relation(name, ""), columns, made.rows, name)
                commons.append(Common(name, made.node))
                self.relations = [common, common, *self.relations[: 2 + len(commons)]]
            body = self.query(depth - 1 if depth > 1 else 1, rough=rough)
        finally:
            self.relations = before
        if isinstance(body.node, With):
            return Made(With((*commons, *body.node.commons), body.node.body), body.columns, body.rows)
        return Made(With(tuple(commons), body.node), body.columns, body.rows)
