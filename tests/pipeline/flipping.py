"""Every setting of Spark's SQL with another value than its default, and queries that notice some of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

_OTHERS = ("LEGACY", "LAST_WIN", "TIMESTAMP_NTZ", "HEX", "INTERPRETED", "1", "2", "true", "other")
_found: dict[str, str] = {}
_LEFT = {
    "spark.sql.legacy.sessionInitWithConfigDefaults": "Headwater refuses to work with it",
    "spark.sql.restrictedMode.enabled": "it only forbids",
    "spark.sql.streaming.ui.enabled": "needs a page that is not there",
}

PROBES: dict[str, tuple[str, str]] = {
    "spark.sql.jsonGenerator.ignoreNullFields": (
        "false",
        "SELECT to_json(struct(a)) AS x, count(*) AS n FROM t GROUP BY 1",
    ),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("true", 'SELECT "a" AS x FROM t'),
    "spark.sql.ansi.enabled": ("false", "SELECT typeof('1' + id) AS x FROM t"),
    "spark.sql.caseSensitive": ("true", "SELECT ID AS x FROM t"),
    "spark.sql.groupByOrdinal": ("false", "SELECT a AS x, count(*) AS n FROM t GROUP BY 1"),
    "spark.sql.orderByOrdinal": (
        "false",
        "SELECT * FROM (SELECT id AS x FROM t UNION ALL SELECT 99) ORDER BY 1 DESC LIMIT 1",
    ),
    "spark.sql.groupByAliases": ("false", "SELECT k || 'x' AS x, count(*) AS n FROM t GROUP BY x"),
    "spark.sql.legacy.setopsPrecedence.enabled": (
        "true",
        "SELECT id AS x FROM t UNION SELECT 7 INTERSECT SELECT 8",
    ),
    "spark.sql.decimalOperations.allowPrecisionLoss": (
        "false",
        "SELECT typeof(CAST(id AS DECIMAL(38, 10)) * CAST(id AS DECIMAL(38, 10))) AS x FROM t",
    ),
    "spark.sql.parser.escapedStringLiterals": ("true", r"SELECT length('\t') AS x FROM t"),
    "spark.sql.legacy.negativeIndexInArrayInsert": ("true", "SELECT array_insert(array(1, 2), -1, id) AS x FROM t"),
    "spark.sql.legacy.castComplexTypesToString.enabled": ("true", "SELECT CAST(struct(id) AS STRING) AS x FROM t"),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": ("true", "SELECT typeof(1E2) AS x FROM t"),
    "spark.sql.chunkBase64String.enabled": ("false", "SELECT base64(repeat(k, 100)) AS x FROM t"),
    "spark.sql.function.concatBinaryAsString": (
        "true",
        "SELECT typeof(concat(CAST(k AS BINARY), CAST(k AS BINARY))) AS x FROM t",
    ),
    "spark.sql.lateralColumnAlias.enableImplicitResolution": ("false", "SELECT id + 1 AS y, y + 1 AS x FROM t"),
    "spark.sql.legacy.truncateForEmptyRegexSplit": ("true", "SELECT split(k || 'yz', '', 2) AS x FROM t"),
    "spark.sql.legacy.createEmptyCollectionUsingStringType": ("true", "SELECT typeof(array()) AS x FROM t"),
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": (
        "false",
        "SELECT exists(array(id, NULL), y -> y > 100) AS x FROM t",
    ),
    "spark.sql.legacy.statisticalAggregate": ("true", "SELECT id AS y, var_samp(id) AS x FROM t GROUP BY id"),
    "spark.sql.operatorPipeSyntaxEnabled": ("false", "FROM t |> SELECT id AS x"),
    "spark.sql.session.timeZone": ("Asia/Tokyo", "SELECT hour(at) AS x FROM t"),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ", "SELECT typeof(TIMESTAMP '2026-01-01 00:00:00') AS x FROM t"),
    "spark.sql.legacy.ctePrecedencePolicy": (
        "LEGACY",
        "WITH q AS (SELECT 1 AS x), r AS (WITH q AS (SELECT 2 AS x) SELECT * FROM q) SELECT r.x, t.id FROM r, t",
    ),
}
"""A setting, another value of it, and a query whose answer is another with that."""


def entries(session: SparkSession) -> Iterator[Any]:
    """Everything that Spark's SQL can be set to."""
    registry: Any = getattr(getattr(session._jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")  # type: ignore[union-attr]
    yield from registry.getConfigEntries().toArray()


def flipped(session: SparkSession) -> dict[str, str]:
    """Every setting that a session may have, at another value than its default if one can be found."""
    if _found:
        return dict(_found)
    scratch = session.newSession()
    conf: Any = scratch._jsparkSession.sessionState().conf()
    found = _found
    for entry in entries(session):
        key, default = entry.key(), entry.defaultValueString()
        if key in _LEFT or not key.startswith("spark.sql."):
            continue
        if not conf.isModifiable(key):
            if default in {"true", "false"}:
                found[key] = _opposite(default)
            continue
        for value in _candidates(key, default):
            try:
                conf.setConfString(key, value)
            except Exception:
                continue
            found[key] = value
            break
    return dict(found)


def _candidates(key: str, default: str) -> list[str]:
    if key in PROBES:
        return [PROBES[key][0]]
    if default in {"true", "false"}:
        return [_opposite(default)]
    if default.isdigit():
        return [str(int(default) + 1), "1", "2"]
    return [each for each in _OTHERS if each != default]


def _opposite(default: str) -> str:
    return "false" if default == "true" else "true"
