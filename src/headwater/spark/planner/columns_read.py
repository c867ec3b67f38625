"""Which columns of its inputs a query cannot do without: those that it names, wherever, or takes with a star.

They are more than the optimised plan reads. Which they are follows from the resolved plan and the text together: of
a join by USING the plan has all columns of both sides, and a column that is EXCEPTed is only in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_LINE = re.compile(r"^([ :|+-]*)(.*)$")
_VIEW = re.compile(r"View \(`(\w+)`, \[(.*)\]\)$")
_NUMBER = re.compile(r"#(\d+)")
_COUNT = re.compile(r"\bcount\s*\(\s*\*\s*\)")
_STAR = re.compile(r"(?:[(,.]|\bselect|\bdistinct|\ball)\s*\*|\bnatural\b")
"""What takes columns that it does not name."""
_CHOOSING = ("Project", "Aggregate")
"""What says which columns it needs; above an input without one of them, all of its columns are the query's."""
_AS_THEY_ARE = ("Union", "Intersect", "Except", "Distinct", "Deduplicate", "CTERelationDef")
"""What needs all columns that it is given."""
_INPUT = ("View ", "LogicalRDD", "SubqueryAlias")

Reads = tuple[tuple[str, tuple[str, ...]], ...]


class _Line(NamedTuple):
    """An operator of a resolved plan in words, at a depth below the first."""

    depth: int
    text: str


def columns_read(sql: str, tree: str, columns: Mapping[str, tuple[str, ...]]) -> Reads:
    """The columns of each input, of those that it has, by the query and by its resolved plan as Spark prints it."""
    text = sql.lower()
    takes_all = _STAR.search(_COUNT.sub("", text)) is not None
    lines = list(_lines(tree))
    named = {each for line in lines if not line.text.startswith(_INPUT) for each in _NUMBER.findall(line.text)}
    found: dict[str, set[str]] = {}
    for place, line in enumerate(lines):
        view = _VIEW.match(line.text)
        if view is None or view[1] not in columns:
            continue
        numbers, names = _NUMBER.findall(view[2]), columns[view[1]]
        whole = len(numbers) != len(names) or not _is_chosen_from(lines[: place + 1])
        chosen = (
            name
            for name, each in zip(names, numbers, strict=False)
            if (each in named and (takes_all or name.lower() in text)) or (takes_all and name.lower() in text)
        )
        found.setdefault(view[1], set()).update(names if whole else chosen)
    return tuple((name, tuple(each for each in columns[name] if each in read)) for name, read in found.items())


def _lines(tree: str) -> Iterator[_Line]:
    for line in tree.splitlines():
        match = _LINE.match(line)
        if match is not None and match[2]:
            yield _Line(len(match[1]), match[2])


def _is_chosen_from(lines: list[_Line]) -> bool:
    """Whether some operator above the last of these says which of its columns it needs."""
    depth = lines[-1].depth
    for line in reversed(lines[:-1]):
        if line.depth >= depth:
            continue
        depth = line.depth
        if line.text.startswith(_CHOOSING):
            return True
        if line.text.startswith(_AS_THEY_ARE):
            return False
    return False
