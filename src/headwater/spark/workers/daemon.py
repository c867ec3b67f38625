"""The process that Spark's Python workers are forked from: pyspark's own, but with all that tasks need.

A new worker would take a second to import it, and Spark ends those that had nothing to do for a minute. pyspark
imports as little as it can, because some modules start threads, which a forked worker does not have; of these, only
an allocator in Arrow that is not used starts one. After each task a worker collects garbage, and goes through all
that was imported; not if that is frozen, so a stage takes half as long.

Over a local socket a worker notices at once that nobody listens any more, which is what happens when Spark stops:
it is silent then.

All workers together may have half of the machine's memory: a function that takes more gets a `MemoryError`, before
the system looks for a process to kill.

What a function raises is told in text that Java can read: of one that is no UTF-8 pyspark sends the beginning only,
and Java waits for ever for the rest. Of a very long one the beginning is enough.
"""

from __future__ import annotations

import gc
import os
import resource
import socket
import sys
import traceback
from typing import BinaryIO

import numpy.random
import pandas  # noqa: F401
import py4j
import pyarrow.compute  # noqa: F401
import pyspark.daemon
import pyspark.worker
from pyspark.serializers import SpecialLengths, write_int, write_with_length

import headwater.expressions.evaluate
import headwater.log
import headwater.operators.table
import headwater.state.arrangement
import headwater.state.merge
import headwater.topics  # noqa: F401
from headwater.memory import share_among

_LEAST = 2 << 30
"""So many bytes of its own a worker may have on any machine; files that are mapped do not count."""
_LONGEST = 10_000
"""So many characters are told of a line."""
_worker = pyspark.daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Serve a task; not 0 if there will be no other."""
    try:
        return int(_worker(sock, authenticated))
    except BrokenPipeError:
        return 1


def tell(error: BaseException, out: BinaryIO, _hide_traceback: bool | None = None) -> None:
    """Tell Java what was raised, as pyspark does."""
    told = traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
    text = "".join(line if len(line) <= _LONGEST else line[:_LONGEST] + "…\n" for line in told.format())
    data = text.encode("utf-8", "backslashreplace")
    try:
        write_int(SpecialLengths.PYTHON_EXCEPTION_THROWN, out)  # type: ignore[no-untyped-call]
        write_with_length(data, out)  # type: ignore[no-untyped-call]
    except OSError:  # nobody listens any more
        pass


if __name__ == "__main__":
    for package in (pyspark, py4j):  # else each worker reads the directories of their archives anew
        sys.path_importer_cache.pop(os.path.dirname(os.path.dirname(str(package.__file__))), None)
    os.register_at_fork(after_in_child=numpy.random.seed)  # else all draw the same numbers
    limit = max(_LEAST, 2 * share_among(os.cpu_count() or 1))
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    gc.freeze()
    vars(pyspark.worker)["handle_worker_exception"] = tell  # what its main() calls
    pyspark.daemon.worker = worker
    pyspark.daemon.manager()
