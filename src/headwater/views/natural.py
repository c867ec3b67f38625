"""The natural key of a view: columns by which its last operator keeps its rows, so that there are few of each."""

from __future__ import annotations

from headwater.views.plan import Aggregate, Fragment, Node, Plan, Recompute


def natural_key(plan: Plan) -> tuple[str, ...]:
    """The names of the view's columns; none if it has no such key, or does not show all of it."""
    found = keys_of(plan.root)
    shown = {field.name: name for field, name in zip(plan.root.output, plan.names, strict=True)}
    return tuple(shown[each] for each in found)


def keys_of(node: Node) -> tuple[str, ...]:
    """The same as columns of an operator."""
    if isinstance(node, Aggregate):
        return node.keys
    if isinstance(node, Recompute) and node.selects:
        return node.keys[0] if set(node.keys[0]) <= set(node.schema.names) else ()
    if isinstance(node, Fragment):
        new = {old: name for name, old in node.passed}
        below = keys_of(node.child)
        return tuple(new[each] for each in below) if set(below) <= set(new) else ()
    return ()
