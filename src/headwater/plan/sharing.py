"""What views share: inputs of joins and recomputes, kept by a key once for all views that need them.

An input of such an operator is a subplan whose rows are arranged by a key. It is *shared*: computed once in a tick
and kept under a name of its own, for every view in which the same subplan is needed by the same key. Where the
subplan is a table with that very key, the table's own rows serve, and nothing more is kept. An aggregate that a
view needs more than once, as when a WITH is read twice, is shared too, by its own key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from headwater.catalog.names import is_shared
from headwater.plan.numbering import numbered
from headwater.plan.operators import Arranged, Keyed, Node, Plan, relations, walk
from headwater.plan.physical import Step

Choose = Callable[[str, Keyed], str | None]
"""Gives an input or an aggregate, told by the name of its state, the name of a table or of what is shared, if it
is one."""


@dataclass(frozen=True)
class Split:
    """A plan without the inputs that are kept elsewhere, and those of them that are shared.

    Each of these comes behind what it reads. Its columns and operators are named by their order alone, so that the
    same subplan has the same names in every view.
    """

    root: Node
    shared: Mapping[str, Keyed] = field(default_factory=dict)

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The names of what is read by what is left of it, each once."""
        return relations(self.root)

    @cached_property
    def grows_with(self) -> frozenset[str] | None:
        """The relations it reads, if no row of it ever disappears where none of theirs does; else None."""
        roots = [self.root, *(keyed.node for keyed in self.shared.values())]
        if not all(node.grows for root in roots for node in walk(root)):
            return None
        return frozenset(name for root in roots for name in relations(root)) - self.shared.keys()

    @cached_property
    def physical(self) -> Step:
        """What a tick does for what is left of it."""
        return self.root.physical()


def split(plan: Plan, choose: Choose) -> Split:
    """Cut off what is chosen."""
    found: dict[str, Keyed] = {}
    return Split(_Splitting(choose, found).node(plan.root), found)


class _Splitting:
    def __init__(self, choose: Choose, found: dict[str, Keyed]) -> None:
        self._choose = choose
        self._found = found

    def node(self, node: Node) -> Node:
        node = node.over([self.node(child) for child in node.children])
        if node.keyed:
            kept = [self._input(state, each) for state, each in node.keyed.items()]
            return node.over([*kept, *node.children[len(kept) :]])
        return self._input(*node.itself) if node.itself is not None else node

    def _input(self, state: str, given: Keyed) -> Node:
        output = given.node.output
        names = [each.name for each in output]
        node = _named(numbered(Plan(given.node, (), appends_only=False)).root)
        keyed = replace(given, node=node, key=tuple(_names(node)[names.index(each)] for each in given.key))
        name = self._choose(state, keyed)
        if name is None:
            return given.node
        if not is_shared(name):
            reading = given.node.reading
            assert reading is not None
            return Arranged(output, name, reading.columns)
        self._found[name] = keyed
        return Arranged(output, name, tuple(_names(node)))


def is_aggregate(state: str) -> bool:
    """Whether a state is that of an aggregate itself, not of an input of another operator."""
    return "." not in state


def relation_read(keyed: Keyed) -> tuple[str, tuple[str, ...]] | None:
    """The relation that is read as it is, and which of its columns are the key; None if it is something else."""
    reading = keyed.node.reading
    if reading is None:
        return None
    read = dict(zip(_names(keyed.node), reading.columns, strict=True))
    key = tuple(read[each] for each in keyed.key)
    dropped = set(key) if keyed.drops else set()
    return (reading.relation, key) if dropped.issuperset(reading.present) else None


def is_same(one: Keyed, other: Keyed, same: Callable[[Any, Any], bool]) -> bool:
    """Whether two subplans give the same rows by the same key; `same` compares expressions."""
    if replace(one, node=_bare(one.node)) != replace(other, node=_bare(other.node)):
        return False
    return all(same(*pair) for pair in zip(_expressions(one.node), _expressions(other.node), strict=True))


def _bare(node: Node) -> Node:
    """An operator, and all below it, without expressions and words for people."""
    return node.over([_bare(child) for child in node.children]).bare()


def _expressions(node: Node) -> Iterator[Any]:
    return (each.computed for each in walk(node))


def _named(node: Node, counts: dict[str, int] | None = None) -> Node:
    """Operators that keep something, and all below, named by their order."""
    counts = {} if counts is None else counts
    node = node.over([_named(child, counts) for child in node.children])
    if not node.named:
        return node
    kind = node.named.rstrip("0123456789")
    counts[kind] = counts.get(kind, 0) + 1
    return node.called(f"{kind}{counts[kind]}")


def _names(node: Node) -> list[str]:
    return [each.name for each in node.output]
