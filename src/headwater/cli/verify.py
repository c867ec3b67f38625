"""`headwater verify`: is every byte of a pipeline what was written."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.cli.checks import topic
from headwater.cli.findings import Finding, tell
from headwater.cli.stored import findings as stored
from headwater.cli.text import size
from headwater.cli.waiting import saying
from headwater.cli.where import add_where, opened
from headwater.pipeline.opened import topic_kinds

if TYPE_CHECKING:
    from headwater import Pipeline

_EVERY = 2.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing of its own."""
    add_where(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print each finding as it is made; 1 if something is damaged."""
    with opened(arguments) as pipeline:
        return tell(_findings(pipeline), as_json=arguments.json, fine="nothing is damaged")


def _findings(pipeline: Pipeline) -> Iterator[Finding]:
    for name in topic_kinds(pipeline):
        with saying(f"reading {name}"):
            yield topic(pipeline, name)
    yield from stored(pipeline, _Progress())


class _Progress:
    """Says every two seconds how much of the state was read."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            print(f"reading the state: {size(done)} of {size(total)} …", file=sys.stderr, flush=True)
