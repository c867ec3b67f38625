"""The text of a view: when two of them are the same SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<space>\s+|--(?:\\\n|[^\r\n])*|/\*(?!\+))"""
    r"""|[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`"""
    r"""|(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+\w*|\w+|<=>|<=|>=|<>|!=|==|\|\||\|>|->|=>|::|:=|<<|>>>|>>|/\*\+|\*/|.""",
    re.DOTALL,
)
_EDGE = re.compile(r"/\*|\*/")


def same_sql(one: str, other: str) -> bool:
    """Whether two texts differ in white space, comments and a last `;` only; what is quoted, and hints, count."""
    return one == other or _tokens(one) == _tokens(other)


def _tokens(sql: str) -> list[str]:
    found = [token for _, token in tokens(sql)]
    while found and found[-1] == ";":
        found.pop()
    return found


def tokens(sql: str) -> Iterator[tuple[int, str]]:
    """Every word, text and sign of a query with its place, without white space and comments."""
    place = 0
    while (token := _TOKEN.match(sql, place)) is not None:
        place = token.end()
        if token["space"] is None:
            yield token.start(), token[0]
        elif token[0] == "/*":
            place = _comment_end(sql, place)


def _comment_end(sql: str, place: int) -> int:
    """Where a comment ends that began before a place: comments may hold others."""
    depth = 1
    while depth and (edge := _EDGE.search(sql, place)) is not None:
        depth += 1 if edge[0] == "/*" else -1
        place = edge.end()
    return len(sql) if depth else place
