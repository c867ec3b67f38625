"""`headwater views`: what there is, how much of it, and how fresh it is."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headwater.cli.replacing import add_actions
from headwater.cli.text import Columns
from headwater.cli.where import add_where, opened
from headwater.clock import as_datetime
from headwater.read.suspended import suspended
from headwater.state.manifest import CHANGES, Manifest
from headwater.store import Declaration, TickRecord

if TYPE_CHECKING:
    from headwater import Pipeline

_CHEAP = 100_000


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do with a view, if it is not all of them that are to be listed."""
    add_where(parser)
    add_actions(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print one line, or one object, for each view; or do what the action says."""
    if hasattr(arguments, "act"):
        code: int = arguments.act(arguments)
        return code
    with opened(arguments) as pipeline:
        last = pipeline._store.last_tick()
        kept = pipeline._store.arrangements(last.number) if last else {}
        declarations = pipeline._store.declarations().values()
        views = [_describe(pipeline, each, last, kept) for each in declarations if each.kind == "view"]
        stopped = suspended(last.detail) if last else {}
    for view in views:
        found = stopped.get(str(view["name"]))
        number = view.pop("number")
        is_meant = found is not None and found.number == number
        view["suspended"] = {"since": found.since, "reason": found.reason} if found and is_meant else None
    if arguments.json:
        print(json.dumps(views, indent=2))
    elif not views:
        print("no views yet: declare one with Pipeline.view")
    else:
        _print_table(views)
    return 0


def _describe(
    pipeline: Pipeline, view: Declaration, last: TickRecord | None, kept: Mapping[str, Mapping[str, Any]]
) -> dict[str, object]:
    """`tick` is the last one that changed it; `rows` is None where counting them would take long."""
    name = f"v{view.number}"
    filled = last is not None and name in kept
    changed = pipeline._store.details(name + CHANGES, after=0, until=last.number) if last and filled else []
    tick = changed[-1][0] if changed else None
    record = pipeline._store.tick(tick) if tick is not None else None
    return {
        "name": view.name,
        "number": view.number,
        "key": view.spec["key"],
        "rows": _rows(pipeline, view.name, kept[name]) if filled else None,
        "tick": tick,
        "at": as_datetime(record.at).isoformat(timespec="milliseconds") if record else None,
        "filled": filled,
        "schema": view.spec["schema"],
    }


def _rows(pipeline: Pipeline, name: str, detail: Mapping[str, Any]) -> int | None:
    if sum(run.rows for run in Manifest.from_dict(detail).runs) > _CHEAP:
        return None
    return int(pipeline.read(name).num_rows)


def _print_table(views: list[dict[str, Any]]) -> None:
    columns = Columns(["name", "key", "rows", "tick", "at", "schema"], right={"rows", "tick"})
    lines = columns.lines(
        [
            view["name"],
            ", ".join(view["key"]) or "-",
            "not filled" if not view["filled"] else "many" if view["rows"] is None else f"{view['rows']:,}",
            "-" if view["tick"] is None else f"{view['tick']:,}",
            view["at"] or "-",
            view["schema"],
        ]
        for view in views
    )
    print(columns.heading(), *lines, sep="\n")
    for view in views:
        if found := view["suspended"]:
            since = f"since tick {found['since']}" if found["since"] else "before it was filled"
            print(f"{view['name']} is suspended {since}: {found['reason']}")
