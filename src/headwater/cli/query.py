"""`headwater query`: SQL over views, tables and streams, all at the newest tick."""

from __future__ import annotations

import argparse
import sys

from headwater.cli.tables import json_lines, text_lines
from headwater.cli.text import count
from headwater.cli.waiting import saying
from headwater.cli.where import add_where, opened


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to ask."""
    parser.add_argument("sql", metavar="SQL", help="one SELECT in DuckDB's SQL; it can only read")
    add_where(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the rows of the answer."""
    with opened(arguments) as pipeline:
        with saying("reading"):
            answer = pipeline.query(arguments.sql)
        for line in json_lines(answer) if arguments.json else text_lines(answer):
            print(line)
    if not arguments.json:
        print(count(answer.num_rows, "row"), file=sys.stderr)
    return 0
