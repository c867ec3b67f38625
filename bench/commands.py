"""How long the small commands take from a cold shell: process start to exit, median of several."""

import os
import subprocess
import sys
import time
from pathlib import Path

from bench import rows
from bench.headwater_producers import open_pipeline
from bench.progress import say
from bench.table import Line
from bench.workspace import CannotMeasure, scratch

BAR_SECONDS = 0.5
TIMES = 7

_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("topics",),
    ("tail", "rows"),
    ("produce", "rows"),
    ("--version",),
)


def compare() -> list[Line]:
    """Time each command on a small pipeline."""
    command = Path(sys.executable).parent / "headwater"
    if not command.exists():
        message = f"there is no command `headwater` beside {Path(sys.executable).name}; run make setup"
        raise CannotMeasure(message)
    with scratch("commands") as path:
        with open_pipeline(path) as pipeline:
            pipeline.stream("rows", rows.SCHEMA).append(rows.record_batch(0).slice(0, 100))
        say("timing the commands")
        return [_time(command, arguments, path) for arguments in _COMMANDS]


def _time(command: Path, arguments: tuple[str, ...], path: Path) -> Line:
    row = '{"id": 1, "key": "key-0001", "payload": "from the benchmark"}\n'
    figures = []
    for _ in range(TIMES):
        started = time.monotonic()
        result = subprocess.run(
            [str(command), *arguments],
            input=row,
            capture_output=True,
            text=True,
            check=False,
            cwd=path,
            env={**os.environ, "HEADWATER_PIPELINE": str(path)},
        )
        figures.append(time.monotonic() - started)
        if result.returncode != 0:
            message = f"`headwater {' '.join(arguments)}` failed: {result.stderr.strip()[-300:]}"
            raise RuntimeError(message)
    return Line(f"headwater {' '.join(arguments)}", figures, None, BAR_SECONDS, unit="s")
