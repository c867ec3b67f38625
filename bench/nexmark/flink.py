"""Flink: the same query over the same Parquet files, in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from bench.maven import Artifact, jars, java
from bench.nexmark.flink_queries import QUERIES
from bench.nexmark.streams import STREAMS, side_input
from bench.processes import Peak
from bench.progress import say
from bench.workspace import CACHE, CannotMeasure, scratch

VERSION = "2.3.0"
ROCKSDB, HEAP = "rocksdb", "hashmap"
PARQUET, CSV = "parquet", "csv"
_ARTIFACTS = (
    Artifact("org.apache.flink", "flink-sql-parquet", VERSION, alone=True),
    Artifact("org.apache.hadoop", "hadoop-client-api", "3.3.6", alone=True),
    Artifact("org.apache.hadoop", "hadoop-client-runtime", "3.3.6", alone=True),
)
_JOB = Path(__file__).with_name("flink_job.py")
_LONGEST = 3_600


@dataclass(frozen=True)
class Ran:
    """How long Flink took from the submission of the job to its end, and the most memory it had."""

    seconds: float
    memory: int


def environment() -> Path:
    """The Python of Flink's environment, which is made if it is not there."""
    java()
    folder = CACHE / f"flink-{VERSION}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        say(f"installing Flink {VERSION} from PyPI into an environment of its own; a minute or two")
        commands = (
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [
                sys.executable,
                "-m",
                "uv",
                "pip",
                "install",
                "-q",
                "--python",
                str(python),
                f"apache-flink=={VERSION}",
            ],
        )
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                message = f"Flink cannot be installed: {done.stderr.strip().splitlines()[-1:]}"
                raise CannotMeasure(message)
        (folder / "complete").touch()
    return python


def measure(query: str, data: Path, warm: Path, state: str, source: str = PARQUET) -> Ran:
    """Run a query to the end of its input, with this kind of state, from files of this format."""
    if query not in QUERIES:
        message = f"Flink cannot run {query}"
        raise CannotMeasure(message)
    with scratch("flink") as folder:
        small = folder / "side_input"
        small.mkdir()
        pq.write_table(side_input(), small / "rows.parquet")
        given = {
            "data": str(data),
            "warm": str(warm),
            "tables": {name: ddl.replace("TIMESTAMP", "TIMESTAMP(3)") for name, ddl in STREAMS.items()},
            "sql": QUERIES[query],
            "jars": str(jars("flink-jars", _ARTIFACTS)),
            "state": state,
            "source": source,
            "checkpoints": str(folder / "checkpoints"),
            "side_input": str(small),
        }
        command = [str(environment()), str(_JOB), json.dumps(given)]
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        with process, Peak(process.pid) as memory:
            try:
                output, _ = process.communicate(timeout=_LONGEST)
            except subprocess.TimeoutExpired:
                process.kill()
                message = f"Flink was not done after {time.monotonic() - began:.0f} s"
                raise CannotMeasure(message) from None
        last = output.strip().splitlines()[-1:] or [""]
        if process.returncode or not last[0].startswith("{"):
            message = f"Flink failed: {_reason(output)}"
            raise CannotMeasure(message)
        return Ran(json.loads(last[0])["seconds"], memory.memory.anonymous)


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if "Exception" in line or "Error" in line]
    return (lines or output.strip().splitlines() or ["no output"])[-1][:200]
