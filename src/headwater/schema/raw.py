"""A refused row as JSON text, as close to what was given as JSON can say."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Mapping


def raw_json(row: object) -> str:
    """The row as JSON; never fails. Bytes become base64, times ISO 8601, and what JSON has no word for its repr."""
    try:
        text = json.dumps(_plain(row), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(_plain(row), separators=(",", ":"))
    except Exception:  # too deep, too long a number, or whatever an unknown object's own methods raise
        return json.dumps(_described(row))
    return text


def encodable(text: str) -> str:
    """The text, with an escape in place of what UTF-8 has no bytes for: half of a surrogate pair."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | str | int) or _is_finite(value):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return _described(value.isoformat)
    return _described(value)


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _described(value: object) -> str:
    try:
        return str(value() if callable(value) else value)
    except Exception:  # whatever an unknown object's own methods raise, the row is still reported
        return f"({type(value).__name__}, not printable)"
