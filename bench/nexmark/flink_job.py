"""One query in Flink, run by the Python of Flink's own environment: prints the seconds as JSON.

It is run twice, first over a little data (`warm`), as ours is, so that Java has seen the query when it counts.

python flink_job.py '{"data": …, "warm": …, "tables": …, "sql": …, "jars": …, "state": …, "source": …, …}'
"""

import glob
import json
import sys
import time
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

SETTINGS = {
    "parallelism.default": "2",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
    "table.optimizer.distinct-agg.split.enabled": "true",
    "table.local-time-zone": "UTC",
    "taskmanager.memory.managed.size": "2 gb",
    "taskmanager.numberOfTaskSlots": "2",
}


def main() -> None:
    """Run it, warm up first."""
    given = json.loads(sys.argv[1])
    run(given, given["warm"])
    print(json.dumps({"seconds": run(given, given["data"])}))


def run(given: dict[str, Any], data: str) -> float:
    """Run it to the end of its input."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in SETTINGS.items():
        env.get_config().set(name, value)
    jars = ";".join(f"file://{jar}" for jar in sorted(glob.glob(f"{given['jars']}/*.jar")))
    env.get_config().set("pipeline.jars", jars)
    env.get_config().set("pipeline.classpaths", jars)
    env.get_config().set("state.backend.type", given["state"])
    if given["state"] == "rocksdb":
        env.get_config().set("execution.checkpointing.interval", "10 s")
        env.get_config().set("execution.checkpointing.incremental", "true")
        env.get_config().set("execution.checkpointing.dir", f"file://{given['checkpoints']}")
    for name, columns in given["tables"].items():
        env.execute_sql(
            f"CREATE TABLE {name} ({columns}, WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND) "
            f"WITH ('connector' = 'filesystem', 'path' = 'file://{data}/{name}', 'format' = '{given['source']}')"
        )
    env.execute_sql("CREATE VIEW bid_now AS SELECT *, PROCTIME() AS p_time FROM bid")
    env.execute_sql(
        "CREATE TABLE side_input (key BIGINT, `value` STRING) "
        f"WITH ('connector' = 'filesystem', 'path' = 'file://{given['side_input']}', 'format' = 'parquet')"
    )
    started = time.monotonic()
    env.execute_sql(f"CREATE TABLE sink WITH ('connector' = 'blackhole') AS {given['sql']}").wait()
    return time.monotonic() - started


if __name__ == "__main__":
    main()
