"""The process that Spark's Python workers are forked from: pyspark's own, but with all that tasks need.

A new worker would take a second to import it, and Spark ends those that had nothing to do for a minute. pyspark
imports as little as it can, because some modules start threads, which a forked worker does not have; of these, only
an allocator in Arrow that is not used starts one. After each task a worker collects garbage, and goes through all
that was imported; not if that is frozen, so a stage takes half as long.

Over a local socket a worker notices at once that nobody listens any more, which is what happens when Spark stops:
it is silent then.
"""

from __future__ import annotations

import gc
import os
import socket
import sys

import numpy.random
import pandas  # noqa: F401
import py4j
import pyarrow.compute  # noqa: F401
import pyspark.daemon
import pyspark.worker

import headwater.log
import headwater.operators.accumulate
import headwater.operators.direct
import headwater.operators.first
import headwater.operators.join
import headwater.operators.recompute
import headwater.operators.table
import headwater.state.arrangement
import headwater.state.merge
import headwater.topics  # noqa: F401

_worker = pyspark.daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Serve a task; not 0 if there will be no other."""
    try:
        return int(_worker(sock, authenticated))
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    for package in (pyspark, py4j):  # else each worker reads the directories of their archives anew
        sys.path_importer_cache.pop(os.path.dirname(os.path.dirname(str(package.__file__))), None)
    os.register_at_fork(after_in_child=numpy.random.seed)  # else all draw the same numbers
    gc.freeze()
    pyspark.daemon.worker = worker
    pyspark.daemon.manager()
