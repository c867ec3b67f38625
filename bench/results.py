"""The run as a file: every figure with the commit, the command and the machine, in `bench/results`."""

import json
import os
import platform
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.table import Line
from bench.workspace import BENCH

_PACKAGES = ("headwater", "pyarrow", "pyspark", "confluent-kafka")


def write(lines: list[Line], name: str, seed: int | None = None) -> Path:
    """Write `bench/results/<name>-<timestamp>.json` and give its path; without a seed nothing was drawn."""
    now = datetime.now(UTC)
    document = {
        "at": now.isoformat(timespec="seconds"),
        "command": [Path(sys.executable).name, "-m", f"bench.{name}", *sys.argv[1:]],
        "commit": _output("git", "-C", str(BENCH), "rev-parse", "HEAD"),
        "changed_files": len((_output("git", "-C", str(BENCH), "status", "--porcelain") or "").splitlines()),
        "seed": seed,
        "machine": _machine(),
        "versions": {package: _version(package) for package in _PACKAGES},
        "lines": [line.as_json() for line in lines],
    }
    directory = BENCH / "results"
    directory.mkdir(exist_ok=True)
    path = directory / f"{name}-{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "processor": _line_of("/proc/cpuinfo", "model name"),
        "memory": _line_of("/proc/meminfo", "MemTotal"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "java": (_output("java", "--version") or "none").splitlines()[0],
        "load_average": os.getloadavg(),
    }


def _line_of(file: str, name: str) -> str | None:
    try:
        text = Path(file).read_text()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith(name)), None)


def _output(*command: str) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
