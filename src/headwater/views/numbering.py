"""Columns of a plan numbered in the order in which they appear.

Spark numbers its attributes anew in every session. The state of operators is kept under the names of columns, and
outlives sessions, so the same query must always get the same names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headwater.views.plan import (
    Aggregate,
    Call,
    Constant,
    Fields,
    First,
    Fragment,
    Join,
    Node,
    Plan,
    Recompute,
    Union,
)


def numbered(plan: Plan) -> Plan:
    """The same plan with columns called `c0`, `c1` and so on."""
    names: dict[str, str] = {}
    for node in plan.walk():
        for each in node.output:
            names.setdefault(each.name, f"c{len(names)}")
    return replace(plan, root=_Names(names).node(plan.root))


class _Names:
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def node(self, node: Node) -> Node:  # noqa: PLR0911  one for each operator
        """The operator and all below it, with the new names."""
        node = replace(node, output=self._fields(node.output))
        if isinstance(node, Constant):
            return self._constant(node)
        if isinstance(node, Fragment):
            return self._fragment(node)
        if isinstance(node, Union):
            return replace(node, inputs=tuple(self.node(each) for each in node.inputs))
        if isinstance(node, Join):
            return replace(
                node,
                left=self.node(node.left),
                right=self.node(node.right),
                left_keys=self._all(node.left_keys),
                right_keys=self._all(node.right_keys),
            )
        if isinstance(node, Aggregate):
            calls = tuple(self._call(call) for call in node.calls)
            return replace(node, child=self.node(node.child), keys=self._all(node.keys), calls=calls)
        if isinstance(node, Recompute):
            return self._recompute(node)
        return node

    def _recompute(self, node: Recompute) -> Recompute:
        leaves = tuple(replace(leaf, columns=self._fields(leaf.columns)) for leaf in node.computing.leaves)
        computing = replace(node.computing, leaves=leaves, outputs=self._fields(node.computing.outputs))
        return replace(
            node,
            inputs=tuple(self.node(each) for each in node.inputs),
            keys=tuple(self._all(key) for key in node.keys),
            computing=computing,
            first=None if node.first is None else self._first(node.first),
        )

    def _first(self, first: First) -> First:
        order = tuple(replace(each, column=self._names[each.column]) for each in first.order)
        return replace(first, order=order, place=self._names[first.place])

    def _all(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(self._names[name] for name in names)

    def _fields(self, fields: Fields) -> Fields:
        return tuple(replace(each, name=self._names[each.name]) for each in fields)

    def _constant(self, node: Constant) -> Constant:
        if node.rows is None or not node.output:
            return node
        return replace(node, rows=node.rows.rename_columns(self._all(node.rows.column_names)))

    def _fragment(self, node: Fragment) -> Fragment:
        computing = node.computing
        if computing is not None:
            inputs, outputs = self._fields(computing.inputs), self._fields(computing.outputs)
            computing = replace(computing, inputs=inputs, outputs=outputs)
        direct = node.direct
        if direct is not None:
            direct = direct.giving(self._all(direct.schema.names[:-1]))
        return replace(
            node,
            child=self.node(node.child),
            present=self._all(node.present),
            inputs=self._all(node.inputs),
            computing=computing,
            direct=direct,
            passed=tuple((self._names[new], self._names[old]) for new, old in node.passed),
        )

    def _call(self, call: Call) -> Call:
        condition = None if call.condition is None else self._names[call.condition]
        (result,) = self._fields((call.result,))
        return replace(call, arguments=self._all(call.arguments), result=result, condition=condition)
