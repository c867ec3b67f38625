"""Spark's DDL for schemas, read without Spark.

    schema = column, column, …        or  STRUCT<…> around them
    column = name [:] type [NOT NULL] [COMMENT 'text']

Reads what `pyspark.sql.types.StructType.fromDDL` reads and refuses what it refuses (a test compares them), except
that a lone type without a name is no schema here, and GEOMETRY and GEOGRAPHY are not known.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from headwater.errors import SchemaError
from headwater.schema import types
from headwater.schema.collation import canonical_collation
from headwater.schema.schema import Column, Schema
from headwater.schema.tokens import Token, error_at, tokenize

_SIMPLE: dict[str, types.DataType] = {
    "BOOLEAN": types.Boolean(),
    "BYTE": types.Byte(),
    "TINYINT": types.Byte(),
    "SHORT": types.Short(),
    "SMALLINT": types.Short(),
    "INT": types.Integer(),
    "INTEGER": types.Integer(),
    "LONG": types.Long(),
    "BIGINT": types.Long(),
    "FLOAT": types.Float(),
    "REAL": types.Float(),
    "DOUBLE": types.Double(),
    "BINARY": types.Binary(),
    "DATE": types.Date(),
    "VARIANT": types.Variant(),
    "VOID": types.Void(),
}
_COMMON_ELSEWHERE = {
    "TEXT": "STRING",
    "BOOL": "BOOLEAN",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP",
    "BLOB": "BINARY",
    "BYTES": "BINARY",
    "VARBINARY": "BINARY",
    "BYTEA": "BINARY",
    "INT64": "BIGINT",
    "INT32": "INT",
    "INT8": "BIGINT",
    "INT4": "INT",
    "UUID": "STRING",
    "JSON": "VARIANT",
    "JSONB": "VARIANT",
    "LIST": "ARRAY",
    "FLOAT64": "DOUBLE",
    "NUMBER": "DECIMAL",
    "STR": "STRING",
}
_DAY_TIME = ("DAY", "HOUR", "MINUTE", "SECOND")
_YEAR_MONTH = ("YEAR", "MONTH")
_MAX_INT = 2**31 - 1
_MAX_PRECISION = 38
_MICROSECONDS = 6


def parse(text: str) -> Schema:
    """The schema that the DDL describes; SchemaError with the place, a caret and a hint if it is none."""
    return _parser(text).schema()


def parse_with_defaults(text: str) -> tuple[Schema, dict[str, str]]:
    """The same of a topic, whose columns may have constants behind DEFAULT: those too, by column, as texts.

    A constant is a number, a text, TRUE or FALSE; of other types it is given as a text. NULL is none.
    """
    parser = _parser(text, defaults=True)
    return parser.schema(), parser.defaults


def _parser(text: str, *, defaults: bool = False) -> _Parser:
    if not isinstance(text, str):
        what = f"a schema is DDL text, got {type(text).__name__}"
        raise SchemaError(what, hint="for example 'id BIGINT, name STRING'")
    return _Parser(text, defaults=defaults)


class _Parser:
    """Recursive descent over the tokens; each method reads one construct and leaves the rest."""

    def __init__(self, text: str, *, defaults: bool) -> None:
        self.defaults: dict[str, str] = {}
        self._text = text
        self._takes_defaults = defaults
        self._depth = 0
        self._tokens = list(tokenize(text))
        self._next = 0
        self._readers: dict[str, Callable[[Token], types.DataType]] = {
            "ARRAY": self._array,
            "MAP": self._map,
            "STRUCT": self._struct,
            "DECIMAL": self._decimal,
            "DEC": self._decimal,
            "NUMERIC": self._decimal,
            "STRING": self._string,
            "CHAR": self._char,
            "CHARACTER": self._char,
            "VARCHAR": self._char,
            "TIMESTAMP": self._timestamp,
            "TIMESTAMP_LTZ": self._timestamp,
            "TIMESTAMP_NTZ": self._timestamp,
            "TIME": self._time,
            "INTERVAL": self._interval,
        }

    def schema(self) -> Schema:
        wrapped = self._peek().value.upper() == "STRUCT" and self._peek(1).value == "<"
        if wrapped and self._peek().kind == "word":
            columns = self._struct(self._take()).fields
        elif self._peek().kind == "end":
            columns = ()
        else:
            columns = self._columns()
        if self._peek().kind != "end":
            before = columns[-1].name if columns else "STRUCT<>"
            what = f"unexpected {self._shown()} after {before}"
            raise self._error(self._peek(), what, self._advice_after_column())
        return Schema(columns)

    def _columns(self) -> tuple[Column, ...]:
        columns = [self._column()]
        while self._accept(","):
            columns.append(self._column())
        return tuple(columns)

    def _column(self) -> Column:
        name = self._name()
        self._accept(":")
        column_type = self._type()
        nullable = True
        if self._accept("NOT"):
            self._expect("NULL")
            nullable = False
        if self._takes_defaults and not self._depth and self._accept("DEFAULT"):
            self._default(name)
        return Column(name, column_type, nullable, self._comment())

    def _default(self, name: str) -> None:
        """Read the constant of a column."""
        minus = "-" if self._accept("-") else ""
        token = self._peek()
        is_null = token.kind == "word" and token.value.upper() == "NULL"
        is_word = token.kind == "word" and token.value.upper() in {"TRUE", "FALSE"}
        if not (is_null or is_word or token.kind == "number" or (token.kind == "text" and not minus)):
            hint = "a number, a text, TRUE or FALSE"
            raise self._error(token, f"expected a constant, got {self._shown()}", hint)
        value = minus + self._take().value
        if token.kind == "number" and self._accept("."):
            value += "." + (self._take().value if self._peek().kind == "number" else "0")
        if not is_null:
            self.defaults[name] = value.lower() if is_word else value

    def _name(self) -> str:
        token = self._peek()
        if token.kind in {"word", "name"}:
            return self._take().value
        hint = "put it in back-quotes" if token.kind in {"number", "text"} else "for example `id BIGINT`"
        raise self._error(self._peek(), f"expected a column name, got {self._shown()}", hint)

    def _comment(self) -> str | None:
        if not self._accept("COMMENT"):
            return None
        if self._peek().kind != "text":
            raise self._error(
                self._peek(), f"expected the comment's text, got {self._shown()}", "write COMMENT 'text'"
            )
        text = self._take().value
        while self._peek().kind == "text":
            text += self._take().value
        return text

    def _type(self) -> types.DataType:
        token = self._peek()
        word = token.value.upper() if token.kind == "word" else ""
        if word in _SIMPLE:
            self._take()
            return _SIMPLE[word]
        if word in self._readers:
            return self._readers[word](self._take())
        what = f"unknown type {token.value}" if word else f"expected a type, got {self._shown()}"
        raise self._error(self._peek(), what, self._closest_type(word))

    def _closest_type(self, word: str) -> str:
        if word in _COMMON_ELSEWHERE:
            return f"did you mean {_COMMON_ELSEWHERE[word]}?"
        close = difflib.get_close_matches(word, [*_SIMPLE, *self._readers], n=1)
        return f"did you mean {close[0]}?" if close else "for example BIGINT, STRING or ARRAY<STRING>"

    def _array(self, _: Token) -> types.Array:
        self._expect("<")
        element = self._type()
        self._expect(">")
        return types.Array(element)

    def _map(self, _: Token) -> types.Map:
        self._expect("<")
        key = self._type()
        self._expect(",")
        value = self._type()
        self._expect(">")
        return types.Map(key, value)

    def _struct(self, _: Token) -> types.Struct:
        self._expect("<")
        if self._accept(">"):
            return types.Struct(())
        self._depth += 1
        fields = self._columns()
        self._depth -= 1
        self._expect(">")
        return types.Struct(fields)

    def _decimal(self, word: Token) -> types.Decimal:
        precision, scale = 10, 0
        if self._accept("("):
            precision = self._number()
            if self._accept(","):
                scale = self._number()
            self._expect(")")
        if precision > _MAX_PRECISION:
            raise self._error(word, f"precision {precision} is more than {_MAX_PRECISION}")
        if scale > precision:
            raise self._error(word, f"scale {scale} is more than precision {precision}")
        return types.Decimal(precision, scale)

    def _string(self, _: Token) -> types.String:
        return types.String(self._collation())

    def _char(self, word: Token) -> types.Char | types.Varchar:
        if self._peek().value != "(":
            raise self._error(word, f"{word.value} needs a length", f"write {word.value}(10), or STRING")
        length = self._length()
        kind = types.Varchar if word.value.upper() == "VARCHAR" else types.Char
        return kind(length, self._collation())

    def _collation(self) -> str | None:
        if not self._accept("COLLATE"):
            return None
        first = self._peek()
        parts = [self._name()]
        while self._accept("."):
            parts.append(self._name())
        prefix = [part.upper() for part in parts[:-1]]
        collation = canonical_collation(parts[-1])
        if collation is None or prefix not in ([], ["SYSTEM", "BUILTIN"]):
            hint = "for example UTF8_LCASE, UNICODE_CI or de_CI_AI"
            raise self._error(first, f"unknown collation {'.'.join(parts)}", hint)
        return collation

    def _timestamp(self, word: Token) -> types.Timestamp | types.TimestampNtz:
        if self._peek().value == "(" and self._length() != _MICROSECONDS:
            raise self._error(word, "a timestamp has microseconds, no other precision", "leave it out")
        without_zone = word.value.upper() == "TIMESTAMP_NTZ"
        if word.value.upper() == "TIMESTAMP":
            if self._accept("WITHOUT"):
                without_zone = True
                self._expect("TIME", "ZONE")
            elif self._accept("WITH"):
                self._expect("LOCAL", "TIME", "ZONE")
        return types.TimestampNtz() if without_zone else types.Timestamp()

    def _time(self, word: Token) -> types.Time:
        precision = self._length() if self._peek().value == "(" else 6
        if precision > 9:
            raise self._error(word, f"precision {precision} is more than 9")
        if self._accept("WITHOUT"):
            self._expect("TIME", "ZONE")
        return types.Time(precision)

    def _interval(self, _: Token) -> types.DataType:
        start = self._unit()
        if start is None:
            return types.CalendarInterval()
        end, place = start, self._peek(1)
        if self._accept("TO"):
            end = self._unit() or ""
            units = _DAY_TIME if start in _DAY_TIME else _YEAR_MONTH
            if end not in units or units.index(end) <= units.index(start):
                raise self._error(place, f"an interval cannot go from {start} to {end or place.value}")
        return types.DayTimeInterval(start, end) if start in _DAY_TIME else types.YearMonthInterval(start, end)

    def _unit(self) -> str | None:
        token = self._peek()
        if token.kind == "word" and token.value.upper() in (*_DAY_TIME, *_YEAR_MONTH):
            return self._take().value.upper()
        return None

    def _length(self) -> int:
        self._expect("(")
        length = self._number()
        self._expect(")")
        return length

    def _number(self) -> int:
        token = self._peek()
        if token.kind != "number" or not token.value.isdigit():
            raise self._error(self._peek(), f"expected a whole number, got {self._shown()}")
        if int(token.value) > _MAX_INT:
            raise self._error(self._peek(), f"{token.value} is too large")
        return int(self._take().value)

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._peek()
        self._next += 1
        return token

    def _accept(self, expected: str) -> bool:
        token = self._peek()
        found = token.kind in {"word", "mark"} and token.value.upper() == expected
        self._next += found
        return found

    def _expect(self, *expected: str) -> None:
        for each in expected:
            if not self._accept(each):
                raise self._error(self._peek(), f"expected {each}, got {self._shown()}")

    def _shown(self) -> str:
        token = self._peek()
        return "the end" if token.kind == "end" else repr(token.value)

    def _advice_after_column(self) -> str:
        words = {
            "NULL": "columns are nullable unless they say NOT NULL",
            "NOT": "NOT NULL comes before COMMENT",
            "DEFAULT": "DEFAULT is for the columns of a topic, and comes after NOT NULL and before COMMENT",
            "COLLATE": "COLLATE comes right after STRING",
        }
        return words.get(self._peek().value.upper(), "separate columns with commas")

    def _error(self, at: Token, what: str, hint: str = "") -> SchemaError:
        return error_at(self._text, at.position, what, hint)
