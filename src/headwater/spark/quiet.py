"""Errors of Spark's that go to a caller of ours are not logged as well."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from pyspark.logger import PySparkLogger

_ours = threading.local()


def _passes(record: logging.LogRecord) -> bool:
    return not getattr(_ours, "quiet", False)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """PySpark logs every error that it converts; not those that this thread meets within the block."""
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    if _passes not in logger.filters:
        logger.addFilter(_passes)
    before, _ours.quiet = getattr(_ours, "quiet", False), True
    try:
        yield
    finally:
        _ours.quiet = before
