"""`headwater views`: what there is, how much of it, and how fresh it is."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwater.cli.replacing import add_actions
from headwater.cli.status import notes_of, rows_of
from headwater.cli.text import Columns
from headwater.cli.where import add_where, opened
from headwater.operators.join import PAIRS

if TYPE_CHECKING:
    from headwater.catalog.status import ViewStatus


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
        views = pipeline.status().views
    if arguments.json:
        print(json.dumps([_described(view) for view in views], indent=2))
    elif not views:
        print("no views yet: declare one with Pipeline.view")
    else:
        _print_table(views)
    return 0


def _described(view: ViewStatus) -> dict[str, object]:
    """`tick` is the last one that changed it; `rows` is None where counting them would take long."""
    suspended = view.suspended
    return {
        "name": view.name,
        "key": list(view.key),
        "rows": view.rows,
        "tick": view.changed,
        "at": _at(view),
        "filled": view.bytes is not None,
        "schema": view.schema,
        "suspended": None if suspended is None else {"since": suspended.since, "reason": suspended.reason},
        "begins": {topic: dict(places) for topic, places in view.begins.items()},
        "pairs_all": view.pairs_all,
    }


def _at(view: ViewStatus) -> str | None:
    return None if view.changed_at is None else view.changed_at.isoformat(timespec="milliseconds")


def _print_table(views: Sequence[ViewStatus]) -> None:
    columns = Columns(["name", "key", "rows", "tick", "at", "schema"], right={"rows", "tick"})
    lines = columns.lines(
        [
            view.name,
            ", ".join(view.key) or "-",
            rows_of(view),
            "-" if view.changed is None else f"{view.changed:,}",
            _at(view) or "-",
            view.schema,
        ]
        for view in views
    )
    notes = [note for view in views for note in notes_of(view)]
    notes += [f"{view.name} has a join that {PAIRS}: see explain" for view in views if view.pairs_all]
    print(columns.heading(), *lines, *notes, sep="\n")
