"""Columns of a plan numbered in the order in which they appear.

Spark numbers its attributes anew in every session. The state of operators is kept under the names of columns, and
outlives sessions, so the same query must always get the same names.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.plan.operators import Names, Node, Plan


def numbered(plan: Plan) -> Plan:
    """The same plan with columns called `c0`, `c1` and so on."""
    names = Names()
    for node in plan.walk():
        for each in node.output:
            names.setdefault(each.name, f"c{len(names)}")
    return replace(plan, root=_renamed(plan.root, names))


def _renamed(node: Node, names: Names) -> Node:
    return node.over([_renamed(child, names) for child in node.children]).renamed(names)
