"""How old what people see is: `python -m bench.latency` (`make bench-latency`).

Rows are appended to the shop by a process of its own, at 1,000 batches a second and at one, while a pipeline keeps
the shop's five views. Every 10 ms that process asks which rows are visible. The *age* of a view is how long ago the
newest row was sent that is visible in it; the *delay* is the time from sending a batch until it is visible. At the
end the same pipeline stands idle for a while. Printed are percentiles, and how much of one core was used.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import headwater as hw
from bench import results
from bench.processes import Peak, processor_seconds
from bench.progress import say
from bench.shop_sender import CUSTOMERS, ROWS, SEED, SKUS, Seen, send
from bench.table import Line, show
from bench.workspace import scratch
from headwater.examples.shop import VIEWS, declare

FAST, SLOW = 1_000, 1
_WARM_SECONDS = 15
_SETTLING = 10
"""After the last row Java compiles and the state is merged for a little while."""
_BARS = {50: 1.0, 95: None, 99: 2.0}
_IDLE_BAR = 0.03
_TOPICS = {
    "revenue": ("orders",),
    "conversion": ("orders", "clicks"),
    "spending": ("orders",),
    "priority_orders": ("orders",),
    "cancelled": ("orders",),
}


def stocked(pipeline: hw.Pipeline) -> None:
    """The shop with its products, customers and views, all filled."""
    shop = declare(pipeline)
    shop.products.upsert([{"sku": sku, "title": sku.title(), "cents": 1_000} for sku in SKUS])
    numbers = np.arange(1, CUSTOMERS + 1)
    countries = np.array(["NO", "SE", "DK", "FI", "DE", "FR"])[numbers % 6]
    names = [f"Customer {number}" for number in numbers]
    shop.customers.upsert(pa.table({"id": numbers, "name": names, "country": countries}))
    for view in VIEWS:
        view.declare(pipeline)
    while pipeline.tick() is not None:
        pass


def traffic(pipeline: hw.Pipeline, rate: float, seconds: float, first: int) -> tuple[Seen, dict[str, Any]]:
    """Drive the pipeline while another process sends; what that saw, and what this and its workers used."""
    ticks: list[hw.Tick] = []
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    sender = context.Process(target=send, args=(str(pipeline.path), rate, seconds, first, out))
    with Peak() as peak:
        sender.start()
        began, used = time.monotonic(), processor_seconds(os.getpid())
        seen: list[Seen] = []

        def done(tick: hw.Tick) -> bool:
            ticks.append(tick)
            return False

        while not seen:
            pipeline.run(seconds=1, until=done)
            if not out.empty():
                seen.append(out.get())
            elif not sender.is_alive() and out.empty():
                message = "the sender failed"
                raise RuntimeError(message)
        lasted, used = time.monotonic() - began, processor_seconds(os.getpid()) - used
        sender.join()
    return seen[0], {
        "cores": used / lasted,
        "ticks": len(ticks),
        "tick_seconds": statistics.median(tick.seconds for tick in ticks),
        "rows": sum(tick.rows_in for tick in ticks),
        "anonymous_bytes": peak.memory.anonymous,
        "mapped_bytes": peak.memory.mapped,
        "latest_send": seen[0].late,
    }


def compare(what: str, seen: Seen, used: dict[str, Any], *, bars: bool) -> list[Line]:
    """The percentiles of each view."""
    note = (
        f"{used['cores']:.2f} cores, {used['ticks']} ticks of {used['tick_seconds']:.2f} s, {used['rows']:,} rows, "
        f"{used['anonymous_bytes'] / 2**30:.1f} GiB"
    )
    lines = []
    for view, topics in _TOPICS.items():
        ages, delays = seen.ages(topics), seen.delays(topics)
        detail = {
            **used,
            **{f"age p{each}": float(np.percentile(ages, each)) for each in _BARS},
            **{f"delay p{each}": float(np.percentile(delays, each)) for each in _BARS},
        }
        for each, bar in _BARS.items():
            held = bar if bars else None
            told = note if view == "revenue" and each == 50 else f"delay {detail[f'delay p{each}']:.3f} s"
            line = Line(f"{what}: {view}, age p{each}", [detail[f"age p{each}"]], None, held, "s", told, detail)
            lines.append(line)
    return lines


def idle(pipeline: hw.Pipeline, seconds: float) -> Line:
    """How much of a core a pipeline takes to which nothing comes."""
    pipeline.run(seconds=_SETTLING)
    used = processor_seconds(os.getpid())
    pipeline.run(seconds=seconds)
    share = (processor_seconds(os.getpid()) - used) / seconds
    return Line("idle, seconds of one core in a second", [share], None, _IDLE_BAR, "s", f"{share:.1%} of one core")


def measure(folder: Path, seconds: float) -> list[Line]:
    """Both rates and idleness, one after the other."""
    with hw.Pipeline("shop", folder) as pipeline:
        say("latency: filling the shop")
        stocked(pipeline)
        say(f"latency: warming up for {_WARM_SECONDS} s")
        traffic(pipeline, FAST / 4, _WARM_SECONDS, 0)
        lines = []
        for number, rate in enumerate((FAST, SLOW), 1):
            say(f"latency: {rate:,} batches of {ROWS} rows a second for {seconds:.0f} s")
            seen, used = traffic(pipeline, rate, seconds, number * 100_000_000)
            lines += compare(f"{rate:,} batches/s", seen, used, bars=rate == FAST)
        say(f"latency: idle for {seconds / 2:.0f} s")
        return [*lines, idle(pipeline, seconds / 2)]


def main() -> None:
    """Run it, print a table and keep it as a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--quick", action="store_true", help="20 seconds each")
    given = parser.parse_args()
    with scratch("latency") as folder:
        lines = measure(folder, 20 if given.quick else given.seconds)
    print(show(lines))
    print(f"written to {results.write(lines, 'latency', SEED)}")


if __name__ == "__main__":
    main()
