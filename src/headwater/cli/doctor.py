"""`headwater doctor`: is everything here that a pipeline needs, and what to do where it is not."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from headwater.cli import checks
from headwater.cli.findings import Finding, tell
from headwater.cli.where import WrongUsage, add_where, find


def arguments(parser: argparse.ArgumentParser) -> None:
    """How thoroughly to look."""
    parser.add_argument("--spark", action="store_true", help="really start a Spark session (some seconds)")
    add_where(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print each finding as it is made; 1 if there was a fault."""
    return tell(_findings(arguments), as_json=arguments.json, fine="all is well")


def _findings(arguments: argparse.Namespace) -> Iterator[Finding]:
    path, why_not = _pipeline(arguments)
    yield checks.python()
    yield checks.java()
    yield checks.spark(start=arguments.spark)
    yield checks.disk(path or ".")
    yield checks.ports()
    yield checks.descriptors()
    if path is None:
        yield Finding("pipeline", True, f"not checked: {why_not}")
    else:
        yield from checks.pipeline(path)


def _pipeline(arguments: argparse.Namespace) -> tuple[str | None, str]:
    """The pipeline to look at. To have none is no fault, unless one was named."""
    try:
        return find(arguments.pipeline), ""
    except WrongUsage as error:
        if error.where:
            raise
        return None, error.what
