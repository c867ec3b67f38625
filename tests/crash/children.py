"""Child processes for tests: started cheaply, told what to do over a pipe, stopped and killed as they deserve."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any

import psutil

DEADLINE = 20.0

spawn = multiprocessing.get_context("forkserver")
spawn.set_forkserver_preload(["headwater.testing", "tests.crash.reader", "tests.crash.writer", "pandas"])
"""Children are forked from a process that imported all this (pyarrow looks for pandas) and opened no pipeline."""


@contextmanager
def child(target: Callable[..., None], *arguments: object) -> Iterator[tuple[ForkServerProcess, Connection]]:
    """A process that runs `target(pipe, *arguments)`; killed at the end of the block, stopped or not."""
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()


def told(pipe: Connection) -> Any:
    """What a child says next; an error if it is silent for too long."""
    if not pipe.poll(DEADLINE):
        msg = f"the child said nothing for {DEADLINE} s"
        raise TimeoutError(msg)
    return pipe.recv()


def wait_until(condition: Callable[[], bool], *, seconds: float = DEADLINE) -> None:
    """Return as soon as the condition holds; an error if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            msg = f"what was waited for did not happen within {seconds} s"
            raise TimeoutError(msg)
        time.sleep(0.005)


def wait_until_stopped(process: ForkServerProcess) -> None:
    """Return when a child is stopped, as by SIGSTOP."""
    wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)


def wait_until_dead(process: ForkServerProcess) -> None:
    """Return when a child is gone."""
    wait_until(lambda: not process.is_alive(), seconds=5.0)
