"""What a view does and keeps, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.errors import HeadwaterError
from headwater.read.relation import Relations
from headwater.read.suspended import suspended
from headwater.state.manifest import Manifest
from headwater.store import SHARED, Declaration, Store


def explain(store: Store, relations: Relations, name: str) -> str:
    """The operators of a view with their kind, their state with key and size, and what a tick has to do."""
    relation = relations.get(name)
    stored = store.find(relation.name)
    if stored is None or stored.kind != "view":
        msg = f"{name} is a {relation.kind}, and only views have a plan"
        raise HeadwaterError(msg, where=relation.name, hint="name a view")
    last = store.last_tick()
    sizes = store.arrangements(last.number) if last else {}
    lines = [f"view {stored.name} ({stored.spec['schema']})"]
    kept = _Kept(store, stored, sizes)
    lines += [line for each in stored.spec["plan"] for line in kept.operator(each)]
    key = ", ".join(stored.spec["key"] or stored.spec.get("by", ())) or "all columns"
    lines.append(f"rows of the view, by {key}: {_size(sizes.get(kept.own))}")
    stopped = suspended(last.detail).get(stored.name) if last is not None else None
    if stopped is not None and stopped.number == stored.number:
        lines.append(f"suspended since tick {stopped.since}: {stopped.reason}")
    elif last is not None:
        changed = last.detail["rows_out"].get(stored.name, 0)
        path = last.detail["paths"].get(stored.name, "nothing to do")
        lines.append(f"tick {last.number}: {changed} rows changed, path: {path}")
    return "\n".join(lines)


class _Kept:
    """What the operators of a view keep, alone or together with other views."""

    def __init__(self, store: Store, view: Declaration, sizes: Mapping[str, Any]) -> None:
        self.own = f"v{view.number}"
        self._shares: Mapping[str, str] = view.spec.get("shares", {})
        self._store = store
        self._view = view
        self._sizes = sizes
        self._has_rows = self.own in sizes and bool(Manifest.from_dict(sizes[self.own]).runs)

    def operator(self, line: Mapping[str, Any]) -> list[str]:
        """An operator on a few lines."""
        indent = "  " * (line["depth"] + 1)
        made = [f"{indent}{line['kind']}: {line['text']}", f"{indent}  each tick: {line['work']}"]
        states = [self._state(state["name"], state["key"], last=line["depth"] == 0) for state in line["state"]]
        return made + [f"{indent}  {state}" for state in states]

    def _state(self, name: str, key: str, *, last: bool) -> str:
        place = self._shares.get(name)
        what = f"state {name} by {key}"
        if place is None:
            held = self._sizes.get(f"{self.own}/{name}")
            if held is None and last and name.endswith(".result") and self._has_rows:
                return f"{what}: the rows of the view themselves"
            return f"{what}: {_size(held)}"
        if not place.startswith(SHARED):
            return f"{what}: the rows of {place} themselves"
        others = [each for each in self._users(place) if each != self._view.name]
        return f"{what}: {_size(self._sizes.get(place))}" + (f", shared with {', '.join(others)}" if others else "")

    def _users(self, place: str) -> list[str]:
        views = [each for each in self._store.declarations().values() if each.kind == "view"]
        return [view.name for view in views if place in view.spec.get("shares", {}).values()]


def _size(detail: Any) -> str:
    if detail is None:
        return "nothing yet"
    runs = Manifest.from_dict(detail).runs
    return f"{sum(run.rows for run in runs)} rows in {len(runs)} runs, {sum(run.bytes for run in runs)} bytes"
