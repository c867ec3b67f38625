"""The process that Spark's Python workers are forked from: pyspark's own, but silent when Spark has hung up.

Over a local socket a worker notices at once that nobody listens any more, which is what happens when Spark stops.
"""

from __future__ import annotations

import socket

import pyspark.daemon

_worker = pyspark.daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Serve a task; not 0 if there will be no other."""
    try:
        return int(_worker(sock, authenticated))
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    pyspark.daemon.worker = worker
    pyspark.daemon.manager()
