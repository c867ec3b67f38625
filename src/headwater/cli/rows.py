"""Rows as they come in from a file, a pipe or a keyboard: a JSON value on each line, or one JSON array."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headwater.errors import SchemaError
from headwater.schema.json import loads

_CHUNK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class InputRow:
    """One row to be: the number of its line, or its place in the array, counted from 1."""

    number: int
    text: bytes | None = None
    parsed: Any = None

    def value(self) -> Any:
        """The JSON value; `SchemaError` if the line is not JSON."""
        return self.parsed if self.text is None else _parse(self.text)


class RowInput:
    """The rows of one input, in batches. `unit` is what its entries are called: `line` or `row`."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._head = self._read_head()
        self.unit = "row" if self._head.lstrip().startswith(b"[") else "line"

    def batches(self, size: int, patience: float | None) -> Iterator[list[InputRow]]:
        """Up to `size` entries at a time; fewer when one has waited `patience` seconds for company.

        With None it waits for as long as it takes, so that the same input always falls into the same batches.
        """
        return self._lines(size, patience) if self.unit == "line" else self._array(size)

    def _read_head(self) -> bytes:
        """The first bytes, up to at least one that is not white space; empty if there is none."""
        head = b""
        while not head.strip() and (data := os.read(self._handle, _CHUNK)):
            head = (head + data).removeprefix(_BYTE_ORDER_MARK)
        return head

    def _array(self, size: int) -> Iterator[list[InputRow]]:
        parts = [self._head]
        while data := os.read(self._handle, _CHUNK):
            parts.append(data)
        values = _parse(b"".join(parts))
        for start in range(0, len(values), size):
            yield [InputRow(start + i, parsed=value) for i, value in enumerate(values[start : start + size], 1)]

    def _lines(self, size: int, patience: float | None) -> Iterator[list[InputRow]]:
        pending: list[InputRow] = []
        number, rest, since = 0, b"", 0.0
        data = self._head
        while data:
            *whole, rest = (rest + data).split(b"\n")
            for text in whole:
                number += 1
                if text.strip():
                    since = since if pending else time.monotonic()
                    pending.append(InputRow(number, text))
                if len(pending) == size:
                    yield pending
                    pending = []
            if pending and patience is not None and not self._more(since + patience):
                yield pending
                pending = []
            data = os.read(self._handle, _CHUNK)
        if rest.strip():
            pending.append(InputRow(number + 1, rest))
        if pending:
            yield pending

    def _more(self, deadline: float) -> bool:
        """Whether there is something to read before the deadline; the end of the input counts as something."""
        poll = select.poll()  # unlike select it takes any descriptor, also one above 1024
        poll.register(self._handle, select.POLLIN)
        return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def _parse(text: bytes) -> Any:
    try:
        return loads(text.decode())
    except UnicodeDecodeError as error:
        msg = f"the bytes are not UTF-8 (byte {error.start + 1} is 0x{text[error.start]:02x})"
        raise SchemaError(msg, hint="save it as UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"character {error.colno}" if error.lineno == 1 else f"line {error.lineno}, character {error.colno}"
        msg = f"it is not JSON: {error.msg} at {place}"
        raise SchemaError(msg, hint="give a JSON object on each line, or one array of objects") from None
    except (ValueError, RecursionError) as error:
        msg = f"this JSON cannot be read: {error}"
        raise SchemaError(msg) from None
