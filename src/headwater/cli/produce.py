"""`headwater produce`: JSON rows into a topic, from a file, a pipe or the keyboard."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator

from headwater.cli.options import whole
from headwater.cli.rows import RowInput
from headwater.cli.sending import Sender, SendingStopped, Sent
from headwater.cli.text import count
from headwater.cli.where import WrongUsage, add_where, opened
from headwater.errors import HeadwaterError
from headwater.pipeline.opened import topic

_PATIENCE = 0.05


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to send, and as whom."""
    add = parser.add_argument
    add("topic")
    add("file", nargs="?", metavar="FILE", help="JSON lines or a JSON array (default: standard input)")
    add("--delete", action="store_true", help="the rows are keys of a table: delete what they name")
    add("--producer", metavar="NAME", help="send as this producer: what is sent again is not stored twice")
    add("--sequence", type=whole(0), metavar="N", help="the number of the first batch; the next is one more")
    add("--batch", type=whole(1), default=1000, metavar="ROWS", help="rows to an append (default: 1000)")
    add_where(parser)


def run(arguments: argparse.Namespace) -> int:
    """Send everything and print the position after it."""
    if (arguments.producer is None) != (arguments.sequence is None):
        msg = "--producer and --sequence only work together"
        hint = "by both a batch that is sent again is recognised: --producer NAME --sequence 0"
        raise WrongUsage(msg, hint=hint)
    with opened(arguments) as pipeline, _open(arguments.file) as (handle, origin):
        sender = Sender(
            topic(pipeline, arguments.topic),
            delete=arguments.delete,
            producer=arguments.producer,
            sequence=arguments.sequence,
        )
        sent = _send(RowInput(handle), sender, origin, arguments)
    _report(sent, arguments.topic, as_json=arguments.json)
    return 0


def _send(source: RowInput, sender: Sender, origin: str, arguments: argparse.Namespace) -> Sent:
    sent = Sent(origin, source.unit)
    # Batches that may be sent again must fall the same way then, however slowly the rows come.
    patience = _PATIENCE if arguments.producer is None else None
    try:
        for batch in source.batches(arguments.batch, patience):
            sent.trying = batch
            position, aside = sender.send(batch)
            sent.acknowledge(position, aside)
            if arguments.file is None and not arguments.json and os.isatty(sys.stdin.fileno()):
                print(position, flush=True)
    except (HeadwaterError, OSError) as error:
        raise SendingStopped(error, sent) from None
    return sent


@contextlib.contextmanager
def _open(path: str | None) -> Iterator[tuple[int, str]]:
    """A file descriptor to read from, and what to call it in a message."""
    if path is None or path == "-":
        if sys.stdin is None:
            raise WrongUsage("standard input is closed", hint="name a file, or pipe rows into the command")
        yield sys.stdin.fileno(), "standard input"
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        yield handle, path
    finally:
        os.close(handle)


def _report(sent: Sent, topic: str, *, as_json: bool) -> None:
    """The position alone on standard output, so that a script can keep it; the counts beside it."""
    position = None if sent.position is None else str(sent.position)
    if as_json:
        print(json.dumps({"rows": sent.rows, "set_aside": sent.aside, "position": position}))
        return
    aside = f", {sent.aside} set aside in {topic.lower()}__dead_letters" if sent.aside else ""
    print(f"{count(sent.rows, 'row')} stored{aside}", file=sys.stderr)
    if position is not None:
        print(position)
