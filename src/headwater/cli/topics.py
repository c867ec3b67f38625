"""`headwater topics`: what there is, and how much of it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from headwater.cli.text import Columns, size
from headwater.cli.where import add_where, opened, topic_kinds
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater import Pipeline, Stream, Table


def arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing of its own."""
    add_where(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print one line, or one object, for each topic; 1 if one of them cannot be opened."""
    with opened(arguments) as pipeline:
        topics = [_look(pipeline, name, kind) for name, kind in topic_kinds(pipeline).items()]
    faults = [topic for topic in topics if "fault" in topic]
    if arguments.json:
        print(json.dumps(topics, indent=2))
    elif not topics:
        print("no topics yet: declare one with Pipeline.stream or Pipeline.table")
    else:
        _print_table([topic for topic in topics if "fault" not in topic])
        for topic in faults:
            print(f"error: {topic['name']}: {topic['fault']}", file=sys.stderr)
    return 1 if faults else 0


def _look(pipeline: Pipeline, name: str, kind: str) -> dict[str, object]:
    """What there is to say of a topic, or its fault."""
    try:
        return _describe(pipeline._topic(name))
    except (HeadwaterError, OSError) as error:
        return {"name": name, "kind": kind, "fault": str(error)}


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
    if not topics:
        return
    columns = Columns(list(topics[0]), right={"partitions", "records", "bytes"})
    lines = columns.lines([_text(name, value) for name, value in topic.items()] for topic in topics)
    print(columns.heading(), *lines, sep="\n")


def _text(name: str, value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, int):
        return size(value) if name == "bytes" else f"{value:,}"
    return str(value)
