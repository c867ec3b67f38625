"""The words of DDL: Spark's lexical rules, as far as a schema needs them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headwater.errors import SchemaError

_SPACE = re.compile(r"[\s\u00a0\u3000]+")
_LINE_COMMENT = re.compile(r"--(?:\\\n|[^\r\n])*")
_WORD = re.compile(r"[A-Za-z0-9_]+")
_NUMBER = re.compile(r"\d+(?:E\d+)?(?:F|D|BD)?\Z|\d+[LSY]\Z", re.IGNORECASE)
_QUOTED_NAME = re.compile(r"`((?:[^`]|``)*)`")
_TEXT = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""", re.DOTALL)
_RAW_TEXT = re.compile(r"""[rR](?:'([^']*)'|"([^"]*)")""")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


@dataclass(frozen=True)
class Token:
    """One word of the text.

    `kind` is `word`, `number`, `name` (in back-quotes), `text` (a string literal), `mark` (one character) or
    `end`; `value` is what it means; `position` counts characters from 0.
    """

    kind: str
    value: str
    position: int


def error_at(text: str, position: int, what: str, hint: str = "") -> SchemaError:
    """An error that shows the line of the text with a caret below the place."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)]
    left = max(0, position - start - 60)
    snippet = line[left : left + 100]
    caret = " " * (position - start - left) + "^"
    number = text.count("\n", 0, position) + 1
    place = f"line {number}, character {position - start + 1}"
    return SchemaError(f"{what}\n  {snippet}\n  {caret}\n", where=place, hint=hint)


def tokenize(text: str) -> Iterator[Token]:
    """The tokens of the text, ending with one of kind `end`; SchemaError where no token begins."""
    position = 0
    while (position := _skip(text, position)) < len(text):
        token, position = _next(text, position)
        yield token
    yield Token("end", "", len(text))


def _skip(text: str, position: int) -> int:
    """The position after blanks and comments."""
    while True:
        if match := _SPACE.match(text, position) or _LINE_COMMENT.match(text, position):
            position = match.end()
        elif text.startswith("/*", position) and not text.startswith("/*+", position):
            position = _after_comment(text, position)
        else:
            return position


def _after_comment(text: str, start: int) -> int:
    depth, position = 1, start + 2
    while depth:
        opening, closing = text.find("/*", position), text.find("*/", position)
        if closing < 0:
            raise error_at(text, start, "this comment is not closed", "end it with */")
        nested = 0 <= opening < closing
        depth += 1 if nested else -1
        position = (opening if nested else closing) + 2
    return position


def _next(text: str, position: int) -> tuple[Token, int]:
    if match := _RAW_TEXT.match(text, position):
        return Token("text", match[1] if match[1] is not None else match[2], position), match.end()
    if match := _WORD.match(text, position):
        kind = "number" if _NUMBER.match(match[0]) else "word"
        return Token(kind, match[0], position), match.end()
    if match := _QUOTED_NAME.match(text, position):
        return Token("name", match[1].replace("``", "`"), position), match.end()
    if match := _TEXT.match(text, position):
        return Token("text", _unescape(match[0]), position), match.end()
    character = text[position]
    if character in "`'\"":
        raise error_at(text, position, f"this {character} is not closed", f"end it with {character}")
    if character in "<>(),:." or (character == "-" and text[position + 1 : position + 2].isdigit()):
        return Token("mark", character, position), position + 1
    raise error_at(text, position, f"unexpected {character!r}", "put unusual names in back-quotes: `my name`")


def _unescape(literal: str) -> str:
    quote = literal[0]
    return _ESCAPE.sub(_meaning, _doubled_to_escape(literal[1:-1], quote))


def _doubled_to_escape(body: str, quote: str) -> str:
    """The body with each doubled quote escaped instead; quotes behind a backslash stay as they are."""
    return re.sub(rf"(\\.)|{quote}{quote}", lambda m: m[1] or f"\\{quote}", body, flags=re.DOTALL)


def _meaning(match: re.Match[str]) -> str:
    short, long, octal, other = match.groups()
    if short or long:
        code = int(short or long, 16)
        return chr(code) if code <= 0x10FFFF else match[0][1:]
    return chr(int(octal, 8)) if octal else _ESCAPED.get(other, other)
