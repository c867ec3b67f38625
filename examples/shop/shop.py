"""The shop on its own.

`headwater run examples/shop/shop.py` keeps its views fresh. In another shell, `python examples/shop/shop.py` lets
traffic happen, and `headwater query "FROM revenue"` looks at a view.
"""

from __future__ import annotations

import time
from itertools import islice
from random import Random

import headwater as hw
from headwater.clock import SystemClock
from headwater.examples.shop import VIEWS, declare, traffic

shop = hw.Pipeline("shop")
topics = declare(shop)
for view in VIEWS:
    view.declare(shop)

if __name__ == "__main__":
    with shop:
        for batch in islice(traffic(Random(1), SystemClock()), 500):  # noqa: S311 - a game
            topics.apply(batch)
            time.sleep(0.02)
