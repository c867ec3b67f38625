"""`headwater explain`: what a view does and keeps."""

from __future__ import annotations

import argparse
import json

from headwater.cli.where import add_where, opened
from headwater.pipeline.opened import described


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which view."""
    parser.add_argument("view")
    add_where(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print its operators, their state, and what the last tick did."""
    with opened(arguments) as pipeline:
        text = pipeline.explain(arguments.view)
        told = described(pipeline, arguments.view) if arguments.json else {}
    print(json.dumps({**told, "text": text}, indent=2) if arguments.json else text)
    return 0
