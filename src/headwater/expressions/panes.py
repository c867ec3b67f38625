"""Panes: rows that go into the same windows, told before there is a row for each window.

`window(at, '10 seconds', '2 seconds')` makes five rows of one, but all that it asks of `at` is which two seconds it
is in. So rows that are alike but for the moment within those two seconds can be counted first, and the few that are
left be made five of. It is found by what the expressions do, not by what they are called: a column that is used
through one call only, which gives the same for many values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headwater.expressions.expression import (
    ColumnReference,
    Direct,
    Expand,
    Expression,
    Filter,
    FunctionCall,
    Panes,
)

_COARSE = {"remainder", "truncated"}
"""Functions that give the same for many values."""
_PRESENT = "is_not_null"


def with_panes(direct: Direct) -> Direct:
    """The same, with the panes of its rows, if they can be and there is something to gain."""
    first = direct.steps[0] if direct.steps else None
    if not isinstance(first, Expand) or len(first.several) == 1:
        return direct
    for column in direct.inputs[:-1]:
        value = _stands_for(column, first)
        if value is not None and _only_present(column, direct):
            return replace(direct, panes=Panes(column, value, _without(value, column, direct, first)))
    return direct


def _stands_for(column: str, made: Expand) -> FunctionCall | None:
    """The outermost call through which alone a column is used, but for being passed on as it is."""
    used = [each for several in made.several for _, each in several if each != ColumnReference(column)]
    candidates = [each for each in _calls(used) if _columns(each) == {column} and _is_coarse(each)]
    for candidate in candidates:  # the outermost come first
        if not any(_uses(each, column, but=candidate) for each in used):
            return candidate
    return None


def _only_present(column: str, direct: Direct) -> bool:
    """Whether what is passed on as it is is only asked whether it is there, and is not given in the end."""
    aliases = {column}
    for step in direct.steps:
        if isinstance(step, Filter):
            if any(_uses(step.condition, alias, present=False) for alias in aliases):
                return False
            continue
        passed = {name for several in step.several for name, each in several if _is_one_of(each, aliases)}
        if step is not direct.steps[0]:
            others = [each for several in step.several for _, each in several if not _is_one_of(each, aliases)]
            if any(_uses(each, alias, present=False) for each in others for alias in aliases):
                return False
        aliases = passed
    return not aliases & set(direct.outputs)


def _is_one_of(expression: Expression, names: set[str]) -> bool:
    return isinstance(expression, ColumnReference) and expression.name in names


def _without(value: FunctionCall, column: str, direct: Direct, first: Expand) -> Direct:
    """The same for rows that have the value in the column's place."""
    known: dict[int, Expression] = {}

    def put(expression: Expression) -> Expression:
        if expression is value:
            return ColumnReference(column)
        if not isinstance(expression, FunctionCall):
            return expression
        if id(expression) not in known:
            known[id(expression)] = replace(expression, arguments=tuple(map(put, expression.arguments)))
        return known[id(expression)]

    several = tuple(tuple((name, put(each)) for name, each in one) for one in first.several)
    return replace(direct, steps=(Expand(several), *direct.steps[1:]))


def _calls(expressions: list[Expression]) -> Iterator[FunctionCall]:
    """All calls, each before those that it is made of."""
    seen: set[int] = set()
    waiting = list(expressions)
    while waiting:
        for each in waiting:
            if isinstance(each, FunctionCall) and id(each) not in seen:
                seen.add(id(each))
                yield each
        waiting = [argument for each in waiting if isinstance(each, FunctionCall) for argument in each.arguments]


def _columns(expression: Expression) -> set[str]:
    if isinstance(expression, ColumnReference):
        return {expression.name}
    return set().union(*map(_columns, expression.arguments)) if isinstance(expression, FunctionCall) else set()


def _is_coarse(call: FunctionCall) -> bool:
    return any(each.function in _COARSE for each in _calls([call]))


def _uses(expression: Expression, column: str, but: FunctionCall | None = None, *, present: bool = True) -> bool:
    """Whether an expression uses a column: not through a call, nor, unless `present`, to ask if it is there."""
    if isinstance(expression, ColumnReference):
        return expression.name == column
    if not isinstance(expression, FunctionCall) or expression is but:
        return False
    if not present and expression.function == _PRESENT and isinstance(expression.arguments[0], ColumnReference):
        return False
    return any(_uses(each, column, but, present=present) for each in expression.arguments)
