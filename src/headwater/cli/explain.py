"""`headwater explain`: what a view does and keeps."""

from __future__ import annotations

import argparse
import json

from headwater.cli.where import add_where, opened


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which view."""
    parser.add_argument("view")
    add_where(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print its operators, their state, and what the last tick did."""
    with opened(arguments) as pipeline:
        text = pipeline.explain(arguments.view)
        stored = pipeline._store.find(arguments.view.lower())
    if not arguments.json:
        print(text)
    elif stored is not None:
        spec = {name: stored.spec[name] for name in ("sql", "key", "schema", "inputs", "plan")}
        print(json.dumps({"name": stored.name, **spec, "text": text}, indent=2))
    return 0
