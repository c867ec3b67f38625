"""Random values, and SQL literals, of the kinds that the campaign's columns have.

A kind is a family of Spark types together with a promise about its values that keeps every generated query free of
run-time errors in ANSI mode:

    int      INT or BIGINT of modest size, so that sums and small products fit
    wide     BIGINT up to both ends; never summed
    money    decimals of few digits            fine     decimals of 38 digits, 18 of them after the point
    double   never negative (so that sums of different order agree within 1e-9), with NaN, infinity and -0.0
    rough    a double that depends on the order of its inputs: it may be shown, and nothing else
"""

from __future__ import annotations

import datetime as dt
import decimal
import random
from typing import Any

from headwater.schema.types import quote_text

DDL = {
    "int": "INT",
    "wide": "BIGINT",
    "money": "DECIMAL(12,2)",
    "fine": "DECIMAL(38,18)",
    "double": "DOUBLE",
    "string": "STRING",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "ntz": "TIMESTAMP_NTZ",
    "binary": "BINARY",
    "ints": "ARRAY<INT>",
    "words": "ARRAY<STRING>",
    "pair": "STRUCT<a: INT, b: STRING>",
    "pairs": "ARRAY<STRUCT<a: INT, b: STRING>>",
    "map": "MAP<STRING, INT>",
}
ROUGH = "rough"
ATOMIC = ("int", "wide", "money", "fine", "double", "string", "boolean", "date", "timestamp", "ntz", "binary")
GROUPABLE = (*ATOMIC, "ints", "words", "pair")
ALL = tuple(DDL)

_STRINGS = (
    "",
    "a",
    "b",
    "c",
    "A",
    "ab",
    "a,b",
    "b,,a",
    "héllo",
    "ß",
    "日本",
    " x ",
    "x'y",
    "10",
    "-3",
    "🙂",
    "\\n",
)
_DOUBLES = (0.0, -0.0, 0.1, 0.2, 0.3, 0.7, 1.0, 1.5, 2.5, 3.3, 1e6, float("nan"), float("inf"))
_DAYS = (dt.date(1582, 10, 15), dt.date(1970, 1, 1), dt.date(2024, 2, 29))
_START = dt.datetime(2024, 3, 30, 20, tzinfo=dt.UTC)  # the night in which Oslo's clocks change


def value(chance: random.Random, kind: str, *, nulls: float = 0.15) -> Any:
    """A value for a column, as Python has it; None now and then."""
    if chance.random() < nulls:
        return None
    return _nested(chance, kind) if kind in {"ints", "words", "pair", "pairs", "map"} else _atomic(chance, kind)


def _atomic(chance: random.Random, kind: str) -> Any:
    seldom = chance.random() < 0.2
    match kind:
        case "int":
            return chance.randint(-1000, 1000) if seldom else chance.randint(-2, 5)
        case "wide":
            return chance.choice([2**63 - 1, -(2**63), 2**53 + 1, 0]) if seldom else chance.randint(0, 4)
        case "money":
            return (
                decimal.Decimal(chance.randint(-9_999_999, 9_999_999) if seldom else chance.randint(-3, 9) * 25)
                / 100
            )
        case "fine":
            return _fine(chance)
        case "double":
            return chance.choice(_DOUBLES)
        case "string":
            return chance.choice(_STRINGS)
        case "boolean":
            return chance.random() < 0.5
        case "date":
            return (
                chance.choice(_DAYS) if seldom else dt.date(2024, 3, 28) + dt.timedelta(days=chance.randint(0, 6))
            )
        case "timestamp":
            return _instant(chance, seldom)
        case "ntz":
            return _instant(chance, seldom).replace(tzinfo=None)
        case "binary":
            return chance.choice([b"", b"\0", b"a", b"\xff\xfe", b"abc"])
    raise KeyError(kind)


def _fine(chance: random.Random) -> decimal.Decimal:
    if chance.random() < 0.4:
        return decimal.Decimal(chance.randint(-3, 5))
    whole, rest = chance.randint(-(10**12), 10**12), chance.randrange(10**18)
    sign = "-" if whole < 0 else ""
    return decimal.Decimal(f"{sign}{abs(whole)}.{rest:018d}")


def _instant(chance: random.Random, seldom: bool) -> dt.datetime:
    if seldom:
        return dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)
    return _START + dt.timedelta(minutes=30 * chance.randint(0, 12), microseconds=chance.choice([0, 0, 1]))


def _nested(chance: random.Random, kind: str) -> Any:
    match kind:
        case "ints":
            return [value(chance, "int") for _ in range(chance.choice([0, 1, 2, 2, 3]))]
        case "words":
            return [value(chance, "string") for _ in range(chance.choice([0, 1, 2, 2, 3]))]
        case "pair":
            return {"a": value(chance, "int"), "b": value(chance, "string")}
        case "pairs":
            return [value(chance, "pair") for _ in range(chance.choice([0, 1, 2]))]
        case "map":
            return {name: value(chance, "int") for name in ("x", "y", "z") if chance.random() < 0.6}
    raise KeyError(kind)


def literal(chance: random.Random, kind: str) -> str:
    """A value of that kind as SQL, null now and then."""
    if kind == "pairs":
        return f"array({literal(chance, 'pair')})"
    found = value(chance, kind, nulls=0.08)
    return f"CAST(NULL AS {DDL[kind]})" if found is None else _written(kind, found)


def _written(kind: str, found: Any) -> str:
    match kind:
        case "int":
            return str(found) if found >= 0 else f"({found})"
        case "string":
            return quote_text(found)
        case "boolean":
            return str(found).upper()
        case "date":
            return f"DATE'{found}'"
        case "timestamp":
            return f"TIMESTAMP'{found:%Y-%m-%d %H:%M:%S.%f}Z'"
        case "ntz":
            return f"TIMESTAMP_NTZ'{found:%Y-%m-%d %H:%M:%S.%f}'"
        case "binary":
            return f"X'{found.hex()}'"
        case "ints" | "words":
            parts = [
                "NULL" if part is None else _written("int" if kind == "ints" else "string", part) for part in found
            ]
            return f"CAST(array({', '.join(parts)}) AS {DDL[kind]})"
        case "pair":
            a = "NULL" if found["a"] is None else _written("int", found["a"])
            b = "NULL" if found["b"] is None else _written("string", found["b"])
            return f"CAST(named_struct('a', {a}, 'b', {b}) AS {DDL[kind]})"
        case "map":
            parts = [
                f"'{name}', {'NULL' if part is None else _written('int', part)}" for name, part in found.items()
            ]
            return f"CAST(map({', '.join(parts)}) AS {DDL[kind]})"
    return f"CAST('{found}' AS {DDL[kind]})"
