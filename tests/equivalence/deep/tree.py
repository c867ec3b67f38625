"""A query as a small tree, so that it can be written as SQL and made smaller.

Every order that cuts rows off (`Top`) names all columns of the query, whatever they are, so a query stays
deterministic when some of it is taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle


@dataclass(frozen=True)
class Expression:
    """SQL with a `{}` for every part. `kind` is that of `tests.equivalence.values`."""

    template: str
    kind: str
    parts: tuple[Expression | Query, ...] = ()

    def sql(self) -> str:
        return self.template.format(*(part.sql() for part in self.parts)) if self.parts else self.template


@dataclass(frozen=True)
class Item:
    """An expression with a name."""

    expression: Expression
    name: str

    def sql(self) -> str:
        return f"{self.expression.sql()} AS {self.name}"


@dataclass(frozen=True)
class Grouping:
    """GROUP BY. `word` is empty, ROLLUP or CUBE for the keys, or GROUPING SETS for the sets."""

    keys: tuple[Expression, ...]
    word: str = ""
    sets: tuple[tuple[Expression, ...], ...] = ()

    def sql(self) -> str:
        if self.sets:
            return f"{self.word} ({', '.join(f'({_listed(each)})' for each in self.sets)})"
        return f"{self.word} ({_listed(self.keys)})" if self.word else _listed(self.keys)


@dataclass(frozen=True)
class Top:
    """ORDER BY all columns, with the directions taking turns, and LIMIT and OFFSET.

    `by` comes before the columns: what is not shown, so that Spark has to carry it along.
    """

    directions: tuple[str, ...]
    limit: int | None = None
    offset: int | None = None
    by: tuple[Expression, ...] = ()

    def sql(self, names: Sequence[str]) -> str:
        columns = [*(each.sql() for each in self.by), *names]
        order = ", ".join(f"{column}{way}" for column, way in zip(columns, cycle(self.directions), strict=False))
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        offset = "" if self.offset is None else f" OFFSET {self.offset}"
        return f" ORDER BY {order}{limit}{offset}"


@dataclass(frozen=True)
class Select:
    """A SELECT with everything that may follow."""

    items: tuple[Item, ...]
    source: Source | None
    distinct: bool = False
    where: tuple[Expression, ...] = ()
    grouping: Grouping | None = None
    having: tuple[Expression, ...] = ()
    qualify: tuple[Expression, ...] = ()
    top: Top | None = None

    def sql(self) -> str:
        return "".join(
            [
                "SELECT DISTINCT " if self.distinct else "SELECT ",
                _listed(self.items),
                f" FROM {self.source.sql()}" if self.source else "",
                _clause("WHERE", self.where),
                f" GROUP BY {self.grouping.sql()}" if self.grouping else "",
                _clause("HAVING", self.having),
                _clause("QUALIFY", self.qualify),
                self.top.sql([item.name for item in self.items]) if self.top else "",
            ]
        )


@dataclass(frozen=True)
class SetOperation:
    """UNION, INTERSECT or EXCEPT of two queries."""

    word: str
    left: Query
    right: Query

    def sql(self) -> str:
        return f"({self.left.sql()}) {self.word} ({self.right.sql()})"


@dataclass(frozen=True)
class Common:
    """A query with a name, to be used several times."""

    name: str
    query: Query

    def sql(self) -> str:
        return f"{self.name} AS ({self.query.sql()})"


@dataclass(frozen=True)
class With:
    """A query after common ones."""

    commons: tuple[Common, ...]
    body: Query

    def sql(self) -> str:
        return f"WITH {_listed(self.commons)} {self.body.sql()}" if self.commons else self.body.sql()


# -- what FROM can name


@dataclass(frozen=True)
class Relation:
    """A table, stream or common query."""

    name: str
    alias: str

    def sql(self) -> str:
        return f"{self.name} {self.alias}"


@dataclass(frozen=True)
class Nested:
    """A query in parentheses."""

    query: Query
    alias: str

    def sql(self) -> str:
        return f"({self.query.sql()}) {self.alias}"


@dataclass(frozen=True)
class Values:
    """Constant rows."""

    rows: tuple[str, ...]
    alias: str
    names: tuple[str, ...]

    def sql(self) -> str:
        return f"(VALUES {', '.join(f'({row})' for row in self.rows)}) {self.alias}({', '.join(self.names)})"


@dataclass(frozen=True)
class Join:
    """Two sources; `on` or `using` may be empty."""

    word: str
    left: Source
    right: Source
    on: tuple[Expression, ...] = ()
    using: tuple[str, ...] = ()

    def sql(self) -> str:
        using = f" USING ({', '.join(self.using)})" if self.using else ""
        return f"{self.left.sql()} {self.word} {self.right.sql()}{using}{_clause('ON', self.on)}"


@dataclass(frozen=True)
class Lateral:
    """A source with a subquery, or a call that makes rows, for each of its rows."""

    source: Source
    word: str
    right: Query | Expression
    alias: str
    names: tuple[str, ...] = ()

    def sql(self) -> str:
        right = f"({self.right.sql()})" if not isinstance(self.right, Expression) else self.right.sql()
        alias = f"{self.alias}({', '.join(self.names)})" if self.names else self.alias
        on = " ON TRUE" if self.word == "LEFT JOIN" else ""
        return f"{self.source.sql()} {self.word} LATERAL {right} {alias}{on}"


@dataclass(frozen=True)
class LateralView:
    """A source with LATERAL VIEW."""

    source: Source
    call: Expression
    alias: str
    names: tuple[str, ...]
    outer: bool

    def sql(self) -> str:
        word = "LATERAL VIEW OUTER" if self.outer else "LATERAL VIEW"
        return f"{self.source.sql()} {word} {self.call.sql()} {self.alias} AS {', '.join(self.names)}"


@dataclass(frozen=True)
class Pivot:
    """A query with the values of one of its columns as columns."""

    query: Query
    aggregates: tuple[Item, ...]
    column: str
    values: tuple[Item, ...]
    alias: str

    def sql(self) -> str:
        inner = f"{_listed(self.aggregates)} FOR {self.column} IN ({_listed(self.values)})"
        return f"({self.query.sql()}) PIVOT ({inner}) {self.alias}"


@dataclass(frozen=True)
class Unpivot:
    """A query with some of its columns as rows."""

    query: Query
    value: str
    name: str
    columns: tuple[str, ...]
    nulls: bool
    alias: str

    def sql(self) -> str:
        nulls = " INCLUDE NULLS" if self.nulls else ""
        inner = f"{self.value} FOR {self.name} IN ({', '.join(self.columns)})"
        return f"({self.query.sql()}) UNPIVOT{nulls} ({inner}) {self.alias}"


Query = Select | SetOperation | With
Source = Relation | Nested | Values | Join | Lateral | LateralView | Pivot | Unpivot
Node = Expression | Item | Grouping | Top | Common | Query | Source


def _listed(nodes: Sequence[Expression | Item | Common]) -> str:
    return ", ".join(node.sql() for node in nodes)


def _clause(word: str, predicates: Sequence[Expression]) -> str:
    return f" {word} {' AND '.join(predicate.sql() for predicate in predicates)}" if predicates else ""
