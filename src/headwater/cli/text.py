"""Plain text for a terminal: columns that line up, numbers that can be read, nothing that could move the cursor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

_WIDEST = 48


def cell(value: object) -> str:
    """One value on one line. Text comes as it is, but for characters that a terminal would act upon."""
    if value is None:
        return "null"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Columns:
    """Rows that line up below a heading, also when they come a few at a time: a column only ever grows."""

    def __init__(self, headings: Sequence[str], *, right: Iterable[str] = ()) -> None:
        self._headings = list(headings)
        self._right = {index for index, name in enumerate(headings) if name in set(right)}
        self._widths = [len(heading) for heading in headings]

    def heading(self) -> str:
        """The line of headings, as wide as the rows so far."""
        return self._line(self._headings)

    def lines(self, rows: Iterable[Sequence[str]]) -> list[str]:
        """A line for each row. A value wider than 48 characters stands out rather than widening its column."""
        rows = list(rows)
        for row in rows:
            self._widths = [max(w, min(len(c), _WIDEST)) for w, c in zip(self._widths, row, strict=True)]
        return [self._line(row) for row in rows]

    def _line(self, row: Sequence[str]) -> str:
        cells = (
            text.rjust(width) if index in self._right else text.ljust(width)
            for index, (text, width) in enumerate(zip(row, self._widths, strict=True))
        )
        return "  ".join(cells).rstrip()


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 row`, `2,000 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: float) -> str:
    """A number of bytes in the unit that suits it."""
    if number < 1000:
        return f"{number:.0f} B"
    for unit in ("kB", "MB", "GB"):
        number /= 1000
        if number < 999.5:
            return f"{number:.1f} {unit}"
    return f"{number / 1000:.1f} TB"
