"""The key by which a view is arranged: columns by which its last operator keeps its rows, few under each."""

from __future__ import annotations

from headwater.plan.operators import Plan


def arrangement_key(plan: Plan) -> tuple[str, ...]:
    """The names of the view's columns; none if it has no such key, or does not show all of it."""
    shown = {field.name: name for field, name in zip(plan.root.output, plan.names, strict=True)}
    return tuple(shown[each] for each in plan.root.arranged_by)
