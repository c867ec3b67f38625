"""Options that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option of every command."""
    parser.add_argument("--json", action="store_true", help="print JSON: one document, or a line for each row")


def whole(smallest: int) -> Callable[[str], int]:
    """For `type=`: a whole number that is not below `smallest`."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < smallest:
            msg = f"{text!r} is not a whole number of at least {smallest}"
            raise argparse.ArgumentTypeError(msg)
        return int(text)

    return read
