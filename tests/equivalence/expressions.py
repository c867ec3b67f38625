"""A grammar of scalar expressions by kind. No expression can fail at run time, whatever the values are.

A template names the kinds of its holes in braces. `CASE`, `coalesce`, `if` and null checks exist for every kind.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.equivalence.values import ALL, ATOMIC, DDL, ROUGH, literal


@dataclass(frozen=True)
class Column:
    """A column as a query can name it. `name` is the bare word, `reference` may carry an alias."""

    name: str
    kind: str
    reference: str


TEMPLATES: dict[str, tuple[str, ...]] = {
    "int": (
        "({int} + {int})",
        "({int} - {int})",
        "({int} * 2)",
        "negative({int})",
        "abs({int})",
        "({int} % 7)",
        "pmod({int}, 5)",
        "({int} div 3)",
        "({int} & 6)",
        "bit_count({int})",
        "shiftright({int}, 1)",
        "greatest({int}, {int})",
        "least({int}, {int})",
        "nullif({int}, {int})",
        "length({string})",
        "octet_length({binary})",
        "instr({string}, 'a')",
        "ascii({string})",
        "levenshtein({string}, {string})",
        "try_cast({string} AS INT)",
        "year({date})",
        "dayofweek({date})",
        "datediff({date}, {date})",
        "hour({timestamp})",
        "minute({ntz})",
        "extract(DAY FROM {timestamp})",
        "size({ints})",
        "cardinality({words})",
        "size({pairs})",
        "get({ints}, 0)",
        "get({ints}, 1)",
        "array_position({ints}, 1)",
        "array_max({ints})",
        "aggregate({ints}, 0L, (s, x) -> s + coalesce(x, 0))",
        "({pair}).a",
        "({map})['x']",
        "size(map_keys({map}))",
        "CAST({boolean} AS INT)",
        "CAST(round({money}) AS BIGINT)",
        "pmod(hash({string}, {int}), 7)",
        "pmod(xxhash64({pair}, {date}), 11L)",
        "pmod(crc32({binary}), 13)",
    ),
    "wide": (
        "try_add({wide}, {int})",
        "try_subtract({wide}, {wide})",
        "try_multiply({wide}, 2)",
        "xxhash64({string}, {wide})",
        "greatest({wide}, {int})",
        "(~{wide})",
        "unix_micros({timestamp})",
    ),
    "money": (
        "({money} + {money})",
        "({money} - {int})",
        "({money} * 2)",
        "abs({money})",
        "round({money}, 1)",
        "bround({money}, 0)",
        "ceil({money}, 1)",
        "CAST({int} AS DECIMAL(20,2))",
        "try_divide({money}, {int})",
        "greatest({money}, {money})",
        "try_cast({string} AS DECIMAL(12,2))",
    ),
    "fine": (
        "({fine} + {fine})",
        "({fine} - {money})",
        "try_multiply({fine}, 2)",
        "CAST({money} AS DECIMAL(38,18))",
        "abs({fine})",
        "least({fine}, {fine})",
    ),
    "double": (
        "({double} + {double})",
        "({double} * 2.5D)",
        "abs({double})",
        "sqrt({double})",
        "round({double}, 1)",
        "nanvl({double}, 1.0D)",
        "CAST(abs({int}) AS DOUBLE)",
        "CAST(abs({money}) AS DOUBLE)",
        "try_divide({double}, 4.0D)",
        "greatest({double}, {double})",
    ),
    "string": (
        "concat({string}, {string})",
        "({string} || '!')",
        "concat_ws('-', {string}, {string})",
        "upper({string})",
        "lower({string})",
        "initcap({string})",
        "reverse({string})",
        "trim({string})",
        "substring({string}, 2, 3)",
        "lpad({string}, 5, '.')",
        "replace({string}, 'a', 'zz')",
        "translate({string}, 'ab', 'ba')",
        "regexp_replace({string}, '[aeiou]', '*')",
        "split_part({string}, ',', 1)",
        "nullif({string}, '')",
        "CAST({int} AS STRING)",
        "CAST({money} AS STRING)",
        "CAST({fine} AS STRING)",
        "CAST({double} AS STRING)",
        "CAST({timestamp} AS STRING)",
        "CAST({date} AS STRING)",
        "CAST({boolean} AS STRING)",
        "date_format({timestamp}, 'yyyy-MM-dd HH:mm')",
        "array_join({words}, '|', '?')",
        "get({words}, 1)",
        "({pair}).b",
        "to_json({pair})",
        "to_json({ints})",
        "hex({binary})",
        "base64({binary})",
        "md5({binary})",
        "substring(sha2({string}, 256), 1, 8)",
        "elt(pmod({int}, 2) + 1, 'even', 'odd')",
    ),
    "boolean": (
        "({int} {compared} {int})",
        "({wide} {compared} {wide})",
        "({money} {compared} {money})",
        "({fine} {compared} {int})",
        "({double} {compared} {double})",
        "({string} {compared} {string})",
        "({date} {compared} {date})",
        "({timestamp} {compared} {timestamp})",
        "({ntz} {compared} {ntz})",
        "({binary} {compared} {binary})",
        "({pair} <=> {pair})",
        "({boolean} AND {boolean})",
        "({boolean} OR {boolean})",
        "(NOT {boolean})",
        "({int} IN (0, 1, 2))",
        "({string} NOT IN ('a', '', 'ß'))",
        "({int} BETWEEN -1 AND 4)",
        "({string} LIKE '%a%')",
        "({string} RLIKE '^[a-z]')",
        "startswith({string}, 'a')",
        "isnan({double})",
        "array_contains({ints}, 1)",
        "exists({ints}, x -> x > 2)",
        "forall({words}, w -> length(w) < 3)",
        "arrays_overlap({ints}, {ints})",
        "map_contains_key({map}, 'y')",
    ),
    "date": (
        "date_add({date}, 3)",
        "date_sub({date}, 1)",
        "add_months({date}, 1)",
        "last_day({date})",
        "next_day({date}, 'MON')",
        "trunc({date}, 'MM')",
        "CAST({timestamp} AS DATE)",
        "CAST({ntz} AS DATE)",
        "try_cast({string} AS DATE)",
    ),
    "timestamp": (
        "({timestamp} + INTERVAL 90 MINUTES)",
        "date_trunc('hour', {timestamp})",
        "date_trunc('DAY', {timestamp})",
        "CAST({date} AS TIMESTAMP)",
        "CAST({ntz} AS TIMESTAMP)",
        "timestamp_seconds({int})",
        "greatest({timestamp}, {timestamp})",
    ),
    "ntz": (
        "({ntz} - INTERVAL '1' DAY)",
        "CAST({timestamp} AS TIMESTAMP_NTZ)",
        "CAST({date} AS TIMESTAMP_NTZ)",
        "least({ntz}, {ntz})",
    ),
    "binary": (
        "encode({string}, 'utf-8')",
        "concat({binary}, {binary})",
        "substring({binary}, 1, 1)",
        "unhex(hex({string}))",
    ),
    "ints": (
        "array({int}, {int})",
        "transform({ints}, x -> x + 1)",
        "filter({ints}, x -> x > 0)",
        "sort_array({ints})",
        "slice({ints}, 1, 2)",
        "array_distinct({ints})",
        "array_compact({ints})",
        "concat({ints}, {ints})",
        "sequence(1, CAST(pmod({int}, 3) + 1 AS INT))",
        "transform({pairs}, p -> p.a)",
    ),
    "words": (
        "split({string}, ',')",
        "array({string}, {string})",
        "transform({words}, w -> upper(w))",
        "array_union({words}, {words})",
        "array_sort(map_keys({map}))",
    ),
    "pair": (
        "named_struct('a', {int}, 'b', {string})",
        "struct({int} AS a, {string} AS b)",
        "get({pairs}, 0)",
    ),
    "pairs": ("array({pair}, {pair})", "slice({pairs}, 1, 1)", "filter({pairs}, p -> p.a > 0)"),
    "map": (
        "map('x', {int}, 'y', {int})",
        "map_filter({map}, (k, v) -> v > 0)",
        "transform_values({map}, (k, v) -> v + 1)",
        "map_from_arrays(array('x', 'q'), array({int}, {int}))",
    ),
}
_ANY_KIND = (
    "CASE WHEN {boolean} THEN {same} ELSE {same} END",
    "CASE WHEN {boolean} THEN {same} END",
    "coalesce({same}, {same})",
    "if({boolean}, {same}, {same})",
)
_BRIDGES = {
    "boolean": "({} IS NOT NULL)",
    "int": "pmod(hash({}), 5)",
    "wide": "pmod(xxhash64({}), 3L)",
    "money": "CAST(pmod(hash({}), 9) AS DECIMAL(12,2))",
    "fine": "CAST(pmod(hash({}), 4) AS DECIMAL(38,18))",
    "double": "CAST(pmod(hash({}), 4) AS DOUBLE)",
    "string": "CAST({} AS STRING)",
    "date": "date_add(DATE'2024-03-28', pmod(hash({}), 6))",
    "timestamp": "timestamp_seconds(pmod(hash({}), 6))",
    "ntz": "CAST(timestamp_seconds(pmod(hash({}), 6)) AS TIMESTAMP_NTZ)",
    "binary": "encode(CAST({} AS STRING), 'utf-8')",
    "ints": "array(pmod(hash({}), 5), 1)",
    "words": "split(CAST({} AS STRING), '0')",
    "pair": "named_struct('a', pmod(hash({}), 5), 'b', 'b')",
    "map": "map('x', pmod(hash({}), 5))",
}
_NULL_CHECKS = ("({any} IS NULL)", "({any} IS NOT NULL)")
_COMPARED = ("=", "<", ">=", "<>", "<=>")
_HOLE = re.compile(r"\{(\w+)\}")


def _share(template: str, kinds: set[str]) -> float:
    """How much of a template can be filled with columns."""
    holes = [hole for hole in _HOLE.findall(template) if hole in DDL]
    return sum(hole in kinds for hole in holes) / len(holes) if holes else 1.0


class Expressions:
    """Expressions over the columns of one scope."""

    def __init__(self, chance: random.Random, columns: Sequence[Column]) -> None:
        self.chance = chance
        self.columns = columns

    def of(self, kind: str, depth: int = 2) -> str:
        """An expression of that kind; columns are preferred to constants."""
        found = self.named(kind)
        if depth > 0 and not (found and self.chance.random() < 0.35):
            return self.filled(self._template(kind), depth, kind)
        if found and self.chance.random() < 0.93:
            return self.chance.choice(found).reference
        return self.bridge(kind) if not found and self.chance.random() < 0.85 else literal(self.chance, kind)

    def bridge(self, kind: str) -> str:
        """An expression over a column of another kind, so that little depends on constants alone."""
        atomic = [column for column in self.columns if column.kind in ATOMIC]
        if not atomic or kind not in _BRIDGES:
            return literal(self.chance, kind)
        return _BRIDGES[kind].format(self.chance.choice(atomic).reference)

    def filled(self, template: str, depth: int, kind: str = "int") -> str:
        """The template with every hole filled by a smaller expression."""
        return _HOLE.sub(lambda hole: self._hole(hole[1], depth - 1, kind), template)

    def any(self, depth: int) -> tuple[str, str]:
        """An expression of a kind that the columns suggest, and the kind."""
        kinds = [column.kind for column in self.columns if column.kind != ROUGH]
        kind = self.chance.choice(kinds) if kinds and self.chance.random() < 0.75 else self.chance.choice(ALL)
        return self.of(kind, depth), kind

    def named(self, kind: str) -> list[Column]:
        """The columns of a kind."""
        return [column for column in self.columns if column.kind == kind]

    def _template(self, kind: str) -> str:
        if kind == "boolean" and self.chance.random() < 0.15:
            return self.chance.choice(_NULL_CHECKS)
        if self.chance.random() < 0.2:
            return self.chance.choice(_ANY_KIND)
        kinds = {column.kind for column in self.columns}
        some = self.chance.choices(TEMPLATES[kind], k=3)
        return max(some, key=lambda template: _share(template, kinds))

    def _hole(self, hole: str, depth: int, kind: str) -> str:
        if hole == "compared":
            return self.chance.choice(_COMPARED)
        if hole == "any":
            return self.any(depth)[0]
        return self.of(kind if hole == "same" else hole, depth)
