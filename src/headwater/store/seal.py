"""Entries of the store that say what is declared, and what the state is: with a checksum, since SQLite has none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from xxhash import xxh3_64_hexdigest

from headwater.errors import Unavailable

_DIGITS = 16
_MARK = "="
_LOOKS_SEALED = re.compile(f".[0-9a-f]{{{_DIGITS}}} ", re.DOTALL)
_written = json.JSONEncoder(separators=(",", ":")).encode
_HINT = "restore headwater.db from a backup if the next tick does not heal it"


class EntryDamaged(Unavailable):
    """An entry of the metadata store that is not what was written."""


def sealed(detail: Mapping[str, Any], *known: object) -> str:
    """A detail as text, behind a checksum of it and of what it belongs to."""
    text = _written(dict(detail))
    return f"{_checksum(text, known)} {text}"


def opened(stored: str, what: str, *known: object) -> dict[str, Any]:
    """The detail that `sealed` made for the same; EntryDamaged if it is not that.

    Older versions wrote none: they are told by what they begin with.
    """
    try:
        if not isinstance(stored, str):
            raise ValueError(stored)  # SQLite gives whatever is there
        if not stored.startswith("{") and stored[:_DIGITS] != _checksum(_text(stored), known):
            raise ValueError(stored)
        return _detail(stored)
    except ValueError as error:
        raise _damaged(what) from error


def sealed_text(text: str, *known: object) -> str:
    """A text behind a mark and a checksum of it and of what it belongs to."""
    return f"{_MARK}{_checksum(text, known)} {text}"


def opened_text(stored: str, what: str, *known: object) -> str:
    """The text that `sealed_text` made for the same; EntryDamaged if it is not that. Older ones are bare."""
    if not isinstance(stored, str):
        raise _damaged(what)
    if not _LOOKS_SEALED.match(stored):
        return stored
    text = stored[len(_MARK) + _DIGITS + 1 :]
    if stored != sealed_text(text, *known):
        raise _damaged(what)
    return text


def _damaged(what: str) -> EntryDamaged:
    return EntryDamaged(f"the entry of {what} in the metadata store is damaged", hint=_HINT)


def unchecked(stored: str, what: str) -> dict[str, Any]:
    """The detail, whatever its checksum is; EntryDamaged if it cannot be read."""
    try:
        return _detail(stored)
    except (TypeError, ValueError, AttributeError) as error:
        raise _damaged(what) from error


def _detail(stored: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_text(stored))
    return found


def _text(stored: str) -> str:
    return stored if stored.startswith("{") else stored[_DIGITS + 1 :]


def _checksum(text: str, known: tuple[object, ...]) -> str:
    return xxh3_64_hexdigest("\0".join([*map(str, known), text]).encode())
