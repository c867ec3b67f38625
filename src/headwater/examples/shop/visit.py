"""The shop's visitors as a program: `python -m headwater.examples.shop.visit PATH` until standard input ends."""

from __future__ import annotations

import select
import sys
from random import Random

from headwater.clock import SystemClock
from headwater.examples.shop import declare, traffic
from headwater.pipeline import reopen

_PAUSE = 0.02


def main(path: str) -> None:
    """Let traffic happen in the pipeline of this folder, a little at a time."""
    with reopen(path) as pipeline:
        shop = declare(pipeline)
        for batch in traffic(Random(1), SystemClock()):  # noqa: S311 - a game
            shop.apply(batch)
            if select.select([sys.stdin], [], [], _PAUSE)[0]:
                return


if __name__ == "__main__":
    main(sys.argv[1])
