"""`headwater topics`: what there is, and how much of it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from headwater.cli.text import Columns, size
from headwater.cli.where import add_where, opened

if TYPE_CHECKING:
    from headwater.catalog.status import TopicStatus


def arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing of its own."""
    add_where(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print one line, or one object, for each topic; 1 if one of them cannot be opened."""
    with opened(arguments) as pipeline:
        topics = [_described(topic) for topic in pipeline.status().topics]
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


def _described(topic: TopicStatus) -> dict[str, object]:
    """What there is to say of a topic, or its fault."""
    if topic.fault:
        return {"name": topic.name, "kind": topic.kind, "fault": topic.fault}
    return {
        "name": topic.name,
        "kind": topic.kind,
        "key": list(topic.key),
        "partitions": topic.partitions,
        "durability": topic.durability,
        "records": topic.records,
        "bytes": topic.bytes,
        "schema": topic.schema,
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
