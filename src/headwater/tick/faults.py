"""Faults: what went wrong while a view was computed, and whether it is the view's or the pipeline's."""

from __future__ import annotations

import os
import sqlite3
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headwater.errors import (
    DeclarationChanged,
    Fenced,
    HeadwaterError,
    LeaseHeld,
    LogDamaged,
    Unavailable,
    ViewRefused,
)
from headwater.evaluation.errors import EvaluationFailed

THE_PIPELINES: tuple[type[Exception], ...] = (
    sqlite3.Error,
    ConnectionError,
    Unavailable,
    LogDamaged,
    Fenced,
    LeaseHeld,
    DeclarationChanged,
)
"""What goes wrong with the log, the store, the lease, the disk or Java, whichever view happens to meet it."""
_PACKAGE = os.sep + "headwater" + os.sep
_NO_MEMORY = "give the machine more memory, or replace the view by one that has fewer rows together"
_REPORT = "please report it, with the query of the view; replace the view meanwhile"


def is_the_pipelines(error: BaseException) -> bool:
    """Whether an error stops the tick; anything else suspends the view that it happened to.

    What is no error of a program, such as Ctrl-C, stops it too.
    """
    if isinstance(error, OSError) and error.errno is not None:  # Arrow's own, about what it reads, have none
        return True
    return isinstance(error, THE_PIPELINES) or not isinstance(error, Exception)


def told(error: BaseException) -> dict[str, Any]:
    """Why a view is suspended: what went wrong, in which expression, for which row, and what to do."""
    if isinstance(error, EvaluationFailed):
        return {"what": error.what, "expression": error.where, "row": error.row, "hint": error.hint}
    if isinstance(error, HeadwaterError):
        return {"what": error.what, "expression": error.where, "hint": error.hint}
    if isinstance(error, MemoryError):
        return {"what": f"there is not enough memory: {error}", "hint": _NO_MEMORY}
    return {"what": f"this is a fault of Headwater: {_described(error)}", "hint": _REPORT}


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Whatever goes wrong while a view is planned refuses that view, unless it is the pipeline's."""
    try:
        yield
    except ViewRefused:
        raise
    except Exception as error:
        if is_the_pipelines(error):
            raise
        why = told(error)
        raise ViewRefused(f"it cannot be planned: {why['what']}", where=name, hint=why["hint"]) from error


def as_told(error: Exception) -> HeadwaterError:
    """The same as an error that people can read."""
    if isinstance(error, HeadwaterError):
        return error
    what = told(error)
    return HeadwaterError(what["what"], hint=what["hint"])


def _described(error: BaseException) -> str:
    """The class, the message and the place in our own code where it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if _PACKAGE in frame.filename]
    place = ""
    if ours:
        path = ours[-1].filename.rpartition(_PACKAGE)[2]
        place = f", at {path.replace(os.sep, '/')}:{ours[-1].lineno} in {ours[-1].name}"
    return f"{type(error).__name__}: {error}{place}"
