"""What views share: inputs of joins and recomputes, kept by a key once for all views that need them.

An input of such an operator is a subplan whose rows are arranged by a key. It is *shared*: computed once in a tick
and kept under a name of its own, for every view in which the same subplan is needed by the same key. Where the
subplan is a table with that very key, the table's own rows serve, and nothing more is kept. An aggregate that a
view needs more than once, as when a WITH is read twice, is shared too, by its own key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.store import SHARED
from headwater.views.numbering import numbered
from headwater.views.plan import (
    Aggregate,
    Arranged,
    Field,
    Fragment,
    Join,
    Keyed,
    Node,
    Plan,
    Recompute,
    Source,
    over,
    relations,
    walk,
)

Choose = Callable[[str, Keyed], str | None]
"""Gives an input or an aggregate, told by the place of its state, the name of a table or of what is shared, if it
is one."""


@dataclass(frozen=True)
class Split:
    """A plan without the inputs that are kept elsewhere, and those of them that are shared.

    Each of these comes behind what it reads. Its columns and operators are named by their order alone, so that the
    same subplan has the same names in every view.
    """

    root: Node
    shared: Mapping[str, Keyed] = field(default_factory=dict)

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of what is read by what is left of it, each once."""
        return relations(self.root)


def split(plan: Plan, choose: Choose) -> Split:
    """Cut off what is chosen."""
    found: dict[str, Keyed] = {}
    return Split(_Splitting(choose, found).node(plan.root), found)


class _Splitting:
    def __init__(self, choose: Choose, found: dict[str, Keyed]) -> None:
        self._choose = choose
        self._found = found

    def node(self, node: Node) -> Node:
        node = over(node, [self.node(child) for child in node.children])
        if isinstance(node, Join) or (isinstance(node, Recompute) and not node.forgets):
            return over(node, [self._input(place, each) for place, each in node.keyed.items()])
        if isinstance(node, Aggregate) and node.keys:
            return self._input(node.name, Keyed(node, node.keys))
        return node

    def _input(self, place: str, given: Keyed) -> Node:
        output = given.node.output
        names = [each.name for each in output]
        node = _named(numbered(Plan(given.node, (), appends_only=False)).root)
        keyed = replace(given, node=node, key=tuple(_names(node)[names.index(each)] for each in given.key))
        name = self._choose(place, keyed)
        if name is None:
            return given.node
        if not name.startswith(SHARED):
            return Arranged(output, name, columns_read(given.node))
        self._found[name] = keyed
        return Arranged(output, name, tuple(_names(node)))


def is_aggregate(place: str) -> bool:
    """Whether a place is that of an aggregate itself, not of an input of another operator."""
    return "." not in place


def columns_read(node: Node) -> tuple[str, ...]:
    """The columns of a relation that a source, maybe below a selection, gives."""
    if isinstance(node, Source):
        return node.columns
    assert isinstance(node, Fragment)
    assert isinstance(node.child, Source)
    old, read = dict(node.passed), dict(zip(_names(node.child), node.child.columns, strict=True))
    return tuple(read[old[each]] for each in _names(node))


def relation_read(keyed: Keyed) -> tuple[str, tuple[str, ...]] | None:
    """The relation that is read as it is, and which of its columns are the key; None if it is something else."""
    node = keyed.node
    source = node.child if isinstance(node, Fragment) else node
    if not isinstance(source, Source):
        return None
    if isinstance(node, Fragment):
        allowed = {dict(node.passed).get(each) for each in keyed.key} if keyed.drops else set()
        if node.computing is not None or not allowed.issuperset(node.present):
            return None
    read = dict(zip(_names(node), columns_read(node), strict=True))
    return source.relation, tuple(read[each] for each in keyed.key)


def is_same(one: Keyed, other: Keyed, same: Callable[[Any, Any], bool]) -> bool:
    """Whether two subplans give the same rows by the same key; `same` compares expressions."""
    if replace(one, node=_bare(one.node)) != replace(other, node=_bare(other.node)):
        return False
    return all(same(*pair) for pair in zip(_expressions(one.node), _expressions(other.node), strict=True))


def _bare(node: Node) -> Node:
    """An operator, and all below it, without expressions and words for people."""
    output = tuple(Field(each.name, each.type, "", each.atomic) for each in node.output)
    node = over(replace(node, output=output), [_bare(child) for child in node.children])
    if isinstance(node, Fragment):
        return replace(node, computing=None, text="")
    if isinstance(node, Recompute):
        return replace(node, computing=None, text="", reason="")
    if isinstance(node, Aggregate):
        calls = tuple(replace(call, result=replace(call.result, shown="")) for call in node.calls)
        return replace(node, calls=calls)
    return node


def _expressions(node: Node) -> Iterator[Any]:
    return (each.computing for each in walk(node) if isinstance(each, Fragment | Recompute))


def _named(node: Node, counts: dict[str, int] | None = None) -> Node:
    """Operators that keep something, and all below, named by their order."""
    counts = {} if counts is None else counts
    node = over(node, [_named(child, counts) for child in node.children])
    if not isinstance(node, Join | Aggregate | Recompute):
        return node
    kind = node.name.rstrip("0123456789")
    counts[kind] = counts.get(kind, 0) + 1
    return replace(node, name=f"{kind}{counts[kind]}")


def _names(node: Node) -> list[str]:
    return [each.name for each in node.output]
