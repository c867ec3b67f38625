"""Producers in processes of their own that start together: rows of all, over the time from start to last finish."""

import multiprocessing
import queue
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Protocol


@dataclass(frozen=True)
class Share:
    """What one producer did after the start: `rows` all acknowledged by `ended` (CLOCK_MONOTONIC, one for all)."""

    started: float
    ended: float
    rows: int
    warmup_rows: int
    syncs: int | None = None


class Producer(Protocol):
    """Something picklable that writes from a process of its own."""

    def produce(self, start: Callable[[], float], seconds: float) -> Share:
        """Open and warm up, call *start* (it waits for the others and gives the time), then write for *seconds*."""
        ...


@dataclass(frozen=True)
class Throughput:
    """One measurement of one crew."""

    rows_per_second: float
    rows: int
    warmup_rows: int
    syncs: int | None


def run(producers: list[Producer], seconds: float) -> Throughput:
    """Measure the producers, each in a process, writing together for *seconds*."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(producers))
    shares: Queue[Share | str] = context.Queue()
    processes = [context.Process(target=_work, args=(p, seconds, barrier, shares)) for p in producers]
    for process in processes:
        process.start()
    try:
        return _together([_receive(shares, seconds + 120) for _ in processes])
    finally:
        barrier.abort()
        for process in processes:
            process.join(timeout=20)
            if process.is_alive():
                process.kill()


def _work(producer: Producer, seconds: float, barrier: Barrier, shares: "Queue[Share | str]") -> None:
    def start() -> float:
        barrier.wait(timeout=120)
        return time.monotonic()

    try:
        shares.put(producer.produce(start, seconds))
    except BaseException:
        shares.put(traceback.format_exc())
        raise


def _receive(shares: "Queue[Share | str]", timeout: float) -> Share:
    try:
        share = shares.get(timeout=timeout)
    except queue.Empty:
        share = f"nothing was heard of a producer for {timeout:.0f} s"
    if isinstance(share, str):
        message = f"a producer failed: {share}"
        raise RuntimeError(message)
    return share


def _together(shares: list[Share]) -> Throughput:
    wall = max(s.ended for s in shares) - min(s.started for s in shares)
    rows = sum(s.rows for s in shares)
    syncs = [s.syncs for s in shares if s.syncs is not None]
    return Throughput(
        rows_per_second=rows / wall,
        rows=rows,
        warmup_rows=sum(s.warmup_rows for s in shares),
        syncs=sum(syncs) if syncs else None,
    )
