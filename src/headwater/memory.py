"""Memory: how much one thing may take, so that no machine runs out of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from headwater.errors import HeadwaterError

_PART = 4
_SCALES = ("bytes", "kB", "MB", "GB", "TB", "PB")
_THOUSAND = 1000


class TooLarge(HeadwaterError):
    """What would be made takes more memory than it may; nothing of it was made."""


def _machine() -> int:
    """The memory that this process may have at most: the machine's, or less in a container."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="ascii") as file:
                size = min(size, int(file.read()))
        except (OSError, ValueError):  # there is none, or it says "max"
            continue
    return size


class _Allowed:
    """How many bytes one thing may take: a quarter of the machine's, over as many as do so at once."""

    def __init__(self) -> None:
        self.bytes = _machine() // _PART


_allowed = _Allowed()


@contextmanager
def allowing(size: int) -> Iterator[None]:
    """Allow so many bytes in this process meanwhile; for tests."""
    before, _allowed.bytes = _allowed.bytes, size
    try:
        yield
    finally:
        _allowed.bytes = before


def share_among(count: int) -> int:
    """Allow this process its part of what so many take at once; how much that is."""
    _allowed.bytes //= count
    return _allowed.bytes


def check_fits(size: int, what: str) -> None:
    """`TooLarge` if something is larger than one thing may be; asked before it is made."""
    if size > _allowed.bytes:
        msg = f"{what} would take {shown(size)}, and at most {shown(_allowed.bytes)} may be in memory for it"
        raise TooLarge(msg, hint="join by an equality too, or have fewer rows on one side")


class Sized(Protocol):
    """What is in memory."""

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        ...


Part = TypeVar("Part", bound=Sized)


def all_fitting(parts: Iterable[Part], what: str) -> list[Part]:
    """All parts, made one after the other; `TooLarge` as soon as they are together more than one thing may be."""
    made, size = [], 0
    for part in parts:
        made.append(part)
        size += part.nbytes
        check_fits(size, what)
    return made


def shown(size: float) -> str:
    """So many bytes, for people."""
    for scale in _SCALES:
        if size < _THOUSAND or scale == _SCALES[-1]:
            break
        size /= _THOUSAND
    return f"{size:.0f} {scale}" if size >= 10 or scale == _SCALES[0] else f"{size:.1f} {scale}"
