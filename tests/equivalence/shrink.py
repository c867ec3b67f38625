"""Making a failing case small: less query, less traffic, as long as it still fails.

What is tried need not be valid SQL; the predicate says so by not failing. Of a query, clauses, list entries and
subtrees go; a subtree may be replaced by one of its own parts that could stand in its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args

from tests.equivalence.cases import Case
from tests.equivalence.deep.tree import (
    Expression,
    Grouping,
    Join,
    Lateral,
    Query,
    Select,
    Source,
    Top,
    Values,
    With,
)
from tests.equivalence.traffic import Operation, Step, Topic, Transaction
from tests.equivalence.written import as_test

__all__ = ["as_test", "shrink", "variants"]

Predicate = Callable[[Case], bool]

_LISTS: dict[type, dict[str, int]] = {
    Select: {"items": 1, "where": 0, "having": 0, "qualify": 0},
    Grouping: {"keys": 1, "sets": 1},
    Join: {"on": 0, "using": 1},
    Values: {"rows": 1},
    With: {"commons": 0},
    Top: {"directions": 1, "by": 0},
}
"""Fields of which entries may go, and how many must stay."""
_PLAINER: dict[type, dict[str, object]] = {
    Select: {"distinct": False, "top": None, "grouping": None},
    Grouping: {"word": "", "sets": ()},
    Top: {"offset": None},
    Join: {"word": "JOIN"},
    Lateral: {"word": "JOIN"},
}
_CONSTANTS = {"int": "1", "string": "'a'", "boolean": "TRUE", "money": "1.00", "double": "1.0D"}


def shrink(case: Case, fails: Predicate, *, seconds: float = 120.0) -> Case:
    """A smaller case with one query that still fails; what is found when the time is up."""
    deadline = time.monotonic() + seconds
    before = None
    while before != case and time.monotonic() < deadline:
        before = case
        case = _descended(case, fails, deadline, _smaller_ticks)
        case = _descended(case, fails, deadline, _smaller_queries)
        case = _descended(case, fails, deadline, _smaller_rows)
        case = _descended(case, fails, deadline, _smaller_topics)
    return case


def _descended(case: Case, fails: Predicate, deadline: float, smaller: Callable[[Case], Iterator[Case]]) -> Case:
    """Take the first smaller case that fails, and so on until there is none."""
    tried: set[str] = set()
    found: Case | None = case
    while found is not None:
        case, found = found, None
        for candidate in smaller(case):
            if time.monotonic() > deadline:
                return case
            written = repr(candidate)
            if written not in tried:
                tried.add(written)
                if fails(candidate):
                    found = candidate
                    break
    return case


# -- the query


def _smaller_queries(case: Case) -> Iterator[Case]:
    sql = case.query.sql()
    found = {query.sql(): query for query in variants(case.query)}
    for text, query in sorted(found.items(), key=lambda each: len(each[0])):
        if len(text) < len(sql):
            yield case.with_query(query)


def variants(node: Any) -> Iterator[Any]:
    """Trees with one thing less."""
    yield from _stand_ins(node)
    for name, value in _plainer(node):
        yield replace(node, **{name: value})
    for field in fields(node):
        value = getattr(node, field.name)
        if is_dataclass(value):
            for smaller in variants(value):
                yield replace(node, **{field.name: smaller})
        elif isinstance(value, tuple):
            for shorter in _tuples(value, _LISTS.get(type(node), {}).get(field.name)):
                yield replace(node, **{field.name: shorter})


def _plainer(node: Any) -> Iterator[tuple[str, object]]:
    for name, value in _PLAINER.get(type(node), {}).items():
        if getattr(node, name) != value:
            yield name, value


def _tuples(entries: tuple[Any, ...], least: int | None) -> Iterator[tuple[Any, ...]]:
    """The tuple with an entry less, if it may have less, or with one of them smaller."""
    if least is not None and len(entries) > least:
        for place in range(len(entries)):
            yield entries[:place] + entries[place + 1 :]
    for place, entry in enumerate(entries):
        if is_dataclass(entry):
            for smaller in variants(entry):
                yield (*entries[:place], smaller, *entries[place + 1 :])


def _stand_ins(node: Any) -> Iterator[Any]:
    """Parts of a node that could stand in its place."""
    for part in _below(node):
        if isinstance(node, Expression):
            if isinstance(part, Expression) and part.kind == node.kind:
                yield part
        elif any(
            isinstance(node, kinds) and isinstance(part, kinds) for kinds in (get_args(Query), get_args(Source))
        ):
            yield part
    if isinstance(node, Expression) and node.parts and node.kind in _CONSTANTS:
        yield Expression(_CONSTANTS[node.kind], node.kind)


def _below(node: Any) -> Iterator[Any]:
    """All nodes in a tree but the topmost."""
    for field in fields(node):
        value = getattr(node, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if is_dataclass(part):
                yield part
                yield from _below(part)


# -- the traffic


def _smaller_ticks(case: Case) -> Iterator[Case]:
    """Fewer ticks, and fewer steps in them."""
    ticks = case.ticks
    if case.restarts:
        yield replace(case, restarts=False)
    for plainer in ({"since": 0}, {"dropped": None, "again": None}):
        if (view := replace(case.views[0], **plainer)) != case.views[0]:
            yield replace(case, views=(view,))
    for fewer in _fewer(ticks):
        yield replace(case, ticks=fewer)
    for place in range(len(ticks) - 1):
        yield replace(case, ticks=(*ticks[:place], ticks[place] + ticks[place + 1], *ticks[place + 2 :]))
    for place, steps in enumerate(ticks):
        for smaller in (*_fewer(steps), *_apart(steps)):
            yield replace(case, ticks=(*ticks[:place], smaller, *ticks[place + 1 :]))


def _fewer(entries: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Without a half, a quarter, and so on down to one entry."""
    size = len(entries)
    while size > 1:
        size = (size + 1) // 2
        for start in range(0, len(entries), size):
            yield entries[:start] + entries[start + size :]
    if len(entries) == 1:
        yield ()


