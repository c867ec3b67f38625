"""The result as people read it: what, ours, the peer's, the ratio, the bar and whether it held."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any


@dataclass
class Line:
    """One comparison: the figures of every round and the bar for the ratio of their medians.

    Throughputs by default (rows/s, the ratio is ours over the peer's and must reach the bar). Without a peer the
    figure itself is held against the bar, as seconds that may not be exceeded. Without a bar it only informs.
    """

    what: str
    ours: list[float]
    peer: list[float] | None = None
    bar: float | None = None
    unit: str = "rows/s"
    note: str = ""
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """The ratio of medians, if both sides were measured."""
        return median(self.ours) / median(self.peer) if self.ours and self.peer else None

    @property
    def held(self) -> bool | None:
        """Whether the bar was held; None if there was nothing to compare."""
        if self.bar is None:
            return None
        if self.peer is None:
            return median(self.ours) <= self.bar if self.ours else None
        return None if self.ratio is None else self.ratio >= self.bar

    def as_json(self) -> dict[str, Any]:
        """Give everything, the single figures too."""
        return {
            "what": self.what,
            "unit": self.unit,
            "ours": self.ours,
            "peer": self.peer,
            "ratio": self.ratio,
            "bar": self.bar,
            "held": self.held,
            "note": self.note,
            "detail": self.detail,
        }


_MEMORY = 10 * 2**30


def memory_line(most: int, note: str = "") -> Line:
    """The most memory that all processes had together, held against the bar for all benchmarks."""
    figure = f"{most / 2**30:.1f} GiB{note and '; '}{note}"
    return Line("most memory", [_MEMORY / most], [1.0], 1.0, "times less than 10 GiB", figure)


_HEAD = ("what", "ours", "peer", "ratio", "bar", "held", "")


def show(lines: list[Line]) -> str:
    """Lay the lines out as a table of text."""
    table = [_HEAD, *(_cells(line) for line in lines)]
    widths = [max(len(row[i]) for row in table) for i in range(len(_HEAD))]
    out = []
    for row in table:
        cells = [row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in range(1, 6)), row[6]]
        out.append("  ".join(cells).rstrip())
    return "\n".join(out)


def _cells(line: Line) -> tuple[str, ...]:
    held = {None: "-", True: "yes", False: "NO"}[line.held]
    bar = "-" if line.bar is None else f"{line.bar:g} s" if line.peer is None else f"{line.bar:g}x"
    ratio = "-" if line.ratio is None else f"{line.ratio:.2f}x"
    return (
        line.what,
        _figure(line.ours, line.unit),
        _figure(line.peer, line.unit),
        ratio,
        bar,
        held,
        line.note,
    )


def _figure(figures: list[float] | None, unit: str) -> str:
    if not figures:
        return "-"
    middle = median(figures)
    return f"{middle:.3f} s" if unit == "s" else f"{middle:,.0f} {unit}"
