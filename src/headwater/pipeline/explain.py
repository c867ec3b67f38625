"""What a view does and keeps, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from headwater.catalog.names import below, is_shared
from headwater.catalog.relations import Relations
from headwater.catalog.status import begun, unseen_columns
from headwater.catalog.suspension import Suspension, suspensions_of
from headwater.catalog.view import OperatorLine, ViewDeclaration
from headwater.errors import HeadwaterError
from headwater.operators.join import PAIRS
from headwater.state.manifest import BEGINS, Manifest
from headwater.store import Store, TickRecord


def explain(store: Store, relations: Relations, name: str) -> str:
    """The operators of a view with their kind, their state with key and size, and what a tick has to do.

    If the view is suspended, the first line says since when, why, and what to do.
    """
    relation = relations.get(name)
    view = relations.view(relation.name)
    if view is None:
        msg = f"{name} is a {relation.kind}, and only views have a plan"
        raise HeadwaterError(msg, where=relation.name, hint="name a view")
    last = store.last_tick()
    sizes = store.arrangements(last.number) if last else {}
    suspension = _suspension(view, last)
    lines = [] if suspension is None else [f"{_since(suspension)}: {suspension.reason}; {suspension.advice}"]
    lines.append(f"view {view.name} ({view.schema})")
    operators = _State(view, sizes, relations, last)
    lines += [
        line for place, each in enumerate(view.plan) for line in operators.operator(each, view.plan[place + 1 :])
    ]
    key = ", ".join(view.key or view.by) or "all columns"
    lines.append(f"rows of the view, by {key}: {_size(sizes.get(view.state))}")
    lines += [
        f"it begins with {begun(places)} of {topic}: what came before was gone when it was filled"
        for topic, places in sizes.get(view.state, {}).get(BEGINS, {}).items()
    ]
    lines += [unseen_columns(view.name, topic, each) for topic, each in relations.catalog().unseen(view).items()]
    if view.renewed and view.since:
        lines.append(f"made anew at tick {view.since}: {view.renewed}")
    if suspension is None and last is not None:
        lines.append(f"tick {last.number}: {_work(last.detail.get('views', {}).get(view.name))}")
    return "\n".join(lines)


def _suspension(view: ViewDeclaration, last: TickRecord | None) -> Suspension | None:
    """That of just this view: an earlier one of its name may have been suspended, too."""
    found = suspensions_of(last.detail).get(view.name) if last is not None else None
    return found if found is not None and found.number == view.number else None


def _since(suspension: Suspension) -> str:
    return f"suspended since tick {suspension.since}" if suspension.since else "suspended before it was filled"


def _work(work: Mapping[str, Any] | None) -> str:
    """What a tick did for a view."""
    if work is None:
        return "0 rows changed, path: nothing to do"
    cost = f"rows taken in: {work['taken']}, looked up: {work['read']}"
    return f"{work['changed']} rows changed, path: {work['path']}, {cost}"


class _State:
    """What the operators of a view keep, alone or together with other views."""

    def __init__(
        self, view: ViewDeclaration, sizes: Mapping[str, Any], relations: Relations, last: TickRecord | None
    ) -> None:
        self._relations = relations
        self._last = last
        self._view = view
        self._sizes = sizes
        self._has_rows = view.state in sizes and bool(Manifest.from_dict(sizes[view.state]).runs)

    def operator(self, line: OperatorLine, others: Sequence[OperatorLine]) -> list[str]:
        """An operator on a few lines; the others are those that follow it in the plan."""
        indent = "  " * (line.depth + 1)
        pairs = self._pairs(line, others) if line.work == PAIRS else ""
        made = [f"{indent}{line.kind}: {line.text}", f"{indent}  each tick: {line.work}{pairs}"]
        states = [self._state(state.name, state.key, last=line.depth == 0) for state in line.state]
        return made + [f"{indent}  {state}" for state in states]

    def _pairs(self, line: OperatorLine, others: Sequence[OperatorLine]) -> str:
        """How many rows each side has, as far as that is known."""
        own = self._view
        sides = [self._sizes.get(own.shares.get(each.name, below(own.state, each.name))) for each in line.state]
        rows = [_rows(each) for each in sides if each is not None]
        if len(rows) != len(sides):
            under = takewhile(lambda each: each.depth > line.depth, others)
            sources = [each.text.partition(" ")[0] for each in under if each.kind == "source"]
            rows = [count for each in sources if (count := self._rows_of(each)) is not None]
        return f": {rows[0]:,} x {rows[1]:,}" if len(rows) == len(sides) else ""

    def _rows_of(self, name: str) -> int | None:
        """How many rows a relation had after the last tick."""
        relation = self._relations.find(name)
        if relation is None or self._last is None:
            return None
        if relation.kind in {"stream", "log"} and relation.topic is not None:
            ends: Mapping[str, int] = self._last.cut["ends"].get(relation.topic.name, {})
            return sum(ends.values())
        found = self._sizes.get(str(relation.arrangement))
        return None if found is None else _rows(found)

    def _state(self, name: str, key: str, *, last: bool) -> str:
        place = self._view.shares.get(name)
        what = f"state {name} by {key}"
        if place is None:
            held = self._sizes.get(below(self._view.state, name))
            if held is None and last and name.endswith(".result") and self._has_rows:
                return f"{what}: the rows of the view themselves"
            return f"{what}: {_size(held)}"
        if not is_shared(place):
            return f"{what}: the rows of {place} themselves"
        others = [each for each in self._users(place) if each != self._view.name]
        return f"{what}: {_size(self._sizes.get(place))}" + (f", shared with {', '.join(others)}" if others else "")

    def _users(self, place: str) -> list[str]:
        return [view.name for view in self._relations.views() if place in view.shares.values()]


def _rows(detail: Any) -> int:
    return sum(run.rows for run in Manifest.from_dict(detail).runs)


def _size(detail: Any) -> str:
    if detail is None:
        return "nothing yet"
    runs = Manifest.from_dict(detail).runs
    return f"{sum(run.rows for run in runs)} rows in {len(runs)} runs, {sum(run.bytes for run in runs)} bytes"
