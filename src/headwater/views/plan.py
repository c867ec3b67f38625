"""The plan of a view: a small tree of operators, pure data.

Columns have names that are unique within a plan (`c17`), so that joins need no qualifiers. Expressions are not
looked into here: a `Fragment` holds them as something that only the evaluator understands.

    kind            operators              what a tick does with it
    source          Source, Constant       takes the change of an input; as Arranged, it has its rows at hand too
    linear          Fragment, Union        evaluates the change alone; weights are carried along
    bilinear        Join                   looks up the other side's rows with the same keys
    accumulating    Aggregate              adds the change to the touched groups' accumulators
    recompute       Recompute              evaluates the rows of the touched keys anew
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pyarrow as pa

from headwater.views.direct import Direct


@dataclass(frozen=True)
class Field:
    """A column within a plan; `shown` is what people call it, `atomic` whether it can be a key."""

    name: str
    type: pa.DataType
    shown: str = ""
    atomic: bool = True

    @property
    def arrow(self) -> pa.Field:
        """The Arrow field."""
        return pa.field(self.name, self.type)


Fields = tuple[Field, ...]


@dataclass(frozen=True)
class Node:
    """An operator. `output` are its columns."""

    kind: ClassVar[str] = "linear"
    output: Fields

    @property
    def children(self) -> tuple[Node, ...]:
        """The operators that feed it."""
        return ()

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return pa.schema([each.arrow for each in self.output])


@dataclass(frozen=True)
class Source(Node):
    """A topic, the log of one, or another view; `columns` are the names that the relation has for `output`."""

    kind: ClassVar[str] = "source"
    relation: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arranged(Source):
    """An input of a join or recompute that is kept by its key already: a table, or what views share."""


@dataclass(frozen=True)
class Constant(Node):
    """Rows that the query itself holds: they appear once, when the view is filled."""

    kind: ClassVar[str] = "source"
    rows: pa.Table | None = None


@dataclass(frozen=True)
class Fragment(Node):
    """A stretch of filters, projections and generators.

    Rows with a null in one of `present` are left out first. `computing` gets the columns `inputs` and gives new
    ones, by row; the columns in `passed` (new name, old name) go by untouched. Without `computing` it only
    selects columns. `direct` computes the same without Spark, if it can.
    """

    child: Node = field(kw_only=True)
    present: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    computing: Any = None
    direct: Direct | None = field(default=None, compare=False)
    passed: tuple[tuple[str, str], ...] = ()
    text: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        """Its input."""
        return (self.child,)

    @property
    def computes(self) -> bool:
        """Whether it evaluates anything."""
        return self.computing is not None or self.direct is not None


@dataclass(frozen=True)
class Union(Node):
    """All rows of all inputs; their columns go by position."""

    inputs: tuple[Node, ...] = ()

    @property
    def children(self) -> tuple[Node, ...]:
        """Its inputs."""
        return self.inputs


@dataclass(frozen=True)
class Keyed:
    """A subplan whose rows are kept by `key`; rows with a null in it are dropped, or `match` no others."""

    node: Node
    key: tuple[str, ...]
    drops: bool = False
    matches: bool = False

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of what it reads, each once."""
        return relations(self.node)


@dataclass(frozen=True)
class Join(Node):
    """Pairs of rows with equal keys, none of them null."""

    kind: ClassVar[str] = "bilinear"
    left: Node = field(kw_only=True)
    right: Node = field(kw_only=True)
    left_keys: tuple[str, ...] = ()
    right_keys: tuple[str, ...] = ()
    name: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        """Its two sides."""
        return (self.left, self.right)

    @property
    def keyed(self) -> dict[str, Keyed]:
        """Its sides by their keys, each under the name of its state."""
        left, right = Keyed(self.left, self.left_keys, drops=True), Keyed(self.right, self.right_keys, drops=True)
        return {f"{self.name}.left": left, f"{self.name}.right": right}


@dataclass(frozen=True)
class Call:
    """One aggregate: `function` over columns of the input, where the column `condition`, if given, is true."""

    function: str
    arguments: tuple[str, ...]
    result: Field
    condition: str | None = None


@dataclass(frozen=True)
class Aggregate(Node):
    """One row per group; without keys one row always. Without calls it is DISTINCT."""

    kind: ClassVar[str] = "accumulating"
    child: Node = field(kw_only=True)
    keys: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    name: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        """Its input."""
        return (self.child,)


@dataclass(frozen=True)
class Order:
    """A column that rows are ordered by."""

    column: str
    ascending: bool
    nulls_first: bool


@dataclass(frozen=True)
class First:
    """So many rows of each key, the first in an order; `place` is the column that numbers them."""

    limit: int
    order: tuple[Order, ...]
    place: str


@dataclass(frozen=True)
class Recompute(Node):
    """Any operator of Spark's, evaluated anew on all rows of the touched keys.

    `keys` are the key columns of each input; without any, all rows are of one key. Rows with a null in a key that
    `matches` belong to no other row. One that `selects` gives the first rows of each key in a fixed order, so that
    those and what comes stand for all, until one of them leaves; which those are can be told without Spark if
    `first` says so. One that `forgets` need not keep its inputs. `reason` is why it did not become a faster kind.
    """

    kind: ClassVar[str] = "recompute"
    inputs: tuple[Node, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    computing: Any = None
    matches: bool = False
    selects: bool = False
    forgets: bool = False
    first: First | None = None
    name: str = ""
    text: str = ""
    reason: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        """Its inputs."""
        return self.inputs

    @property
    def keyed(self) -> dict[str, Keyed]:
        """Its inputs by their keys, each under the name of its state."""
        pairs = enumerate(zip(self.inputs, self.keys, strict=True))
        return {f"{self.name}.{place}": Keyed(node, key, matches=self.matches) for place, (node, key) in pairs}

    @property
    def is_whole(self) -> bool:
        """Whether every change touches everything."""
        return not any(self.keys)


@dataclass(frozen=True)
class Plan:
    """A view's plan: the tree, whose output columns are called `names`; whether rows never disappear.

    `mentions` are the relations that the query names, also those that it turns out not to need.
    """

    root: Node
    names: tuple[str, ...]
    appends_only: bool
    mentions: tuple[str, ...] = ()

    def walk(self) -> Iterator[Node]:
        """Every operator, inputs first."""
        return walk(self.root)

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations it reads, each once."""
        return relations(self.root)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the relations without which the query means nothing."""
        return tuple(dict.fromkeys((*self.relations, *self.mentions)))


def over(node: Node, children: Sequence[Node]) -> Node:
    """The same operator over other inputs with the same columns."""
    if isinstance(node, Join):
        return replace(node, left=children[0], right=children[1])
    if isinstance(node, Union | Recompute):
        return replace(node, inputs=tuple(children))
    return replace(node, child=children[0]) if isinstance(node, Fragment | Aggregate) else node


def walk(node: Node) -> Iterator[Node]:
    """An operator and all below it, inputs first."""
    for child in node.children:
        yield from walk(child)
    yield node


def relations(root: Node) -> tuple[str, ...]:
    """The names of the relations that an operator and all below it read, each once."""
    return tuple(dict.fromkeys(node.relation for node in walk(root) if isinstance(node, Source)))
