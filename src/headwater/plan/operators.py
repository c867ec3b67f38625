"""The plan of a view: a small tree of operators, pure data.

Columns have names that are unique within a plan (`c17`), so that joins need no qualifiers. Expressions are not
looked into here: an operator holds what it has evaluated as something that only the evaluator understands.

    kind            operators              what a tick does with it
    source          Source, Constant       takes the change of an input; as Arranged, it has its rows at hand too
    linear          Fragment, Union        evaluates the change alone; weights are carried along
    bilinear        Join, OuterJoin, …     looks up the other side's rows with the same keys
    accumulating    Aggregate              adds the change to the touched groups' accumulators
    tree            Tree, TopKTree         evaluates the touched leaves of groups anew, and what lies above
    recompute       Recompute, TopK        evaluates the rows of the touched keys anew, or the first of them

Here is what is true of any operator, and the source, which trees end in; all others are in files of `operators/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import pyarrow as pa

from headwater.change.keys import hashed_schema
from headwater.plan.physical import Exchange, Load, Step
from headwater.plan.registry import register


@register()
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


class Names(dict[str, str]):
    """Other names for the columns of a plan."""

    def all(self, names: Iterable[str]) -> tuple[str, ...]:
        """The other names of some columns."""
        return tuple(self[name] for name in names)

    def fields(self, fields: Fields) -> Fields:
        """The columns under their other names."""
        return tuple(replace(each, name=self[each.name]) for each in fields)


class Reading(NamedTuple):
    """A relation that is read as it is: its names of the columns, and in which of them no row has a null."""

    relation: str
    columns: tuple[str, ...]
    present: tuple[str, ...] = ()


@dataclass(frozen=True)
class Node:
    """An operator. `output` are its columns.

    What is told here holds for one that neither keeps nor evaluates anything; by itself a node stands for an input
    of which only the columns count. One that `grows` gives rows for those that come, and looks at none of them
    again.
    """

    kind: ClassVar[str] = "linear"
    grows: ClassVar[bool] = True
    output: Fields

    @property
    def children(self) -> tuple[Node, ...]:
        """The operators that feed it."""
        return ()

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return pa.schema([each.arrow for each in self.output])

    # -- the same otherwise

    def over(self, children: Sequence[Node]) -> Self:
        """The same over other inputs with the same columns."""
        return self

    def renamed(self, names: Names) -> Self:
        """The same with other names for its columns, over inputs that have them already."""
        return replace(self, output=names.fields(self.output))

    def bare(self) -> Self:
        """The same without expressions and words for people, over inputs that are so already."""
        output = tuple(Field(each.name, each.type, "", each.atomic) for each in self.output)
        return replace(self, output=output)

    def portable(self) -> Self:
        """The same without what belongs to this process: expressions, and what lies below."""
        return self.over([Node(each.output) for each in self.children])

    # -- what is true of it

    @property
    def computed(self) -> Any:
        """What the evaluator evaluates for it; None if nothing."""
        return None

    @property
    def retracts(self) -> bool:
        """Whether rows of it may disappear although none of its inputs do."""
        return False

    @property
    def arranged_by(self) -> tuple[str, ...]:
        """The columns by which it keeps its rows, few under each; none if it has no such, or does not give them."""
        return ()

    @property
    def reading(self) -> Reading | None:
        """The relation that it gives as it is; None if it is something else."""
        return None

    @property
    def selected(self) -> tuple[Node, dict[str, str]]:
        """The operator whose columns it merely selects, and their names there; itself if it does more."""
        return self, {each.name: each.name for each in self.output}

    @property
    def keyed(self) -> Mapping[str, Keyed]:
        """The inputs, by the names of their states, of which all rows are kept by a key, by it or somebody else.

        They come before those of which nothing is kept.
        """
        return {}

    @property
    def named(self) -> str:
        """The name of what it keeps, which no other operator of the plan has; empty if it keeps nothing."""
        return ""

    def called(self, name: str) -> Node:
        """The same under another name."""
        return self

    @property
    def itself(self) -> tuple[str, Keyed] | None:
        """The name of its own state, and itself by a key, if it can be computed once for all that need it."""
        return None

    # -- for people

    @property
    def title(self) -> str:
        """What it does, in the words of the query."""
        return ""

    @property
    def work(self) -> str:
        """What a tick costs."""
        return "evaluates the change alone"

    @property
    def keeps(self) -> Mapping[str, str]:
        """The names of its states, and the key of each."""
        return {}

    def shown(self, names: Iterable[str]) -> str:
        """Some of its columns as people call them; everything if there are none."""
        shown = {each.name: each.shown or each.name for each in self.output}
        return ", ".join(shown[name] for name in names)

    # -- how it is run

    def physical(self) -> Step:
        """What a tick does for it and all below it."""
        raise NotImplementedError(self.kind)


@register()
@dataclass(frozen=True)
class Source(Node):
    """A topic, the log of one, or another view; `columns` are the names that the relation has for `output`."""

    kind: ClassVar[str] = "source"
    relation: str = ""
    columns: tuple[str, ...] = ()

    @property
    def reading(self) -> Reading:
        """All of it."""
        return Reading(self.relation, self.columns)

    @property
    def title(self) -> str:
        """The relation and its columns."""
        return f"{self.relation} ({', '.join(self.columns)})"

    @property
    def work(self) -> str:
        """What a tick costs."""
        return TAKES

    def physical(self) -> Step:
        """Load the change."""
        return Load(self.relation, self.columns, self.schema)


TAKES = "takes the change of this tick"


@dataclass(frozen=True)
class Arranged(Source):
    """An input of a join or recompute that is kept by its key already: a table, or what views share."""

    def physical(self) -> Step:
        """Load the change, with the rows before at hand."""
        return Load(self.relation, self.columns, self.schema, is_arranged=True)


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

    def physical(self, state: str = "") -> Exchange:
        """Compute its change, by the key; it is kept under the name of a state, if there is one."""
        schema = hashed_schema(self.node.schema)
        return Exchange(self.node.physical(), schema, self.key, self.drops, self.matches, state=state)


@register()
@dataclass(frozen=True)
class Plan:
    """A view's plan: the tree, whose output columns are called `names`; whether rows never disappear.

    `mentions` are the relations that the query names, also those that it turns out not to need; `reads` are the
    columns of each that it cannot do without.
    """

    root: Node
    names: tuple[str, ...]
    appends_only: bool
    mentions: tuple[str, ...] = ()
    reads: tuple[tuple[str, tuple[str, ...]], ...] = ()

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


def walk(node: Node) -> Iterator[Node]:
    """An operator and all below it, inputs first."""
    for child in node.children:
        yield from walk(child)
    yield node


def relations(root: Node) -> tuple[str, ...]:
    """The names of the relations that an operator and all below it read, each once."""
    return tuple(dict.fromkeys(node.relation for node in walk(root) if isinstance(node, Source)))
