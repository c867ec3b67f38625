"""`headwater init`: a first program, and what to do with it."""

from __future__ import annotations

import argparse
import importlib.resources
import json
import os
import shlex
import shutil
import sys

from headwater.cli.options import add_json
from headwater.errors import HeadwaterError

_FILE = "shop.py"
_QUERY = '"SELECT * FROM revenue ORDER BY cents DESC"'


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where."""
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="where to put it (default: here)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the program and print the next steps."""
    path = os.path.normpath(os.path.join(arguments.folder, _FILE))
    os.makedirs(arguments.folder, exist_ok=True)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(_program())
    except FileExistsError:
        hint = "name another folder: headwater init DIR"
        raise HeadwaterError("it is there already, and stays as it is", where=path, hint=hint) from None
    steps = _steps(arguments.folder)
    if arguments.json:
        print(json.dumps({"file": path, "next": [command for command, _ in steps]}))
        return 0
    print(f"{path} is written: two tables and a view. Next:\n")
    for command, why in steps:
        print(f"  {command}\n      {why}")
    return 0


def _program() -> str:
    return importlib.resources.files("headwater.cli").joinpath("starter.py").read_text(encoding="utf-8")


def _steps(folder: str) -> list[tuple[str, str]]:
    go = f"cd {shlex.quote(folder)} && " if os.path.abspath(folder) != os.getcwd() else ""
    ours, python = _command("headwater"), _command("python")
    return [
        (f"{go}{ours} run {_FILE}", "starts Spark and keeps the view fresh; leave it running, Ctrl-C ends it"),
        (f"{go}{python} {_FILE}", "in another shell: a few rows"),
        (f"{go}{ours} query {_QUERY}", "what the view holds now"),
        (f"{go}{ours} explain revenue", "what a tick has to do for it"),
    ]


def _command(name: str) -> str:
    """The name alone if the shell finds the same one under it that runs now, else the whole path."""
    own = os.path.join(os.path.dirname(sys.executable), name)
    found = shutil.which(name)
    return name if found is not None and os.path.dirname(found) == os.path.dirname(own) else shlex.quote(own)
