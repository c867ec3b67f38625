"""`headwater views replace`, `diff`, `switch`, `abandon`: another version of a view, first beside the old one."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.cli.options import whole
from headwater.cli.status import driving
from headwater.cli.tables import cells
from headwater.cli.text import count
from headwater.cli.waiting import saying
from headwater.cli.where import WrongUsage, opened
from headwater.errors import HeadwaterError, NotReached, ViewSuspended
from headwater.pipeline import candidates
from headwater.schema.json import to_json

if TYPE_CHECKING:
    from headwater import Pipeline, Status

_POLL = 0.2
_TELL = 2.0
_SHOWN = 20


def add_actions(parser: argparse.ArgumentParser) -> None:
    """The actions, each with its own arguments."""
    actions = parser.add_subparsers(metavar="ACTION", required=False)

    def add(name: str, run: Callable[[argparse.Namespace], int], summary: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=summary, description=summary.capitalize() + ".")
        action.add_argument("view")
        action.add_argument("--pipeline", metavar="PATH", default=argparse.SUPPRESS, help="the pipeline's folder")
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
        action.set_defaults(act=run)
        return action

    replace = add("replace", _replace, "build another version of a view, and put it in its place")
    replace.add_argument("file", metavar="FILE", help="a file with the SQL; - for standard input")
    replace.add_argument("--hold", action="store_true", help="wait with the switch until `views switch`")
    for action in (replace, add("switch", _switch, "put the version that was held in the view's place")):
        action.add_argument("--timeout", type=whole(1), default=600, metavar="N", help="seconds to wait")
    add("diff", _diff, "compare a view with the version that was held")
    add("abandon", _abandon, "give up the version that was held")


def _replace(arguments: argparse.Namespace) -> int:
    sql = _text(arguments.file)
    with opened(arguments) as pipeline:
        with saying("starting Spark, which plans the query"):
            made = candidates.begin(pipeline, arguments.view, sql, hold=arguments.hold)
        return _await(pipeline, made.name, made.number, arguments, hold=arguments.hold)


def _text(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    if not Path(file).is_file():
        msg = f"there is no file {file}"
        raise WrongUsage(msg, hint="name a file with the SQL of the view, or - for standard input")
    return Path(file).read_text(encoding="utf-8")


def _switch(arguments: argparse.Namespace) -> int:
    with opened(arguments) as pipeline:
        found = candidates.switch(pipeline, arguments.view)
        return _await(pipeline, found.name, found.number, arguments, hold=False)


def _abandon(arguments: argparse.Namespace) -> int:
    with opened(arguments) as pipeline:
        candidates.abandon(pipeline, arguments.view)
    _tell(arguments, {"view": arguments.view, "state": "abandoned"}, f"{arguments.view} stays as it was")
    return 0


def _await(pipeline: Pipeline, name: str, number: int, arguments: argparse.Namespace, *, hold: bool) -> int:
    """Wait for whoever drives; if nobody does, say what is to be done."""
    status = pipeline.status()
    if not status.driver.running:
        said = "the next tick builds it" + ("" if hold else " and puts it in its place")
        said = f"{name}: declared; {said} ({driving(status.driver)})"
        _tell(arguments, {"view": name, "state": "declared"}, said)
        return 0
    started = told = time.monotonic()
    while not _is_done(status, name, number, hold=hold):
        now = time.monotonic()
        if now - started > arguments.timeout:
            msg = f"it was not built within {arguments.timeout} seconds"
            raise NotReached(msg, where=name, hint=f"it still will be: {driving(status.driver)}")
        if now - told > _TELL:
            told, said = now, driving(status.driver)
            print(f"waiting for {name}, {now - started:.0f} s so far: {said}", file=sys.stderr, flush=True)
        time.sleep(_POLL)
        status = pipeline.status()
    state = "held" if hold else "replaced"
    said = f"built; compare it with `headwater views diff {name}`" if hold else "replaced"
    _tell(arguments, {"view": name, "state": state}, f"{name}: {said}")
    return 0


def _is_done(status: Status, name: str, number: int, *, hold: bool) -> bool:
    """Whether it was built, or has taken over; an error if it cannot be."""
    view = next((view for view in status.views if view.name == name), None)
    if view is not None and view.number == number:
        return True
    replacement = view.replacement if view is not None else None
    if replacement is None or replacement.number != number:
        raise HeadwaterError("it was abandoned meanwhile", where=name)
    if replacement.suspended is not None:
        hint = f"the old version is still served; correct the data, or `headwater views abandon {name}`"
        raise ViewSuspended(f"the view is suspended: {replacement.suspended.reason}", where=name, hint=hint)
    return hold and replacement.state != "building"


def _diff(arguments: argparse.Namespace) -> int:
    with opened(arguments) as pipeline:
        found = candidates.difference(pipeline, arguments.view)
    if found.gone is None or found.new is None:
        return _tell_columns(arguments, found.view, found.now, found.then)
    if arguments.json:
        told = {"view": found.view, "tick": found.tick, "gone": _objects(found.gone), "new": _objects(found.new)}
        print(json.dumps(told, indent=2))
        return 0
    counts = [count(rows.num_rows, "row") for rows in (found.now, found.then)]
    print(f"{found.view} at tick {found.tick}: {counts[0]} now, {counts[1]} then")
    for sign, rows in (("-", found.gone), ("+", found.new)):
        for line in cells(rows.slice(0, _SHOWN)):
            print(sign, "  ".join(line))
        if rows.num_rows > _SHOWN:
            print(f"{sign} … {rows.num_rows - _SHOWN:,} more")
    if not found.gone.num_rows and not found.new.num_rows:
        print("no difference")
    return 0


def _objects(rows: pa.Table) -> list[Any]:
    return [json.loads(line) for line in to_json(rows)]


def _tell_columns(arguments: argparse.Namespace, name: str, old: pa.Table, new: pa.Table) -> int:
    names = [", ".join(f"{field.name} {field.type}" for field in each.schema) for each in (old, new)]
    counts = [each.num_rows for each in (old, new)]
    told = {"view": name, "columns": names, "rows": counts}
    said = "\n".join(
        f"{sign} {columns}: {count(rows, 'row')}" for sign, columns, rows in zip("-+", names, counts, strict=True)
    )
    _tell(arguments, told, f"{name} would have other columns:\n{said}")
    return 0


def _tell(arguments: argparse.Namespace, data: dict[str, Any], text: str) -> None:
    print(json.dumps(data) if arguments.json else text)
