"""What a view does and keeps, for people."""

from __future__ import annotations

from typing import Any

from headwater.errors import HeadwaterError
from headwater.read.relation import Relations
from headwater.read.suspended import suspended
from headwater.state.manifest import Manifest
from headwater.store import Store


def explain(store: Store, relations: Relations, name: str) -> str:
    """The operators of a view with their kind, their state with key and size, and what a tick has to do."""
    relation = relations.get(name)
    stored = store.find(relation.name)
    if stored is None or stored.kind != "view":
        msg = f"{name} is a {relation.kind}, and only views have a plan"
        raise HeadwaterError(msg, where=relation.name, hint="name a view")
    last = store.last_tick()
    sizes = store.arrangements(last.number) if last else {}
    own = f"v{stored.number}"
    lines = [f"view {stored.name} ({stored.spec['schema']})"]
    lines += [line for each in stored.spec["plan"] for line in _operator(each, own, sizes)]
    key = ", ".join(stored.spec["key"]) or "all columns"
    lines.append(f"rows of the view, by {key}: {_size(sizes.get(own))}")
    stopped = suspended(last.detail).get(stored.name) if last is not None else None
    if stopped is not None and stopped.number == stored.number:
        lines.append(f"suspended since tick {stopped.since}: {stopped.reason}")
    elif last is not None:
        changed = last.detail["rows_out"].get(stored.name, 0)
        path = last.detail["paths"].get(stored.name, "nothing to do")
        lines.append(f"tick {last.number}: {changed} rows changed, path: {path}")
    return "\n".join(lines)


def _operator(line: dict[str, Any], own: str, sizes: dict[str, Any]) -> list[str]:
    indent = "  " * (line["depth"] + 1)
    made = [f"{indent}{line['kind']}: {line['text']}", f"{indent}  each tick: {line['work']}"]
    for state in line["state"]:
        size = _size(sizes.get(f"{own}/{state['name']}"))
        made.append(f"{indent}  state {state['name']} by {state['key']}: {size}")
    return made


def _size(detail: Any) -> str:
    if detail is None:
        return "nothing yet"
    runs = Manifest.from_dict(detail).runs
    return f"{sum(run.rows for run in runs)} rows in {len(runs)} runs, {sum(run.bytes for run in runs)} bytes"
