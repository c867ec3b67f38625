"""What a pipeline is opened and asked with, checked."""

from __future__ import annotations

import math
import os
import re
import reprlib
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headwater.backends import ENGINES, SPARK
from headwater.clock import Clock, SystemClock
from headwater.errors import HeadwaterError, Unavailable
from headwater.files import Files

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")
_UNITS = {"microsecond": 1e-6, "millisecond": 1e-3, "second": 1, "minute": 60, "hour": 3600, "day": 86400}
_NO_ZONE = re.compile(r"(posix|right)/.*|localtime|posixrules|Factory")
"""Files beside the time zones, which only this machine takes for one."""
_MASTER = re.compile(r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|local-cluster\[.+\]|spark://.+|yarn|k8s://.+")


def checked_name(name: str) -> str:
    """The name, if a pipeline may be called so."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        msg = f"{name!r} is not a name for a pipeline"
        raise HeadwaterError(msg, hint="use letters, digits, _ and -, beginning with a letter")
    return name


def checked_path(path: str | os.PathLike[str] | None, name: str) -> tuple[str, str | None]:
    """The folder as an absolute path, and the URL of the state's files if that was given.

    What has to be on this machine then lies where it would without a path.
    """
    if path is None or (isinstance(path, str) and "://" in path and not path.startswith("file://")):
        return os.path.abspath(os.path.join(".headwater", name)), path
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
        msg = f"{path!r} is not a path"
        raise HeadwaterError(msg, hint="give the path of a folder, or the URL of where its files are to be")
    if isinstance(path, str) and path.startswith("file://"):
        path = unquote(urlsplit(path).path)
    return os.path.abspath(path), None


def checked_timezone(timezone: str) -> str:
    """The time zone, if there is one of that name."""
    try:
        ZoneInfo(timezone)
        known = not _NO_ZONE.fullmatch(timezone)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError, AttributeError):
        known = False
    if not known:
        msg = f"{timezone!r} is not a time zone"
        raise HeadwaterError(msg, hint="write it like Europe/Oslo or UTC")
    return timezone


def make_folder(path: str) -> None:
    """Make the pipeline's folder, lastingly."""
    try:
        Files().make_folder(path)
    except OSError as error:
        msg = f"the folder cannot be made: {error.strerror}"
        raise Unavailable(msg, where=path, hint="choose another path, or check its permissions") from error


def checked_count(argument: str, value: object) -> int:
    """A whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        msg = f"{argument} is {value!r}"
        raise HeadwaterError(msg, hint="it is a whole number from 1 on")
    return value


def checked_duration(text: str) -> str:
    """A duration like `1 hour`, as it was given."""
    duration_seconds(text)
    return text


def duration_seconds(text: object) -> float:
    """A duration like `1 hour` in seconds."""
    parts = text.split() if isinstance(text, str) else []
    unit = _UNITS.get(parts[1].lower().removesuffix("s")) if len(parts) == 2 else None
    number = parts[0] if unit is not None and re.fullmatch(r"\d+(\.\d+)?", parts[0], re.ASCII) else "nan"
    seconds = float(number) * (unit or 0)
    if not math.isfinite(seconds):
        msg = f"{reprlib.repr(text)} is not a duration"
        raise HeadwaterError(msg, hint="write it like '1 hour'")
    return seconds


def checked_master(master: str | None) -> str | None:
    """Where Spark is to run, if Spark could mean it; or another engine, if there is such a one."""
    if ENGINES.get(master) not in {None, ENGINES.get(SPARK)}:
        return master
    if master is not None and not (isinstance(master, str) and _MASTER.fullmatch(master)):
        msg = f"master is {master!r}"
        raise HeadwaterError(
            msg, hint="write it like local[2], spark://host:7077, yarn or k8s://…, or leave it out"
        )
    return master


def checked_clock(clock: Clock | None) -> Clock:
    """The clock that is to be looked at."""
    if clock is not None and not _tells_time(clock):
        msg = f"clock is {clock!r}"
        raise HeadwaterError(msg, hint="give an object whose now() returns microseconds, or leave it out")
    return clock if clock is not None else SystemClock()


def _tells_time(clock: object) -> bool:
    if isinstance(clock, type) or not callable(now := getattr(clock, "now", None)):
        return False
    told = now()
    return isinstance(told, int) and not isinstance(told, bool)


def checked_seconds(argument: str, value: float) -> float:
    """A number of seconds, not below 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        msg = f"{argument} is {value!r}"
        raise HeadwaterError(msg, hint="give a number of seconds from 0 on")
    return value


def checked_flag(argument: str, value: object) -> bool:
    """Yes or no."""
    if not isinstance(value, bool):
        msg = f"{argument} is {value!r}"
        raise HeadwaterError(msg, hint="it is True or False")
    return value


def check_run(seconds: float | None, until: object) -> None:
    """For how long to tick."""
    if seconds is not None:
        checked_seconds("seconds", seconds)
    if until is not None and not callable(until):
        msg = f"until is {until!r}"
        raise HeadwaterError(msg, hint="give a function that takes a Tick and says whether to end")
