"""A plan in words: what `explain` prints, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.views.plan import Aggregate, Constant, Fragment, Join, Node, Plan, Recompute, Source, Union

_WORK = {
    "source": "takes the change of this tick",
    "linear": "evaluates the change alone",
    "bilinear": "looks up the rows of the other side that have a touched key",
    "accumulating": "adds the change to the touched groups",
    "recompute": "evaluates all rows of the touched keys anew",
}
_WHOLE = "evaluates everything anew, whatever changed"
_SELECTS = "compares the change with the rows it has given; looks at {} when one of those leaves"
_PAIRS = "looks at every row of the other side"


def describe(plan: Plan) -> list[dict[str, Any]]:
    """Each operator on a line, the last one first: depth, kind, text, work, and its state with the key."""
    return list(_lines(plan.root, 0))


def _lines(node: Node, depth: int) -> Iterator[dict[str, Any]]:
    if isinstance(node, Fragment) and node.computing is None and not node.present:
        yield from _lines(node.child, depth)  # only chooses columns
        return
    yield {"depth": depth, "kind": node.kind, "text": _text(node), "work": _work(node), "state": _state(node)}
    for child in node.children:
        yield from _lines(child, depth + 1)


def _work(node: Node) -> str:
    if isinstance(node, Recompute):
        work = _WHOLE if node.is_whole else _WORK[node.kind]
        if node.selects:
            work = _SELECTS.format("everything" if node.is_whole else "all rows of its key")
        return f"{work}: {node.reason}" if node.reason else work
    if isinstance(node, Join) and not node.left_keys:
        return _PAIRS
    return _WORK[node.kind]


def _text(node: Node) -> str:  # noqa: PLR0911  one for each operator
    if isinstance(node, Source):
        return f"{node.relation} ({', '.join(node.columns)})"
    if isinstance(node, Constant):
        return "rows written in the query"
    if isinstance(node, Union):
        return "union all"
    if isinstance(node, Join):
        if not node.left_keys:
            return "join of all pairs"
        return f"join on {_shown(node.left, node.left_keys)} = {_shown(node.right, node.right_keys)}"
    if isinstance(node, Aggregate):
        calls = ", ".join(call.result.shown for call in node.calls)
        groups = _shown(node.child, node.keys)
        if not node.calls:
            return f"distinct {groups}"
        return f"group by {groups}: {calls}" if node.keys else f"aggregate everything: {calls}"
    if isinstance(node, Recompute):
        return node.text
    assert isinstance(node, Fragment)
    return node.text or f"{', '.join(_shown(node.child, (name,)) for name in node.present)} is not null"


def _state(node: Node) -> list[dict[str, str]]:
    if isinstance(node, Join):
        return [
            {"name": f"{node.name}.left", "key": _shown(node.left, node.left_keys) or "everything"},
            {"name": f"{node.name}.right", "key": _shown(node.right, node.right_keys) or "everything"},
        ]
    if isinstance(node, Aggregate):
        return [{"name": node.name, "key": _shown(node.child, node.keys) or "everything"}]
    if isinstance(node, Recompute):
        keys = [_shown(child, key) or "everything" for child, key in zip(node.inputs, node.keys, strict=True)]
        states = [{"name": f"{node.name}.{number}", "key": key} for number, key in enumerate(keys)]
        return [*([] if node.forgets else states), {"name": f"{node.name}.result", "key": keys[0]}]
    return []


def _shown(node: Node, names: tuple[str, ...]) -> str:
    shown = {each.name: each.shown or each.name for each in node.output}
    return ", ".join(shown[name] for name in names)
