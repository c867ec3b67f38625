"""The command's frame: which command, what an error looks like, and the exit code.

A command is a module with `arguments(parser)`, which adds its own, and `run(arguments)`, which returns the exit
code. Only the module of the command that was called is imported, so `headwater --help` needs nothing of ours.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from headwater.cli.quick import leave_out_pandas
from headwater.cli.where import WrongUsage
from headwater.errors import HeadwaterError, NotReached

DONE, FAILED, WRONG_USAGE, NOT_READY, INTERRUPTED = 0, 1, 2, 3, 130


class Command(NamedTuple):
    """Where a command lives, what it is for in a line, and whether it starts Spark, which may want pandas."""

    module: str
    summary: str
    spark: bool = False


COMMANDS = {
    "init": Command("headwater.cli.init", "write a first program, and say what to do with it"),
    "run": Command("headwater.cli.run", "keep the views of a program fresh", spark=True),
    "demo": Command("headwater.cli.demo", "run a small shop and watch its views live", spark=True),
    "status": Command("headwater.cli.status", "show what there is, how fresh it is, and who drives"),
    "doctor": Command("headwater.cli.doctor", "check this machine and the pipeline, and say what to do"),
    "verify": Command("headwater.cli.verify", "read every byte of a pipeline, and say what is damaged"),
    "topics": Command("headwater.cli.topics", "list the topics of a pipeline, or give one other columns"),
    "produce": Command("headwater.cli.produce", "append JSON rows to a topic"),
    "tail": Command("headwater.cli.tail", "show a topic's log, row by row"),
    "views": Command("headwater.cli.views", "list the views of a pipeline, or replace one"),
    "query": Command("headwater.cli.query", "ask views, tables and streams in SQL"),
    "explain": Command("headwater.cli.explain", "show what a view does and keeps"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong usage, 3 not ready, 130 interrupted."""
    words = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in words
    if argv is None:
        _print_anything()
    try:
        code = _run(words, ours=argv is None)
        if sys.stdout is not None:
            sys.stdout.flush()
    except HeadwaterError as error:
        _report(error, as_json=as_json)
        return _exit_code(error)
    except KeyboardInterrupt:
        _forget_stdout()
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return DONE
    except OSError as error:
        _report(_from_system(error), as_json=as_json)
        return FAILED
    return code


def _run(words: list[str], *, ours: bool) -> int:
    """Parse and call. `ours`: the process is the command's own, not a test's or another program's."""
    _check_crash_point()
    parser = argparse.ArgumentParser(prog="headwater", description="A database turned inside out on Spark.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    called = next((word for word in words if not word.startswith("-")), None)
    for name, command in COMMANDS.items():
        said = f"{command.summary[0].upper()}{command.summary[1:]}."
        chosen = commands.add_parser(name, help=command.summary, description=said)
        if name == called:
            if ours and not command.spark and not {"--spark", "replace"} & set(words):
                leave_out_pandas()
            module = importlib.import_module(command.module)
            module.arguments(chosen)
            chosen.set_defaults(run=module.run)
    arguments = parser.parse_args(words)
    code: int = arguments.run(arguments)
    return code


def _check_crash_point() -> None:
    try:
        importlib.import_module("headwater.crashpoint")
    except ValueError as error:
        raise WrongUsage(str(error), hint="unset HEADWATER_CRASH_AT, or name a point or point:n") from None


def _print_anything() -> None:
    """Let a terminal that lacks a character show its escape, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        version = importlib.import_module("importlib.metadata").version("headwater")
        print(f"headwater {version}")
        parser.exit()


def _report(error: HeadwaterError, *, as_json: bool) -> None:
    """Tell the user: what and where on the first line, the hint on one of its own."""
    if as_json:
        print(json.dumps(error.as_dict()), file=sys.stderr)
        return
    said = str(error).removesuffix(f" ({error.hint})") if error.hint else str(error)
    print("error: " + said.replace("\n", "\n       "), file=sys.stderr)
    if error.hint:
        print("hint:  " + error.hint.replace("\n", "\n       "), file=sys.stderr)


def _exit_code(error: HeadwaterError) -> int:
    if isinstance(error, WrongUsage):
        return WRONG_USAGE
    return NOT_READY if isinstance(error, NotReached) else FAILED


def _from_system(error: OSError) -> HeadwaterError:
    """What the operating system refused, in our shape."""
    return HeadwaterError(error.strerror or str(error), where=str(error.filename or ""))


def _forget_stdout() -> None:
    """Nobody reads it any more; without this, Python would complain about it when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
