"""What a pipeline is opened with, checked."""

from __future__ import annotations

import os
import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headwater.errors import HeadwaterError, Unavailable
from headwater.files import Files

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")


def checked_name(name: str) -> str:
    """The name, if a pipeline may be called so."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        msg = f"{name!r} is not a name for a pipeline"
        raise HeadwaterError(msg, hint="use letters, digits, _ and -, beginning with a letter")
    return name


def checked_path(path: str | os.PathLike[str]) -> str:
    """The folder as an absolute path."""
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
        msg = f"{path!r} is not a path"
        raise HeadwaterError(msg, hint="give the path of a folder")
    return os.path.abspath(path)


def checked_timezone(timezone: str) -> str:
    """The time zone, if there is one of that name."""
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError, AttributeError):
        msg = f"{timezone!r} is not a time zone"
        raise HeadwaterError(msg, hint="write it like Europe/Oslo or UTC") from None
    return timezone


def make_folder(path: str) -> None:
    """Make the pipeline's folder, lastingly."""
    try:
        Files().make_folder(path)
    except OSError as error:
        msg = f"the folder cannot be made: {error.strerror}"
        raise Unavailable(msg, where=path, hint="choose another path, or check its permissions") from error
