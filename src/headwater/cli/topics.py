"""`headwater topics`: what there is, and how much of it; and giving a topic other columns."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from headwater.cli.text import Columns, size
from headwater.cli.where import WrongUsage, add_where, opened

if TYPE_CHECKING:
    from headwater.catalog.status import TopicStatus


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do with a topic, if it is not all of them that are to be listed."""
    add_where(parser)
    actions = parser.add_subparsers(metavar="ACTION")
    alter = actions.add_parser(
        "alter", help="give a topic other columns", description="Give a topic other columns."
    )
    alter.add_argument("topic", metavar="NAME", help="the topic")
    alter.add_argument(
        "schema", metavar="SCHEMA", help="all columns that it is to have, as in 'id BIGINT, tax INT'"
    )
    alter.add_argument(
        "--rename",
        metavar="OLD=NEW",
        action="append",
        default=[],
        help="a column that keeps its values; repeatable",
    )
    alter.set_defaults(act=_alter)
    alter.add_argument("--pipeline", metavar="PATH", default=argparse.SUPPRESS, help="the pipeline's folder")
    alter.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print a line or object for each topic, 1 if one cannot be opened; or do what the action says."""
    if hasattr(arguments, "act"):
        code: int = arguments.act(arguments)
        return code
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


def _alter(arguments: argparse.Namespace) -> int:
    rename = dict(_renamed(each) for each in arguments.rename)
    with opened(arguments) as pipeline:
        topic = pipeline.alter(arguments.topic, arguments.schema, rename=rename)
    told = {"name": topic.name, "schema": topic.schema.ddl}
    print(json.dumps(told) if arguments.json else f"{topic.name}: {topic.schema}")
    return 0


def _renamed(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        msg = f"--rename {text}"
        raise WrongUsage(msg, hint="write --rename OLD=NEW")
    return old, new


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
