"""What goes wrong in a task of ours: the worker says whose fault it is by its type, and Spark carries the words.

A task raises one error only, whose text has a mark that the driver chose and a line of JSON. Nobody else knows the
mark, so what a user's function or a row says is never taken for it; and what has no mark came from elsewhere.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from headwater.errors import HeadwaterError, LogDamaged, Unavailable
from headwater.evaluation.errors import EvaluationFailed, OutOfMemory, OwnFault
from headwater.memory import TooLarge

Item = TypeVar("Item")
_LONGEST, _SHORT, _LINE = 1000, 200, 8000
_ROW, _MEMORY, _REFUSED, _SYSTEM, _KNOWN, _OURS = "row", "memory", "unavailable", "system", "known", "ours"
_LARGE = "large"
DISK_HINT = "check the disk's free space, its health and the permissions"


class TaskFailed(Exception):
    """What a task raises; its text is all that comes back of it."""


class _Sparks(Exception):
    """Something went wrong in what Spark gives to a task."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__()


@dataclass(frozen=True)
class TaskFailures:
    """Tells failures in tasks apart by a `mark`. It travels with the tasks; safe for threads."""

    mark: str

    @contextmanager
    def told(self) -> Iterator[None]:
        """Have whatever goes wrong in the block told by its type."""
        try:
            yield
        except _Sparks as error:
            raise error.error from None
        except Exception as error:
            raise TaskFailed(self.mark + _as_text(error)) from None

    def of_spark(self, items: Iterable[Item]) -> Iterator[Item]:
        """What Spark gives to a task: what goes wrong there is none of the task's failures."""
        given = iter(items)
        while True:
            try:
                item = next(given)
            except StopIteration:
                return
            except Exception as error:
                raise _Sparks(error) from error
            yield item

    def found(self, text: str) -> HeadwaterError | None:
        """What went wrong in a task, given what Spark says; None if it was not in one of ours."""
        _, mark, rest = text.partition(self.mark)
        if not mark:
            return None
        told, _ = json.JSONDecoder().raw_decode(rest)
        kind, what, where = told["kind"], told["what"], told["where"]
        if kind == _ROW:
            return EvaluationFailed(what, row=told["row"], where=where, hint=told["hint"])
        if kind == _MEMORY:
            return OutOfMemory(what)
        if kind in {_REFUSED, _SYSTEM}:
            hint = DISK_HINT if kind == _SYSTEM else told["hint"]
            return Unavailable(what, where=where, hint=hint, retry=True)
        if kind == _OURS:
            return OwnFault(what, where=where)
        return (TooLarge if kind == _LARGE else HeadwaterError)(what, where=where, hint=told["hint"])


def _as_text(error: Exception) -> str:
    """An error as one line, which is not so long that Spark would be told the beginning only."""
    told = _told(error)
    whole = json.dumps({name: text[:_LONGEST] for name, text in told.items()}, ensure_ascii=False)
    return whole if len(whole) < _LINE else json.dumps({name: text[:_SHORT] for name, text in told.items()})


def _told(error: Exception) -> dict[str, str]:
    """An error as plain data, by whose it is."""
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, HeadwaterError):
        kind = _LARGE if isinstance(error, TooLarge) else _KNOWN
        if isinstance(error, EvaluationFailed):
            kind = _MEMORY if isinstance(error, OutOfMemory) else _ROW
        elif isinstance(error, Unavailable | LogDamaged):
            kind = _REFUSED
        row = error.row if isinstance(error, EvaluationFailed) else ""
        texts = {"what": error.what, "where": error.where, "hint": error.hint, "row": row}
        return {"kind": kind, **{name: str(text or "") for name, text in texts.items()}}
    if isinstance(error, MemoryError):
        return {"kind": _MEMORY, "what": f"there was not enough memory: {said}", "where": ""}
    if isinstance(error, OSError) and error.errno is not None:  # Arrow's own, about what it reads, have none
        return {"kind": _SYSTEM, "what": f"the disk refused: {said}", "where": ""}
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    return {"kind": _OURS, "what": said, "where": f"{os.path.basename(last.filename)}:{last.lineno} in {last.name}"}
