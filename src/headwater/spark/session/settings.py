"""Spark's settings: which are ours, which a pipeline may have, which are taken from the machine. Imports no Spark.

A view means the same wherever it is computed. So our sessions take no `spark.sql.*` setting from a
`spark-defaults.conf`, nor from a session of the user's: each is at Spark's default, or pinned here, or given with
the pipeline and stored with it. Only `MACHINE` may differ between processes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from headwater.errors import HeadwaterError
from headwater.store import Store

SQL = "spark.sql."
ANSI = "spark.sql.ansi.enabled"
ZONE = "spark.sql.session.timeZone"
KEPT = "pipeline.spark"
"""Under this name the store keeps the settings that a pipeline was given."""

PINNED: Mapping[str, tuple[str, str]] = {
    "spark.sql.timeType.enabled": ("true", "TIME is a type of columns"),
    "spark.sql.execution.arrow.pyspark.enabled": ("true", "rows go to Spark and back as Arrow"),
    "spark.sql.variable.substitute": ("false", "`${env:HOME}` in a query is another text in each process"),
    "spark.sql.artifact.isolation.enabled": ("false", "functions find the modules of the program"),
    "spark.sql.runSQLOnFiles": ("false", "a view reads topics and views, not files"),
}
"""Settings that are as we need them, with the reason."""

MACHINE: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "how many tasks share a large change",
    "spark.sql.broadcastTimeout": "how long to wait",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "how much a task gets",
    "spark.sql.adaptive.coalescePartitions.enabled": "whether small tasks are joined",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "which tasks are small",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "whether small tasks are joined",
    "spark.sql.adaptive.skewJoin.enabled": "whether large tasks are split",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "which tasks are large",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "which tasks are large",
    "spark.sql.cartesianProductExec.buffer.in.memory.threshold": "when rows are spilled to disk",
    "spark.sql.cartesianProductExec.buffer.spill.threshold": "when rows are spilled to disk",
    "spark.sql.sessionWindow.buffer.in.memory.threshold": "when rows are spilled to disk",
    "spark.sql.sessionWindow.buffer.spill.threshold": "when rows are spilled to disk",
    "spark.sql.sortMergeJoinExec.buffer.in.memory.threshold": "when rows are spilled to disk",
    "spark.sql.sortMergeJoinExec.buffer.spill.threshold": "when rows are spilled to disk",
    "spark.sql.windowExec.buffer.in.memory.threshold": "when rows are spilled to disk",
    "spark.sql.windowExec.buffer.spill.threshold": "when rows are spilled to disk",
}
"""What belongs to the machine: how fast, never what. Taken from spark-defaults.conf or whoever started Spark."""

OURS: Mapping[str, str] = {
    ZONE: "the time zone is the pipeline's own: Pipeline(timezone=…)",
    "spark.sql.timestampType": "TIMESTAMP in a schema is a moment: write TIMESTAMP_NTZ for the other",
    "spark.sql.optimizer.": "the operators of views are made from what these rules give",
    "spark.sql.analyzer.": "the operators of views are made from what these rules give",
    "spark.sql.cbo.": "the operators of views are made from what these rules give",
    "spark.sql.planChange": "plans are not logged or checked differently",
    "spark.sql.execution.arrow.": "rows go to Spark and back as Arrow",
    "spark.sql.execution.pyspark.": "Spark's Python workers are ours",
    "spark.sql.catalog": "names in SQL are those of the pipeline's topics and views",
    "spark.sql.defaultCatalog": "names in SQL are those of the pipeline's topics and views",
    "spark.sql.debug": "Headwater reads plans as Spark prints them",
    "spark.sql.maxMetadataStringLength": "Headwater reads plans as Spark prints them",
    "spark.sql.maxPlanStringLength": "Headwater reads plans as Spark prints them",
    **{key: reason for key, (_, reason) in PINNED.items()},
}
"""Settings, or beginnings of their names, that no pipeline may have otherwise, with the reason."""

_PROCESS: Mapping[str, str] = {
    "spark.master": "give it as Pipeline(master=…)",
    "spark.app.name": "it is the pipeline's name",
    "spark.python.daemon.module": "Spark's Python workers are ours",
}
_NAME = re.compile(r"spark\.[\w.\-]*\w")
_SECRET = re.compile(r"secret|passw|token|credential|access.?key", re.IGNORECASE)


def checked_settings(given: object) -> dict[str, str] | None:
    """Settings as texts; None if none were given. An error for what no pipeline may have; values are never told."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        msg = f"spark is a dict of Spark's settings, not {type(given).__name__}"
        raise HeadwaterError(msg, hint="write it like spark={'spark.driver.memory': '4g'}")
    return {_checked_name(key): _text(key, value) for key, value in given.items()}


def _checked_name(key: object) -> str:
    if not isinstance(key, str) or not _NAME.fullmatch(key):
        msg = f"{key!r} is not a setting of Spark's"
        raise HeadwaterError(msg, hint="their names begin with spark.")
    reasons = [reason for name, reason in (*_PROCESS.items(), *OURS.items()) if _is_of(key, name)]
    if reasons:
        msg = f"{key} cannot be given: {reasons[0]}"
        raise HeadwaterError(msg, where=f"spark={{{key!r}: …}}", hint="leave it out")
    return key


def _is_of(key: str, name: str) -> bool:
    return key == name or (name not in PINNED and name not in _PROCESS and name != ZONE and key.startswith(name))


def _text(key: object, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        msg = f"{key} is given as {type(value).__name__}"
        raise HeadwaterError(msg, hint="give a text, a number or True or False")
    return str(value)


def meant(given: Mapping[str, str]) -> dict[str, str]:
    """Those of the settings that an answer may depend on, in order."""
    return {key: given[key] for key in sorted(given) if key.startswith(SQL) and key not in MACHINE}


def kept_settings(store: Store) -> dict[str, str]:
    """The settings that a pipeline's views mean."""
    found: dict[str, str] = json.loads(store.kept(KEPT) or "{}")
    return found


def is_secret(key: str) -> bool:
    """Whether a setting must not be seen by others, as in the arguments of a process."""
    return _SECRET.search(key) is not None
