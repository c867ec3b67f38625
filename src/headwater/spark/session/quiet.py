"""Errors of Spark's, and of talking to it, that go to a caller of ours are not logged as well."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from py4j.protocol import Py4JNetworkError
from pyspark.logger import PySparkLogger

_ours = threading.local()


def _passes(record: logging.LogRecord) -> bool:
    return not getattr(_ours, "quiet", False)


def _passes_if_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname or (_passes(record) and not _is_of_a_connection(record))


def _is_of_a_connection(record: logging.LogRecord) -> bool:
    """Whether it is of a Java that has ended: a caller is told, and nobody else called than Python's collector."""
    return record.exc_info is not None and isinstance(record.exc_info[1], (Py4JNetworkError, OSError))


def begin() -> None:
    """Begin a thread of ours: whatever it meets goes to a caller."""
    _ours.quiet = True


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """PySpark logs every error that it converts; not those that this thread meets within the block.

    py4j does so too, by the root logger, with tracebacks.
    """
    for logger, passes in (
        (PySparkLogger.getLogger("SQLQueryContextLogger"), _passes),
        (logging.getLogger("py4j.clientserver"), _passes),
        (logging.getLogger(), _passes_if_not_of_py4j),
    ):
        if passes not in logger.filters:
            logger.addFilter(passes)
    before, _ours.quiet = getattr(_ours, "quiet", False), True
    try:
        yield
    finally:
        _ours.quiet = before
