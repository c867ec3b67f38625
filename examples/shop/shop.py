"""The shop on its own: `python examples/shop/shop.py`, and in another shell `headwater tail orders -f`."""

from __future__ import annotations

import time
from itertools import islice
from random import Random

import headwater as hw
from headwater.clock import SystemClock
from headwater.examples.shop import declare, traffic

shop = hw.Pipeline("shop")
topics = declare(shop)

if __name__ == "__main__":
    with shop:
        for batch in islice(traffic(Random(1), SystemClock()), 500):  # noqa: S311 - a game
            topics.apply(batch)
            time.sleep(0.02)
