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
from headwater.cli.tables import cells
from headwater.cli.text import count
from headwater.cli.waiting import saying
from headwater.cli.where import WrongUsage, opened
from headwater.errors import HeadwaterError, NotReached
from headwater.read.suspended import suspended
from headwater.schema.json import to_json
from headwater.store import NEXT

if TYPE_CHECKING:
    from headwater import Pipeline

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
    from headwater.pipeline.replacing import replace  # noqa: PLC0415  so that other commands start quickly
    from headwater.pipeline.views import checked_view  # noqa: PLC0415

    sql = _text(arguments.file)
    with opened(arguments) as pipeline:
        old = pipeline._store.find(arguments.view.lower())
        if old is None or old.kind != "view":
            msg = f"there is no view called {arguments.view!r}"
            raise HeadwaterError(msg, hint="`headwater views` lists them")
        on_error = old.spec["on_error"]
        name, sql, key = checked_view(old.name, sql, old.spec["key"], on_error)
        with saying("starting Spark, which plans the query"):
            made = replace(pipeline._store, pipeline._spark(), old, sql, key, on_error, hold=arguments.hold)
        return _await(pipeline, name, made.number, arguments, hold=arguments.hold)


def _text(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    if not Path(file).is_file():
        msg = f"there is no file {file}"
        raise WrongUsage(msg, hint="name a file with the SQL of the view, or - for standard input")
    return Path(file).read_text(encoding="utf-8")


def _switch(arguments: argparse.Namespace) -> int:
    from headwater.pipeline.replacing import switch  # noqa: PLC0415  see above

    with opened(arguments) as pipeline:
        found = switch(pipeline._store, arguments.view)
        name = found.name.removesuffix(NEXT)
        return _await(pipeline, name, found.number, arguments, hold=False)


def _abandon(arguments: argparse.Namespace) -> int:
    from headwater.pipeline.replacing import abandon  # noqa: PLC0415  see above

    with opened(arguments) as pipeline:
        abandon(pipeline._store, arguments.view)
    _tell(arguments, {"view": arguments.view, "state": "abandoned"}, f"{arguments.view} stays as it was")
    return 0


def _await(pipeline: Pipeline, name: str, number: int, arguments: argparse.Namespace, *, hold: bool) -> int:
    """Wait for whoever drives; if nobody does, say what is to be done."""
    driving = pipeline._reader._versions.driving()
    if "no process" in driving:
        said = "the next tick builds it" + ("" if hold else " and puts it in its place")
        _tell(arguments, {"view": name, "state": "declared"}, f"{name}: declared; {said} ({driving})")
        return 0
    started = told = time.monotonic()
    while not _is_done(pipeline, name, number, hold=hold):
        now = time.monotonic()
        if now - started > arguments.timeout:
            msg = f"it was not built within {arguments.timeout} seconds"
            raise NotReached(msg, where=name, hint=f"it still will be: {driving}")
        if now - told > _TELL:
            told, driving = now, pipeline._reader._versions.driving()
            print(f"waiting for {name}, {now - started:.0f} s so far: {driving}", file=sys.stderr, flush=True)
        time.sleep(_POLL)
    state = "held" if hold else "replaced"
    said = f"built; compare it with `headwater views diff {name}`" if hold else "replaced"
    _tell(arguments, {"view": name, "state": state}, f"{name}: {said}")
    return 0


def _is_done(pipeline: Pipeline, name: str, number: int, *, hold: bool) -> bool:
    """Whether it was built, or has taken over; an error if it cannot be."""
    store = pipeline._store
    now, waiting = store.find(name), store.find(name + NEXT)
    if now is not None and now.number == number:
        return True
    if waiting is None or waiting.number != number:
        raise HeadwaterError("it was abandoned meanwhile", where=name)
    last = store.last_tick()
    stopped = suspended(last.detail).get(waiting.name) if last is not None else None
    if stopped is not None and stopped.number == number:
        error = stopped.error(name)
        error.hint = f"the old version is still served; correct the data, or `headwater views abandon {name}`"
        raise error
    return hold and last is not None and f"v{number}" in store.arrangements(last.number)


def _diff(arguments: argparse.Namespace) -> int:
    from headwater.pipeline.replacing import candidate  # noqa: PLC0415  see above

    with opened(arguments) as pipeline:
        found = candidate(pipeline._store, arguments.view)
        name = found.name.removesuffix(NEXT)
        last = pipeline._store.last_tick()
        if last is None or f"v{found.number}" not in pipeline._store.arrangements(last.number):
            raise NotReached("it was not built yet", where=name, hint=pipeline._reader._versions.driving())
        stopped = suspended(last.detail).get(name)
        old = pipeline.read(name, as_of=None if stopped is not None else last.number)
        new = pipeline.read(found.name, as_of=last.number)
        if old.schema.names != new.schema.names or old.schema.types != new.schema.types:
            return _tell_columns(arguments, name, old, new)
        only = [_only(pipeline, mine, other) for mine, other in ((old, new), (new, old))]
    if arguments.json:
        told = {"view": name, "tick": last.number, "gone": _objects(only[0]), "new": _objects(only[1])}
        print(json.dumps(told, indent=2))
        return 0
    print(f"{name} at tick {last.number}: {count(old.num_rows, 'row')} now, {count(new.num_rows, 'row')} then")
    for sign, rows in zip("-+", only, strict=True):
        for line in cells(rows.slice(0, _SHOWN)):
            print(sign, "  ".join(line))
        if rows.num_rows > _SHOWN:
            print(f"{sign} … {rows.num_rows - _SHOWN:,} more")
    if not any(rows.num_rows for rows in only):
        print("no difference")
    return 0


def _only(pipeline: Pipeline, mine: pa.Table, other: pa.Table) -> pa.Table:
    """The rows of one table that the other has not, or not so often."""
    engine, reader = pipeline._reader._engine, pipeline._reader
    statement = engine.parse("SELECT * FROM mine EXCEPT ALL SELECT * FROM other")
    return engine.answer(statement, {"mine": mine, "other": other}, reader._relations.unknown)


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
