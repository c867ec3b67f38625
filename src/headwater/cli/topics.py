"""`headwater topics`: what there is, and how much of it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from headwater.cli.text import Columns, size
from headwater.cli.where import add_where, opened
from headwater.pipeline import declared

if TYPE_CHECKING:
    from headwater import Stream, Table


def arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing of its own."""
    add_where(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print one line, or one object, for each topic."""
    with opened(arguments) as pipeline:
        topics = [_describe(topic) for _, topic in sorted(declared(pipeline).items())]
    if arguments.json:
        print(json.dumps(topics, indent=2))
    elif not topics:
        print("no topics yet: declare one with Pipeline.stream or Pipeline.table")
    else:
        _print_table(topics)
    return 0


def _describe(topic: Stream | Table) -> dict[str, object]:
    measured = topic.size()
    return {
        "name": topic.name,
        "kind": topic.kind,
        "key": list(topic.key),
        "partitions": topic.partitions,
        "durability": topic.durability,
        "records": measured.records,
        "bytes": measured.bytes,
        "schema": topic.schema.ddl,
    }


def _print_table(topics: list[dict[str, object]]) -> None:
    columns = Columns(list(topics[0]), right={"partitions", "records", "bytes"})
    lines = columns.lines([_text(name, value) for name, value in topic.items()] for topic in topics)
    print(columns.heading(), *lines, sep="\n")


def _text(name: str, value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, int):
        return size(value) if name == "bytes" else f"{value:,}"
    return str(value)
