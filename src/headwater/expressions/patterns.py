r"""Regular expressions that mean the same to Java, which Spark asks, and to RE2, which Arrow asks.

They are made of characters, classes of characters, groups, alternatives, `^`, and repetitions of one character or
class; for texts of ASCII. All else is left to Spark: what a dot or `\s` covers, ends of lines, repeated groups.
"""

from __future__ import annotations

import re

_CHARACTER = r"[A-Za-z0-9_=&/:;,@%!~<>#\"' -]|\\[./?*+|()\[\]{}$^\\-]|\\[dw]"
_IN_CLASS = r"A-Z|a-z|0-9|[A-Za-z0-9_=&/:;,@%!~<>#\"' .?*+|()]|\\[dw\]\\-]"
_CLASS = rf"\[\^?(?:{_IN_CLASS})+\]"
_TOKEN = re.compile(rf"(?P<one>(?:{_CHARACTER}|{_CLASS})(?:[*+?](?![*+?]))?)|(?P<open>\()|(?P<close>\))|[|^]")
_NAMED = "(?P<found>"


def is_plain(pattern: str) -> bool:
    """Whether it is one of these."""
    place = depth = 0
    while (token := _TOKEN.match(pattern, place)) is not None:
        place = token.end()
        depth += (token["open"] is not None) - (token["close"] is not None)
        if depth < 0:
            return False
    return place == len(pattern) and depth == 0 and "&&" not in pattern


def groups(pattern: str) -> int:
    """How many groups a plain pattern has."""
    return sum(token["open"] is not None for token in _TOKEN.finditer(pattern))


def only_group(pattern: str, number: int) -> str:
    """A plain pattern in which one group has a name, and no other is told; 0 is all of it."""
    opened = 0

    def told(token: re.Match[str]) -> str:
        nonlocal opened
        if token["open"] is None:
            return token[0]
        opened += 1
        return _NAMED if opened == number else "(?:"

    made = _TOKEN.sub(told, pattern)
    return made if number else f"{_NAMED}{made})"