def _apart(steps: Sequence[Step]) -> Iterator[tuple[Step, ...]]:
    """Transactions as the operations that they are made of."""
    for place, step in enumerate(steps):
        if isinstance(step, Transaction):
            yield (*steps[:place], *step.operations, *steps[place + 1 :])


def _smaller_rows(case: Case) -> Iterator[Case]:
    """Fewer rows in the operations."""
    for number, steps in enumerate(case.ticks):
        for place, step in enumerate(steps):
            for smaller in _fewer_rows(step):
                changed = (*steps[:place], smaller, *steps[place + 1 :])
                yield replace(case, ticks=(*case.ticks[:number], changed, *case.ticks[number + 1 :]))


def _fewer_rows(step: Step) -> Iterator[Step]:
    if isinstance(step, Transaction):
        for place, part in enumerate(step.operations):
            for smaller in _fewer_rows(part):
                yield Transaction((*step.operations[:place], smaller, *step.operations[place + 1 :]))  # type: ignore[arg-type]
        return
    for rows in _fewer(step.rows):
        if rows:
            yield replace(step, rows=rows)


# -- the tables


def _smaller_topics(case: Case) -> Iterator[Case]:
    """Without tables that the query does not read, and without columns, one after another."""
    sql = case.query.sql()
    for topic in case.topics:
        if f"{topic.name} " not in sql and len(case.topics) > 1:
            yield _without_topic(case, topic)
    for topic in case.topics:
        spare = [name for name, _ in topic.columns if name not in topic.key]
        yield from (_without_columns(case, topic, names) for names in (spare, *([name] for name in spare)))


def _without_topic(case: Case, topic: Topic) -> Case:
    def kept(step: Step) -> Iterator[Step]:
        if isinstance(step, Operation):
            yield from [step] if step.topic != topic.name else []
            return
        operations = tuple(each for each in step.operations if each.topic != topic.name)
        yield from [Transaction(operations)] if operations else []

    topics = tuple(each for each in case.topics if each != topic)
    return replace(case, topics=topics, ticks=_mapped(case, kept))


def _without_columns(case: Case, topic: Topic, names: Sequence[str]) -> Case:
    def narrowed(part: Operation) -> Operation:
        if part.topic != topic.name:
            return part
        return replace(part, rows=tuple({k: v for k, v in row.items() if k not in names} for row in part.rows))

    def kept(step: Step) -> Iterator[Step]:
        if isinstance(step, Operation):
            yield narrowed(step)
        else:
            yield Transaction(tuple(map(narrowed, step.operations)))

    columns = tuple(each for each in topic.columns if each[0] not in names)
    required = tuple(name for name in topic.required if name not in names)
    narrow = replace(topic, columns=columns or topic.columns, required=required)
    topics = tuple(narrow if each == topic else each for each in case.topics)
    return replace(case, topics=topics, ticks=_mapped(case, kept)) if columns else case


def _mapped(case: Case, change: Callable[[Step], Iterator[Step]]) -> tuple[tuple[Step, ...], ...]:
    return tuple(tuple(made for step in steps for made in change(step)) for steps in case.ticks)
