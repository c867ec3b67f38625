"""A plan in words: what `explain` prints, as plain data. The words are those of the operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.plan.operators import Node, Plan


def describe(plan: Plan) -> list[dict[str, Any]]:
    """Each operator on a line, the last one first: depth, kind, text, work, and its state with the key."""
    return list(_lines(plan.root, 0))


def _lines(node: Node, depth: int) -> Iterator[dict[str, Any]]:
    told, _ = node.selected
    if told is not node:  # it only chooses columns
        yield from _lines(told, depth)
        return
    state = [{"name": name, "key": key} for name, key in node.keeps.items()]
    yield {"depth": depth, "kind": node.kind, "text": node.title, "work": node.work, "state": state}
    for child in node.children:
        yield from _lines(child, depth + 1)
