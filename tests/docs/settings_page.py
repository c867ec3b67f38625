"""Makes docs/settings.md from what Spark itself says: `python -m tests.docs.settings_page`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from headwater.spark.session.settings import ANSI, MACHINE, OURS, PINNED, SQL
from headwater.spark.session.start import start
from tests.pipeline.flipping import entries

PAGE = Path(__file__).parent.parent.parent / "docs" / "settings.md"

ELSEWHERE = {
    "files and tables of Spark's own, which no view reads or writes": "addPartitionInBatch. avro. bucketing. "
    "csv.filterPushdown csv.parser dataSource. defaultColumn. defaultPath fileSource. files. filesourceTable "
    "generatedColumn. hive. insertInto insertNested json.filterPushdown json.useUnsafeRow kafka. "
    "legacy.allowEmptySchemaWrite legacy.allowNonEmptyLocation legacy.avro. legacy.bucketedTableScan "
    "legacy.createHiveTable legacy.dataFrameWriter legacy.db2. legacy.hive legacy.jdbc. legacy.mssqlserver. "
    "legacy.mysql. legacy.oracle. legacy.parquet. legacy.postgres. legacy.readFileSource legacy.replaceDatabricks "
    "legacy.skipTypeValidation maxConcurrentOutput mergeNested metadataCacheTTL orc. parquet. "
    "python.filterPushdown sources. statistics. storeAssignment timeTravel truncateTable "
    "variant.allowReadingShredded variant.forceShredding variant.inferShredding variant.pushVariant "
    "variant.shredding variant.writeShredding warehouse.",
    "streaming queries, servers and programs of Spark's own": "artifact. cache. cli. connect. dataframeCache. "
    "defaultCacheStorageLevel inMemoryColumnarStorage. inMemoryTableScan maven. pipelines. repl. scripting. "
    "session.localRelation streaming. thriftServer. thriftserver.",
    "what is shown or logged": "adaptive.logLevel codegen.comments codegen.log dataFrameQueryContext error. event. "
    "expressionTreeChangeLog. extendedExplain nameResolutionLog. pyspark. queryExecutionListeners redaction. "
    "stackTraces ui.",
}
"""Beginnings of the names of settings that no answer can depend on, by what they are about."""

HEAD = """# Settings of Spark's

<!-- made by `python -m tests.docs.settings_page`; a test compares it with the Spark that runs -->

A view means the same in every process. So Headwater works in Spark sessions of its own, also in a program that has
one already. They have none of the program's tables, temporary views, functions, extensions and `spark.sql.*`
settings, and none of a `spark-defaults.conf`: each setting is at Spark's default, or pinned, or given with the
pipeline:

```text
shop = hw.Pipeline("shop", spark={"spark.sql.mapKeyDedupPolicy": "LAST_WIN", "spark.driver.memory": "4g"})
```

- What an answer may depend on is kept with the pipeline, and holds in every process that opens it without `spark`,
  on the command line too, and for `assert_same_as_batch`. `spark={}` goes back to the defaults.
- The dict is taken as a whole. With other settings than those kept all views are built again at the next tick, and
  a warning says so. Only the driver may change them: while another process drives, it is `LeaseHeld`; one that was
  opened before gets `DeclarationChanged` and opens the pipeline again.
- What is not of `spark.sql.` is for starting Spark and is never kept; where Spark runs already it stays as it is.
  Names with `secret`, `password`, `token`, `credential` or `access key` in them are not among the arguments of the
  Java process, and no message tells their values.
- A setting that Spark does not know, a value that it does not take, and what cannot be given are errors.
- Without ANSI (`spark.sql.ansi.enabled`) a sum of whole numbers or decimals that is too large is no error; such
  sums are computed anew for each touched key.
- The time zone is not among the settings: a pipeline has one for its whole life,
  `Pipeline(…, timezone="Europe/Oslo")`.
"""


def page(known: Iterable[tuple[str, str, bool]]) -> str:
    """The page, from the name of every setting, its default, and whether a session may have it."""
    known = sorted(known)
    names = {name for name, _, _ in known}
    missing = ({*PINNED, *MACHINE} | {name for name in OURS if name.count(".") > 2 and name[-1] != "."}) - names
    if missing - {"spark.sql.defaultCatalog", "spark.sql.planChange"}:
        msg = f"Spark does not know {sorted(missing)}"
        raise ValueError(msg)
    given = [each for each in known if each[2] and not _is_fixed(each[0]) and not _elsewhere(each[0])]
    parts = [
        HEAD,
        "## Pinned\n",
        *_table("setting | value | reason", ((n, f"`{v}`", r) for n, (v, r) in PINNED.items())),
        f"| `{ANSI}` | `true` | unless it is given |",
        "\n## Taken from the machine\n",
        "From `spark-defaults.conf`, or from whoever started Spark: how fast, never what.\n",
        *_table("setting | reason", MACHINE.items()),
        "\n## Not to be given\n",
        "Also what belongs to the whole of Spark rather than to a session.\n",
        *_table(
            "setting | reason",
            ((f"{n}…" if _is_prefix(n, names) else n, r) for n, r in OURS.items() if n not in PINNED),
        ),
        "\n## What an answer may depend on\n",
        "At the default in every session of ours, unless given; then part of what the views mean.\n",
        *_table("setting | default", ((n, f"`{_short(default)}`") for n, default, _ in given)),
        "\n## The rest\n",
        "At the default too. No answer depends on them: they are about",
        "; ".join(ELSEWHERE) + ".",
    ]
    return "\n".join(parts) + "\n"


def _table(head: str, rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    return lines + ["| " + " | ".join((f"`{name}`", *others)) + " |" for name, *others in rows]


def _is_prefix(name: str, names: set[str]) -> bool:
    return name not in names


def _is_fixed(name: str) -> bool:
    return name in MACHINE or any(name.startswith(each) for each in OURS)


def _elsewhere(name: str) -> bool:
    return not name.startswith(SQL) or any(
        name.removeprefix(SQL).startswith(each) for several in ELSEWHERE.values() for each in several.split()
    )


def _short(default: str) -> str:
    return default.replace("|", "\\|").replace("`", "'") or " "


def registry() -> list[tuple[str, str, bool]]:
    """What the Spark that runs here knows."""
    session = start("settings", master="local[1]")
    return [(e.key(), e.defaultValueString(), session.conf.isModifiable(e.key())) for e in entries(session)]


if __name__ == "__main__":
    PAGE.write_text(page(registry()))
