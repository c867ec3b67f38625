"""`headwater doctor`: is everything here that a pipeline needs, and what to do where it is not."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict

from headwater.cli import checks
from headwater.cli.text import count
from headwater.cli.where import WrongUsage, add_where, find


def arguments(parser: argparse.ArgumentParser) -> None:
    """How thoroughly to look."""
    parser.add_argument("--spark", action="store_true", help="really start a Spark session (some seconds)")
    add_where(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print each finding as it is made; 1 if there was a fault."""
    findings = []
    for finding in _findings(arguments):
        findings.append(finding)
        if not arguments.json:
            show(finding)
    faults = sum(not finding.ok for finding in findings)
    if arguments.json:
        print(json.dumps({"ok": not faults, "checks": [asdict(finding) for finding in findings]}, indent=2))
    else:
        print("all is well" if not faults else f"{count(faults, 'fault')} found")
    return 1 if faults else 0


def _findings(arguments: argparse.Namespace) -> Iterator[checks.Finding]:
    path, why_not = _pipeline(arguments)
    yield checks.python()
    yield checks.java()
    yield checks.spark(start=arguments.spark)
    yield checks.disk(path or ".")
    yield checks.ports()
    yield checks.descriptors()
    if path is None:
        yield checks.Finding("pipeline", True, f"not checked: {why_not}")
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


def show(finding: checks.Finding) -> None:
    """A line for a finding, and one for what to do."""
    print(f"{'ok   ' if finding.ok else 'FAULT'}  {finding.name:<10} {finding.said}", flush=True)
    if finding.hint:
        print(f"{'':<18}{'' if finding.ok else 'do: '}{finding.hint}", flush=True)
